-- :checkhealth dmir
local M = {}

function M.check()
  local health = vim.health
  health.start('dmir')
  if vim.fn.executable('dmir') == 1 then
    health.ok('the server is ' .. vim.fn.exepath('dmir') .. ', version ' .. vim.trim(vim.fn.system({ 'dmir', 'version' })))
  else
    health.error('dmir is not on PATH', 'go install . in a checkout of dmir')
  end
  if vim.lsp.enable or #vim.lsp.get_clients({ name = 'dmir' }) > 0 then
    health.ok(#vim.lsp.get_clients({ name = 'dmir' }) .. ' running')
  else
    health.warn('no server is running', "in Neovim 0.10, call require('dmir').start(buffer), see docs/EDITORS.md")
  end
  if pcall(vim.treesitter.language.inspect, 'dmir') then
    health.ok('the tree-sitter parser is installed')
  else
    health.info('no tree-sitter parser: colours are those of syntax/dmir.vim and the server; see docs/EDITORS.md')
  end
end

return M
