package feature

import (
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// Format are the edits that lay out a file.
func Format(f *ast.File) []diag.Edit {
	return format.Edits(f.Src.Text, format.File(f))
}

// Replace are the edits that turn before into after: one, of the lines between
// the first and the last that differ.
func Replace(before, after string) []diag.Edit {
	if before == after {
		return nil
	}
	lo := 0
	for i := 0; i < len(before) && i < len(after) && before[i] == after[i]; i++ {
		if before[i] == '\n' {
			lo = i + 1
		}
	}
	end := 0
	for i := 1; i <= len(before)-lo && i <= len(after)-lo && before[len(before)-i] == after[len(after)-i]; i++ {
		if before[len(before)-i] == '\n' {
			end = i - 1
		}
	}
	return []diag.Edit{{Span: source.Span{Start: lo, End: len(before) - end}, Text: after[lo : len(after)-end]}}
}
