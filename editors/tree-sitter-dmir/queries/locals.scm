; Values are visible in the region that defines them and in nested regions. The arguments of a function are defined outside its
; region, so its op is a scope as well.
((operation
  name: (op_name) @_name) @local.scope
  (#eq? @_name "func.func"))
(region) @local.scope

(result) @local.definition.var
(block
  arguments: (parenthesized (value) @local.definition.parameter))
((operation
  name: (op_name) @_name
  (parenthesized (value) @local.definition.parameter))
  (#eq? @_name "func.func"))

(value) @local.reference
