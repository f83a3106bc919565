-- An init.lua as docs/EDITORS.md describes it.
vim.opt.runtimepath:append(vim.env.DMIR_NVIM)
if vim.lsp.enable then
  if vim.g.position then
    vim.lsp.config('dmir', { settings = { dmir = { hints = { position = vim.g.position } } } })
  end
  vim.lsp.enable({ 'dmir', 'dmir_python' })
else
  vim.api.nvim_create_autocmd('FileType', {
    pattern = { 'dmir', 'python' },
    callback = function(event)
      require('dmir').start(event.buf)
    end,
  })
end
