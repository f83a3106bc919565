((operation
  name: (op_name) @_name
  (region) @function.inside) @function.around
  (#eq? @_name "func.func"))
(comment) @comment.inside
(comment)+ @comment.around
