package workspace

import "dmir/syntax/diag"

const codeTooMany = "DM722"

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{
		Code: codeTooMany, Name: "too-many-diagnostics",
		Doc:  "An editor is shown the first thousand errors and the first thousand findings of a document. The next ones are shown when those are fixed.",
		Help: "the command line shows all: dmir lint",
	},
})
