[
  (region)
  (dictionary)
  (parenthesized)
  (list)
] @indent

["}" ")" "]"] @outdent
