package types

// Code explains one kind of diagnostic about types and attribute values.
type Code struct {
	Code string // "DM150"
	Name string
	Doc  string
	Help string
}

// Codes are the diagnostics of this package, in the order of their numbers.
var Codes = []Code{
	{"DM150", "bad-placement", "The text of a placement #dm.at<…> is not a memory space, an order of dimensions and names of dimensions, each at most once.", "write `#dm.at<hbm, order = [1, 0], dims = [n]>`; every part may be left out"},
	{"DM151", "unknown-alias", "A type or attribute alias is used that the file does not define.", "define it at the top of the file: `!name = type` or `#name = attribute`"},
	{"DM152", "alias-cycle", "An alias is defined by itself, directly or through others.", "write out one of the definitions"},
	{"DM153", "type-too-large", "The size of a tensor in bytes, elements times element size, is beyond 2^62.", "check the dimensions; no memory holds such a tensor"},
	{"DM154", "bad-dense", "A dense<…> literal does not fit its type: the number or nesting of values differs from the shape, or a value is not one of the element type.", "write one value for all elements, nested lists as the shape says, or the bytes as a hexadecimal string"},
	{"DM155", "value-out-of-range", "A number does not fit into its type.", "use a wider type, or another value"},
}
