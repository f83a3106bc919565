package workspace

import "dmir/syntax/diag"

var tooMany = diag.Code{
	Code: "DM722", Name: "too-many-diagnostics",
	Doc:  "An editor is shown the first thousand errors and the first thousand findings of a document. Fixing those brings the next ones.",
	Help: "the command line shows all: dmir lint",
}

// Codes documents what the language server itself says about a document.
var Codes = []diag.Code{tooMany}
