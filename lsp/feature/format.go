package feature

import (
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// Format are the edits that lay out a file.
func Format(f *ast.File) []diag.Edit {
	return format.Edits(f.Src.Text(), format.File(f))
}

// FormatRange are the edits that lay out the lines that span touches.
func FormatRange(f *ast.File, span source.Span) []diag.Edit {
	first, last := f.Src.Pos(span.Start).Line, f.Src.Pos(span.End).Line
	if last > first && span.End == f.Src.LineStart(last) {
		last-- // a selection of whole lines ends before the first that is not selected
	}
	if first == 0 && last == f.Src.Lines()-1 {
		return Format(f)
	}
	return formatLines(f, first, last)
}

// formatLines are the edits that lay out the 0-based lines from first to last.
func formatLines(f *ast.File, first, last int) []diag.Edit {
	in := source.Span{Start: f.Src.LineStart(first), End: f.Src.LineStart(last) + len(f.Src.Line(last))}
	var out []diag.Edit
	for _, e := range format.Range(f, in) {
		if e.Span.Start >= in.Start && e.Span.End <= in.End {
			out = append(out, e)
		}
	}
	return out
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
