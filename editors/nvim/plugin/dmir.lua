-- Buffers named dmir:/… are virtual documents of the language server.
vim.api.nvim_create_autocmd('BufReadCmd', {
  group = vim.api.nvim_create_augroup('dmir', {}),
  pattern = 'dmir:/*',
  callback = function(event)
    require('dmir.view').fill(event.buf)
  end,
})
