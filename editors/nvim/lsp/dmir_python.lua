-- The configuration that vim.lsp.enable('dmir_python') reads (Neovim 0.11 and newer): the costs of Python files whose programs
-- were traced, from a server of its own beside the person's. It starts where there is a folder .dmir or a dmir.toml.

---@type vim.lsp.Config
return {
  cmd = { 'dmir', 'lsp' },
  filetypes = { 'python' },
  root_markers = { '.dmir', 'dmir.toml' },
  workspace_required = true,
  handlers = require('dmir.handlers'),
  settings = {
    dmir = {
      target = '', -- if empty, the one in dmir.toml, else h200
      hints = { enabled = true, position = 'left' }, -- left or right: a column; end: inlay hints after the lines
      lenses = { enabled = true },
      lint = { enabled = true },
    },
  },
  -- Nothing is said about trust: the server asks before it runs the command of a trace.
  before_init = function(params, config)
    params.initializationOptions = vim.tbl_extend('force', { python = true }, config.settings.dmir)
  end,
  on_attach = function(client, buffer)
    require('dmir').attach_python(client, buffer)
  end,
}
