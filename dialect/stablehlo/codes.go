package stablehlo

import "dmir/syntax/diag"

// Unsupported is the code for programs that are valid and have no equivalent in the
// dialect.
const Unsupported = "DM140"

// gspmd is the code of a hint.
const gspmd = "DM145"

// openSizes is the code for sizes that a program leaves open.
const openSizes = "DM146"

// Codes are the diagnostics of this package, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: Unsupported, Name: "unsupported-import", Doc: "The imported program has an op, a type or a form of an op that the dialect has no equivalent for, such as a tensor of strings, a function of several blocks or numbers that are quantized block by block.", Help: "lower the op to others in the tool that wrote the program"},
	{Code: "DM141", Name: "import-attribute", Doc: "An attribute of an imported op is missing, or has a value that the op does not permit.", Help: "see the op in the specification of StableHLO"},
	{Code: "DM142", Name: "import-operands", Doc: "An imported op has another number of operands, results or regions than it takes, or operands of types that do not fit together.", Help: "see the op in the specification of StableHLO"},
	{Code: "DM143", Name: "import-result", Doc: "The type written for the result of an imported op is not the one that follows from its operands and attributes.", Help: "correct the type after the arrow"},
	{Code: gspmd, Name: "gspmd-sharding", Doc: "The imported program states how values are divided over devices in the strings of GSPMD, mhlo.sharding. These are not read; the program is imported as one for one device.", Help: "write the program with Shardy: jax.config.update(\"jax_use_shardy_partitioner\", True)"},
	{Code: openSizes, Name: "open-size", Doc: "The imported program leaves sizes open, as `jax.export` writes them with symbolic shapes, or they are given numbers that its own checks refuse. Sizes become numbers at import: those that the program names by their names, others by the argument and the dimension.", Help: "give each a number: --bind b=8"},
	{Code: "DM197", Name: "unsupported-export", Doc: "The op, its element type or one of its attributes has no equivalent in StableHLO.", Help: "leave the op out of what is exported"},
})
