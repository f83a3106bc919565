vim.bo.commentstring = '// %s'
vim.bo.comments = '://'
vim.bo.shiftwidth = 2
vim.bo.softtabstop = 2
vim.bo.expandtab = true
-- Colours of the tree-sitter parser where it is installed (docs/EDITORS.md), else those of syntax/dmir.vim.
pcall(vim.treesitter.start, 0, 'dmir')
vim.b.undo_ftplugin = 'setlocal commentstring< comments< shiftwidth< softtabstop< expandtab< | silent! lua vim.treesitter.stop()'
