vim.bo.commentstring = '// %s'
vim.bo.comments = '://'
vim.bo.shiftwidth = 2
vim.bo.softtabstop = 2
vim.bo.expandtab = true
-- Highlighting by the tree-sitter parser if it is installed (docs/EDITORS.md), else by syntax/dmir.vim.
pcall(vim.treesitter.start, 0, 'dmir')
vim.b.undo_ftplugin = 'setlocal commentstring< comments< shiftwidth< softtabstop< expandtab< | silent! lua vim.treesitter.stop()'
