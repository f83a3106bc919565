package scope

import "dmir/syntax/diag"

// Codes are the diagnostics of this package, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM151", Name: "unknown-alias", Doc: "A type or attribute alias is used that its section of the file does not define. A line `// -----` begins a new section.", Help: "define it at the top of the file: `!name = type` or `#name = attribute`"},
	{Code: "DM169", Name: "unknown-function", Doc: "A call names a function that neither its module nor a module around it has.", Help: "define it, or declare it with `func.func private`"},
	{Code: "DM170", Name: "redefined-symbol", Doc: "Two functions of a module, or two other ops that define symbols, have the same name.", Help: "rename one of them"},
	{Code: "DM171", Name: "unknown-block", Doc: "A successor names a block that the region does not have.", Help: "correct the label"},
	{Code: "DM173", Name: "redefined-alias", Doc: "An alias or a block label is defined twice.", Help: "rename one of them"},
})
