vim.filetype.add({ extension = { dmir = 'dmir' } })
