; The captures are those of nvim-treesitter.
[
  (region)
  (dictionary)
  (parenthesized)
  (list)
] @indent.begin

["}" ")" "]"] @indent.branch @indent.end
(block_label) @indent.branch
