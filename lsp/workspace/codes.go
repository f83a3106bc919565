package workspace

import "dmir/syntax/diag"

const codeTooMany = "DM722"

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{
		Code: codeTooMany, Name: "too-many-diagnostics",
		Doc:  "An editor is shown the first thousand errors and the first thousand findings of a document. Fixing those brings the next ones.",
		Help: "the command line shows all: dmir lint",
	},
})
