[
  (region)
  (dictionary)
  (list)
  (resources)
] @fold
