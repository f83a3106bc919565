package feature

import (
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
)

// Format are the edits that lay out a file.
func Format(f *ast.File) []diag.Edit {
	return format.Edits(f.Src.Text, format.File(f))
}
