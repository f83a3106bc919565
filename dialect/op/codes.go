package op

// Code explains a problem code.
type Code struct {
	Code string // "DM110"
	Name string // "broadcast-mismatch"
	Doc  string // what the rule is and why, in Markdown
	Help string // what to do
}

// Codes are the problems of the dialect, sorted by code.
var Codes = []Code{
	{
		"DM110", "broadcast-mismatch",
		"Operands broadcast as in NumPy: shapes are aligned at the last dimension, and two sizes agree or one of them is 1. A symbol agrees with itself only; an unnamed `?` with everything.",
		"Reshape or broadcast one operand, or give sizes that are equal the same symbol.",
	},
	{
		"DM111", "element-types-differ",
		"Operands of one op have one element type; nothing is converted silently, because a conversion moves bytes and loses precision.",
		"Convert one of them with `dm.convert`.",
	},
	{
		"DM112", "no-such-dimension",
		"A dimension number is at least minus the rank and below the rank; negative ones count from the back.",
		"Name a dimension that the operand has.",
	},
	{
		"DM113", "dimension-list",
		"A list of dimensions names each at most once; a permutation names every one.",
		"Name every dimension once.",
	},
	{
		"DM114", "list-length",
		"Lists such as strides, padding or start indices have one entry for each dimension they speak of.",
		"Write one entry for each dimension.",
	},
	{
		"DM115", "attribute-value",
		"The value of an attribute lies outside what the op can do.",
		"Read the attribute's line in the op's documentation.",
	},
	{
		"DM116", "window-does-not-fit",
		"A window, dilated, must fit at least once into the padded dimension, and its size must be a number.",
		"Pad more or take a smaller window.",
	},
	{
		"DM117", "rank",
		"An operand has fewer or more dimensions than the op works on.",
		"Reshape the operand.",
	},
	{
		"DM118", "size-changed",
		"`reshape`, `copy`, `broadcast` and `constant` keep what their operand holds: a reshape the number of elements, a copy the shape, a broadcast each size that is not 1.",
		"Write the result type that the operand allows.",
	},
	{
		"DM119", "outside-bounds",
		"A slice must lie inside the dimension that it cuts.",
		"Correct the indices.",
	},
	{
		"DM120", "equation",
		"An einsum equation has one part of letters for each operand, separated by commas, then `->` and the output's letters: `\"ij,jk->ik\"`. Ellipses and implicit outputs are not supported.",
		"Give every dimension a letter and write the output.",
	},
	{
		"DM121", "equation-shapes",
		"An equation names every dimension of an operand, and a letter has the same size in all of them.",
		"Compare the letters with the operands' shapes.",
	},
	{
		"DM122", "operand-shapes",
		"The shapes of two operands do not belong together: summed dimensions, channels, indices or updates differ.",
		"Compare the shapes in the message with the op's documentation.",
	},
	{
		"DM123", "groups",
		"Channels or heads fall evenly into groups.",
		"Choose a number that divides.",
	},
	{
		"DM124", "operand-count",
		"The op takes fewer or more operands.",
		"Read the op's signature.",
	},
	{
		"DM125", "result-count",
		"The op gives fewer or more results.",
		"Read the op's signature.",
	},
	{
		"DM126", "region-arguments",
		"A region's block takes the values that the op hands to it: scalars for `map` and `reduce`, the carried values for `while`, none for `if` and `kernel`.",
		"Correct the types of the block's arguments.",
	},
	{
		"DM127", "yielded-types",
		"A region ends in `dm.yield` of as many values as its op expects, of the same types.",
		"Yield values of the types in the message.",
	},
	{
		"DM128", "result-element-type",
		"The element type written for the result is none that the op can give.",
		"Write the type in the message, and convert with `dm.convert` after the op.",
	},
	{
		"DM129", "reduction-kind",
		"A reduction is either named (`dm.reduce add`) or given by a region with an initial value, not both and not neither.",
		"Write `dm.reduce add %x, dims = [1]`, or `dm.reduce %x, %init, dims = [1]` with a region.",
	},
}

// CodeOf is the entry of code, nil where there is none.
func CodeOf(code string) *Code {
	for i := range Codes {
		if Codes[i].Code == code {
			return &Codes[i]
		}
	}
	return nil
}
