; Written by go generate ./editors/tree-sitter-dmir/gen from dmir's registry of ops; do not edit.

(value) @variable
(result) @variable
(symbol) @function
(block_label) @label
(successor) @label
(alias_name) @constant.macro
(attribute_alias) @constant.macro
(type_alias) @type
(type_name) @type.builtin
(builtin_type) @type.builtin
(dimensions) @number
(integer) @number
(float) @number.float
(boolean) @boolean
(string) @string
(attribute_name) @property
(resources) @comment.documentation
(operator) @operator
["->" "=" "==" ">=" "<=" ":" "::"] @operator
"," @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
(arguments ["<" ">"] @punctuation.bracket)

; Ops of the registry and of the builtin dialects, then those of all others. A name with our prefix that is not in the
; registry stays plain.
((op_name) @function.builtin
  (#any-of? @function.builtin
    "\"dm.abs\"" "\"dm.acosh\"" "\"dm.adam\"" "\"dm.add\"" "\"dm.all_gather\"" "\"dm.all_reduce\"" "\"dm.all_to_all\""
    "\"dm.and\"" "\"dm.argmax\"" "\"dm.asinh\"" "\"dm.atan2\"" "\"dm.atanh\"" "\"dm.attention\""
    "\"dm.attention_grad\"" "\"dm.batch_norm\"" "\"dm.bitcast\"" "\"dm.broadcast\"" "\"dm.cbrt\"" "\"dm.ceil\""
    "\"dm.clamp\"" "\"dm.collective_permute\"" "\"dm.compare\"" "\"dm.concatenate\"" "\"dm.constant\""
    "\"dm.convert\"" "\"dm.convert_format\"" "\"dm.convolution\"" "\"dm.copy\"" "\"dm.cos\"" "\"dm.cosh\""
    "\"dm.count_leading_zeros\"" "\"dm.cross_entropy\"" "\"dm.cummax\"" "\"dm.cumprod\"" "\"dm.cumsum\"" "\"dm.div\""
    "\"dm.dropout\"" "\"dm.dynamic_slice\"" "\"dm.dynamic_update_slice\"" "\"dm.einsum\"" "\"dm.embedding\""
    "\"dm.empty\"" "\"dm.erf\"" "\"dm.erfc\"" "\"dm.erfinv\"" "\"dm.exp\"" "\"dm.expm1\"" "\"dm.filter\""
    "\"dm.floor\"" "\"dm.gather\"" "\"dm.gelu\"" "\"dm.grad\"" "\"dm.group_norm\"" "\"dm.grouped_matmul\""
    "\"dm.iota\"" "\"dm.layer_norm\"" "\"dm.log\"" "\"dm.log1p\"" "\"dm.log_softmax\"" "\"dm.logistic\""
    "\"dm.logsumexp\"" "\"dm.matmul\"" "\"dm.max\"" "\"dm.mean\"" "\"dm.merge\"" "\"dm.mesh\"" "\"dm.min\""
    "\"dm.momentum\"" "\"dm.mul\"" "\"dm.neg\"" "\"dm.not\"" "\"dm.one_hot\"" "\"dm.or\"" "\"dm.pack\"" "\"dm.pad\""
    "\"dm.partition_id\"" "\"dm.popcnt\"" "\"dm.pow\"" "\"dm.prune\"" "\"dm.recv\"" "\"dm.reduce\""
    "\"dm.reduce_scatter\"" "\"dm.reduce_window\"" "\"dm.relu\"" "\"dm.rem\"" "\"dm.reshape\"" "\"dm.reshard\""
    "\"dm.reverse\"" "\"dm.rms_norm\"" "\"dm.rng\"" "\"dm.roll\"" "\"dm.rope\"" "\"dm.round\""
    "\"dm.round_half_away\"" "\"dm.rsqrt\"" "\"dm.sample\"" "\"dm.scatter\"" "\"dm.searchsorted\""
    "\"dm.segment_attention\"" "\"dm.segment_dense_product\"" "\"dm.segment_ids\"" "\"dm.segment_product\""
    "\"dm.segment_reduce\"" "\"dm.segment_sample\"" "\"dm.select\"" "\"dm.select_and_scatter\"" "\"dm.send\""
    "\"dm.sgd\"" "\"dm.shift_left\"" "\"dm.shift_right_arithmetic\"" "\"dm.shift_right_logical\"" "\"dm.sign\""
    "\"dm.silu\"" "\"dm.sin\"" "\"dm.sinh\"" "\"dm.slice\"" "\"dm.softmax\"" "\"dm.sort\"" "\"dm.sqrt\""
    "\"dm.stop_gradient\"" "\"dm.structured_einsum\"" "\"dm.sub\"" "\"dm.tan\"" "\"dm.tanh\"" "\"dm.top_k\""
    "\"dm.transpose\"" "\"dm.unpack\"" "\"dm.variance\"" "\"dm.xor\"" "dm.abs" "dm.acosh" "dm.adam" "dm.add"
    "dm.all_gather" "dm.all_reduce" "dm.all_to_all" "dm.and" "dm.argmax" "dm.asinh" "dm.atan2" "dm.atanh"
    "dm.attention" "dm.attention_grad" "dm.batch_norm" "dm.bitcast" "dm.broadcast" "dm.cbrt" "dm.ceil" "dm.clamp"
    "dm.collective_permute" "dm.compare" "dm.concatenate" "dm.constant" "dm.convert" "dm.convert_format"
    "dm.convolution" "dm.copy" "dm.cos" "dm.cosh" "dm.count_leading_zeros" "dm.cross_entropy" "dm.cummax" "dm.cumprod"
    "dm.cumsum" "dm.div" "dm.dropout" "dm.dynamic_slice" "dm.dynamic_update_slice" "dm.einsum" "dm.embedding"
    "dm.empty" "dm.erf" "dm.erfc" "dm.erfinv" "dm.exp" "dm.expm1" "dm.filter" "dm.floor" "dm.gather" "dm.gelu"
    "dm.grad" "dm.group_norm" "dm.grouped_matmul" "dm.iota" "dm.layer_norm" "dm.log" "dm.log1p" "dm.log_softmax"
    "dm.logistic" "dm.logsumexp" "dm.matmul" "dm.max" "dm.mean" "dm.merge" "dm.mesh" "dm.min" "dm.momentum" "dm.mul"
    "dm.neg" "dm.not" "dm.one_hot" "dm.or" "dm.pack" "dm.pad" "dm.partition_id" "dm.popcnt" "dm.pow" "dm.prune"
    "dm.recv" "dm.reduce" "dm.reduce_scatter" "dm.reduce_window" "dm.relu" "dm.rem" "dm.reshape" "dm.reshard"
    "dm.reverse" "dm.rms_norm" "dm.rng" "dm.roll" "dm.rope" "dm.round" "dm.round_half_away" "dm.rsqrt" "dm.sample"
    "dm.scatter" "dm.searchsorted" "dm.segment_attention" "dm.segment_dense_product" "dm.segment_ids"
    "dm.segment_product" "dm.segment_reduce" "dm.segment_sample" "dm.select" "dm.select_and_scatter" "dm.send"
    "dm.sgd" "dm.shift_left" "dm.shift_right_arithmetic" "dm.shift_right_logical" "dm.sign" "dm.silu" "dm.sin"
    "dm.sinh" "dm.slice" "dm.softmax" "dm.sort" "dm.sqrt" "dm.stop_gradient" "dm.structured_einsum" "dm.sub" "dm.tan"
    "dm.tanh" "dm.top_k" "dm.transpose" "dm.unpack" "dm.variance" "dm.xor"))
((op_name) @keyword
  (#any-of? @keyword
    "\"dm.if\"" "\"dm.kernel\"" "\"dm.map\"" "\"dm.scan\"" "\"dm.while\"" "\"dm.yield\"" "dm.if" "dm.kernel" "dm.map"
    "dm.scan" "dm.while" "dm.yield" "func.call" "func.func" "func.return" "call" "func" "module" "builtin.module"
    "return"))
((op_name) @function.call
  (#not-match? @function.call
    "^(\"?dm\\.|func\\.|(builtin\\.)?module$|func$|call$|return$)"))

; Keywords between the items of an op: those of MLIR, and those of the attributes of the registry's ops.
((identifier) @keyword
  (#any-of? @keyword
    "do" "else" "affine_map" "affine_set" "array" "attributes" "dense" "dense_resource" "loc" "sparse"))
((identifier) @keyword.modifier
  (#any-of? @keyword.modifier
    "nested" "private" "public"))
((identifier) @constant.builtin
  (#any-of? @constant.builtin
    "a" "add" "all" "and" "b" "c" "carries" "contractions" "difference" "eq" "f16" "f32" "first" "ge" "gt" "halves"
    "hbm" "host" "interleaved" "intersection" "le" "left" "lt" "max" "mean" "min" "mul" "ne" "none" "normal" "or"
    "product" "reg" "remote" "right" "set" "smem" "stored" "sum" "symmetric_difference" "tanh" "tf32" "uniform"
    "union"))

((operation
  name: (op_name) @keyword
  (parenthesized (value) @variable.parameter))
  (#eq? @keyword "func.func"))
(block
  arguments: (parenthesized (value) @variable.parameter))

; Findings that are silenced and the mark between two programs of one file stand out from other comments.
((comment) @comment
  (#not-match? @comment
    "^//( *dmir: *ignore| -----)"))
((comment) @keyword.directive
  (#match? @keyword.directive
    "^//( *dmir: *ignore| -----)"))
