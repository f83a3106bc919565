package op

import "dmir/syntax/diag"

// Codes are the problems of the dialect, sorted by code.
var Codes = diag.Register([]diag.Code{
	{
		Code: "DM110", Name: "broadcast-mismatch",
		Doc:  "Operands broadcast as in NumPy: shapes are aligned at the last dimension, and two sizes agree or one of them is 1. A symbol agrees with itself only; an unnamed `?` with everything.",
		Help: "reshape or broadcast one operand, or give sizes that are equal the same symbol",
	},
	{
		Code: "DM111", Name: "element-types-differ",
		Doc:  "Operands of one op have one element type; nothing is converted silently, because a conversion moves bytes and loses precision.",
		Help: "convert one of them with `dm.convert`",
	},
	{
		Code: "DM112", Name: "no-such-dimension",
		Doc:  "A dimension number must be between -rank and rank - 1; negative numbers count from the last dimension.",
		Help: "name a dimension that the operand has",
	},
	{
		Code: "DM113", Name: "dimension-list",
		Doc:  "A list of dimensions must name each at most once; a permutation must name every one.",
		Help: "name every dimension once",
	},
	{
		Code: "DM114", Name: "list-length",
		Doc:  "Lists such as strides, padding or start indices have one entry for each dimension that they apply to.",
		Help: "write one entry for each dimension",
	},
	{
		Code: "DM115", Name: "attribute-value",
		Doc:  "The op does not support this value of the attribute.",
		Help: "see the attribute in the op's documentation: `dmir explain dm.NAME`",
	},
	{
		Code: "DM116", Name: "window-does-not-fit",
		Doc:  "A window, with its dilation, must fit at least once into the padded dimension, and its size must be a number.",
		Help: "pad more or take a smaller window",
	},
	{
		Code: "DM117", Name: "rank",
		Doc:  "An operand has fewer or more dimensions than the op works on.",
		Help: "reshape the operand",
	},
	{
		Code: "DM118", Name: "size-changed",
		Doc:  "The result has a shape that the operand does not allow: `reshape` keeps the number of elements, `copy` the shape, `broadcast` each size that is not 1.",
		Help: "keep the number of elements (`reshape`) or the shape (`copy`); `broadcast` only enlarges dimensions of size 1",
	},
	{
		Code: "DM119", Name: "outside-bounds",
		Doc:  "A slice must lie within the bounds of its dimension.",
		Help: "correct the indices",
	},
	{
		Code: "DM120", Name: "equation",
		Doc:  "An einsum equation has one group of letters for each operand, separated by commas, then `->` and the output's letters: `\"ij,jk->ik\"`. Ellipses and implicit outputs are not supported.",
		Help: "give every dimension a letter and write the output",
	},
	{
		Code: "DM121", Name: "equation-shapes",
		Doc:  "An equation names every dimension of an operand, and a letter has the same size in all of them.",
		Help: "compare the letters with the operands' shapes",
	},
	{
		Code: "DM122", Name: "operand-shapes",
		Doc:  "The shapes of two operands do not match: contracted dimensions, channels, indices or updates differ.",
		Help: "compare the shapes in the message with the op's documentation",
	},
	{
		Code: "DM123", Name: "groups",
		Doc:  "The number of channels or heads must be divisible by the number of groups.",
		Help: "choose a number of groups that divides it",
	},
	{
		Code: "DM124", Name: "operand-count",
		Doc:  "The op has the wrong number of operands.",
		Help: "see the op's signature, which `dmir explain` and hover show",
	},
	{
		Code: "DM125", Name: "result-count",
		Doc:  "The op has the wrong number of results.",
		Help: "see the op's signature, which `dmir explain` and hover show",
	},
	{
		Code: "DM126", Name: "region-arguments",
		Doc:  "A region's block takes the values that the op passes to it: scalars for `map` and `reduce`, the carried values for `while`, carried values and slices for `scan`, none for `if` and `kernel`.",
		Help: "correct the types of the block's arguments",
	},
	{
		Code: "DM127", Name: "yielded-types",
		Doc:  "A region ends in `dm.yield` of as many values as its op expects, of the same types.",
		Help: "yield values of the types in the message",
	},
	{
		Code: "DM128", Name: "result-element-type",
		Doc:  "The op cannot return the element type written for its result.",
		Help: "write the type in the message, and convert with `dm.convert` after the op",
	},
	{
		Code: "DM129", Name: "reduction-kind",
		Doc:  "A reduction is either named (`dm.reduce add`) or given by a region with an initial value, but not both.",
		Help: "write `dm.reduce add %x, dims = [1]`, or `dm.reduce %x, %init, dims = [1]` with a region",
	},
	{
		Code: "DM130", Name: "tuple-structure",
		Doc:  "An op on tuples works on corresponding members: all its tuples have as many members, at the same depth.",
		Help: "pack the members of one tuple as those of the other",
	},
	{
		Code: "DM134", Name: "sparse-operands",
		Doc:  "The op takes no sparse tensors, or not these: the page of the dialect says of each op which operands may be sparse and how its result is stored. A contraction of several sparse operands with a sparse result states how many products there is room for.",
		Help: "make the operand dense with `dm.convert_format`, which the fix does, or take the elements that another tensor stores with `dm.sample`",
	},
})
