package types

import "dmir/syntax/diag"

// Codes are the diagnostics of this package, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM147", Name: "bad-format", Doc: "The format of a sparse tensor, `#dm.csr<…>` and the like, is not one: an unknown name or argument, a map that does not walk each dimension once, or blocks that do not divide a dimension.", Help: "write `#dm.csr<nnz = e>`, `#dm.bsr<16x16>`, or `#dm.sparse<map = (d0, d1) -> (d0 : dense, d1 : compressed), nnz = e, posWidth = 32, crdWidth = 32>`"},
	{Code: "DM150", Name: "bad-placement", Doc: "The text of a placement #dm.at<…> is not a memory space, an order of dimensions, names of dimensions and a sharding (split, then partial), each at most once.", Help: "write `#dm.at<hbm, order = [1, 0], dims = [n], split = @mesh[{data}, {}], partial = {model}>`; every part may be left out"},
	{Code: "DM152", Name: "alias-cycle", Doc: "An alias is defined in terms of itself, directly or through others.", Help: "replace one of the aliases by its definition"},
	{Code: "DM153", Name: "type-too-large", Doc: "The size of a tensor in bytes, elements times element size, exceeds 2^62.", Help: "check the dimensions; no memory can hold such a tensor"},
	{Code: "DM154", Name: "bad-dense", Doc: "A dense<…> literal does not fit its type: the number or nesting of values differs from the shape, or a value is not one of the element type.", Help: "write one value for all elements, nested lists in the tensor's shape, or the bytes as a hexadecimal string"},
	{Code: "DM155", Name: "value-out-of-range", Doc: "A number does not fit into its type.", Help: "use a wider type, or another value"},
	{Code: "DM156", Name: "alias-too-long", Doc: "An alias stands for more than 64 KiB of text, because aliases of aliases repeat.", Help: "name the parts instead of nesting them"},
	{Code: "DM157", Name: "bad-file", Doc: "The attribute #dm.file<…> is not the path of a .npz file and the name of an array in it, or the path of a .npy file. Paths are relative to the program's folder and do not leave it.", Help: "write `#dm.file<\"weights.npz\", \"name\">` or `#dm.file<\"weights.npy\">`"},
})

// MissingArray and OtherArray are the codes of literals whose elements are in a file
// that cannot be read, or that has an array of another type. Package analysis/program
// registers them: it looks into the files.
const (
	MissingArray = "DM158"
	OtherArray   = "DM159"
)

// UnknownAlias is the code of an Error about an alias that is not defined. Package
// syntax/scope registers it and reports where such an alias is used.
const UnknownAlias = "DM151"
