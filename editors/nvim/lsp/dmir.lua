-- The configuration that vim.lsp.enable('dmir') reads (Neovim 0.11 and newer).
-- Change parts of it with vim.lsp.config('dmir', { settings = { dmir = { target = 'a100-80' } } }).

-- Virtual documents are shown by lua/dmir/view.lua.
local capabilities = vim.lsp.protocol.make_client_capabilities()
capabilities.workspace.textDocumentContent = { dynamicRegistration = false }

---@type vim.lsp.Config
return {
  cmd = { 'dmir', 'lsp' },
  filetypes = { 'dmir' },
  root_markers = { 'dmir.toml', '.git' },
  capabilities = capabilities,
  handlers = require('dmir.handlers'),
  settings = {
    dmir = {
      target = '', -- if empty, the one in dmir.toml, else h200
      bind = vim.empty_dict(),
      hints = { enabled = true, position = 'left' }, -- left or right: a column; end: inlay hints after the lines
      lenses = { enabled = true },
      lint = { enabled = true },
      heat = 'off', -- off, time, bytes or waste
      run = { device = 'auto', seed = 0 },
      plan = { devices = 0, target = '' }, -- for a program without a mesh: 0 and '' are those of dmir.toml
    },
  },
  -- Nothing runs without a command of the user, so open files are trusted.
  before_init = function(params, config)
    params.initializationOptions = vim.tbl_extend('force', { trusted = true }, config.settings.dmir)
  end,
  commands = {
    -- Cost lens: the server returns a table, which the editor shows.
    ['dmir.cost'] = function(command, context)
      require('dmir').show_cost(vim.lsp.get_client_by_id(context.client_id), command.arguments[1])
    end,
    -- Plan lens: the server shows the program with the plan.
    ['dmir.plan'] = function(command, context)
      require('dmir').work(vim.lsp.get_client_by_id(context.client_id), 'dmir.plan', command.arguments[1])
    end,
    -- The last lens of a row: the rest of what can be done.
    ['dmir.more'] = function(command, context)
      require('dmir').more(vim.lsp.get_client_by_id(context.client_id), command.arguments[1], context)
    end,
  },
  on_attach = function(client, buffer)
    require('dmir').attach(client, buffer)
  end,
}
