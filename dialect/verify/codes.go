package verify

import "dmir/syntax/diag"

// Codes are the diagnostics of this package, in the order of their numbers.
// Rules of single ops are in op.Codes.
var Codes = diag.Register([]diag.Code{
	{Code: "DM166", Name: "unknown-op", Doc: "The dm dialect has no op of this name.", Help: "see docs/DIALECT.md, or `dmir explain dm.NAME` for one op"},
	{Code: "DM180", Name: "attribute-kind", Doc: "The value of an attribute has the wrong kind, such as a number instead of a list.", Help: "write a value of the kind in the message"},
	{Code: "DM181", Name: "missing-attribute", Doc: "The op needs this attribute and has no default for it.", Help: "add it: `, name = value`"},
	{Code: "DM182", Name: "unknown-keyword", Doc: "The attribute takes one of a fixed set of keywords, and this is not one of them.", Help: "write one of the words in the message"},
	{Code: "DM183", Name: "operand-type", Doc: "The op does not work on values of this type.", Help: "convert the operand with `dm.convert`, or use another op"},
	{Code: "DM184", Name: "result-type", Doc: "The written result type differs from the type inferred from the operands and attributes.", Help: "write the type in the message"},
	{Code: "DM185", Name: "regions", Doc: "The op has fewer or more regions than it takes, or the keyword before one is wrong.", Help: "see the op's documentation for its regions"},
	{Code: "DM186", Name: "terminator", Doc: "A block does not end in a terminator, such as `return` or `dm.yield`, or has one in the middle.", Help: "end functions with `return` and regions of dm ops with `dm.yield`"},
	{Code: "DM187", Name: "return-type", Doc: "The types of the returned values differ from the function's result types.", Help: "correct the signature or the returned values"},
	{Code: "DM188", Name: "call-type", Doc: "A call's operands or results do not match the function's signature.", Help: "compare the call with the function's signature"},
	{Code: "DM189", Name: "inside-kernel", Doc: "A kernel contains an op that cannot run in one: another kernel, or a call.", Help: "move it out of the kernel"},
	{Code: "DM190", Name: "memory-space", Doc: "The operands of one op are in different memory spaces.", Help: "move one of them with `dm.copy`"},
	{Code: "DM191", Name: "bad-binding", Doc: "`dm.bind` of a function is not a dictionary from symbols to sizes, which are non-negative integers.", Help: "write `dm.bind = {n = 512}`"},
	{Code: "DM192", Name: "bad-state", Doc: "`dm.state` of a result names the argument whose next value the result is, for steps that are repeated (`dmir run --steps`): `-> (tensor<f32>, tensor<4x4xf32> {dm.state = \"w\"})`. The argument must exist, have the result's type, and be the state of one result only. The argument's number, counted from 0, may stand for its name, as generic form writes it.", Help: "name an argument of the same type, without its `%`"},
	{Code: "DM193", Name: "bad-mesh", Doc: "A mesh has a name and at least one axis; each axis has a name of its own and a whole number of devices, 1 or more, all together fewer than 2^31. It stands at the top level of the file.", Help: "write `dm.mesh @pod {data = 16, model = 8}`"},
	{Code: "DM194", Name: "bad-sharding", Doc: "A sharding names a mesh of the file and its axes. An axis stands in it once; a part of an axis, `data:(2)4`, divides it: the product of the sizes before and of the part divides the axis.", Help: "name an axis of the mesh"},
	{Code: "DM195", Name: "bad-collective", Doc: "A collective stands in a function that one device runs, whose attribute `dm.mesh` names a mesh of the file, outside `dm.kernel`. Its axes are the mesh's; the sizes of the dimensions that it cuts and puts together differ by the number of devices along them, and positions are less than it.", Help: "give the function the attribute `dm.mesh`, or write `dm.reshard` in a function of whole tensors"},
	{Code: "DM196", Name: "sharding-attribute", Doc: "`dm.sharding` of an op, an argument or a result of a function states how a tensor is divided whose type does not: a placement with a sharding for each dimension, and nothing else. Of an op with several results, and of a tuple, it is an array with an entry for each result or member, in which `unit` stands for one of which nothing is stated. Where the type states a sharding too, it is the same.", Help: "write `dm.sharding = #dm.at<split = @pod[{data}, {}]>`"},
	{Code: "DM198", Name: "bad-stage", Doc: "`dm.stage` of an op or a call is the number of the stage of a pipeline that it and the ops after it belong to, until the next op that has one. Stages are numbered from 0 along the model, so that they do not go back in the text of a function.", Help: "write `dm.stage = 0` on the first op of the first stage, `dm.stage = 1` on that of the second"},
	{Code: "DM199", Name: "bad-pipeline", Doc: "A training step is cut into micro-batches by `dm.microbatches`, a positive number, and into the stages of a pipeline by `dm.pipeline`, an axis of the mesh that the function's values are divided over, or of the only one of the file. `dm.schedule` names one of the schedules. `dm.recompute` of an op or a call has no value.", Help: "write `attributes {dm.microbatches = 8 : i64, dm.pipeline = \"pipe\", dm.schedule = \"1f1b\"}`"},
})
