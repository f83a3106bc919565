package feature

import (
	"strings"

	"dmir/syntax/ast"
)

// Fold is a range of 0-based lines that can be folded into the first of them.
type Fold struct {
	First, Last int
	Comment     bool
	Types       bool // of a signature or of an op: mostly types
}

// Folds are the regions and the runs of comment lines of a file, and the signatures
// and ops that take several lines. The line of a region's closing brace stays
// visible, and that of its opening brace if it ends a signature: folds that end
// where others begin are no folds to most editors.
func Folds(f *ast.File) []Fold {
	var out []Fold
	ast.Walk(f.Items, func(o *ast.Op) bool {
		head := Fold{First: f.Src.Pos(o.Off).Line, Last: f.Src.Pos(o.Off + int(o.Len)).Line, Types: true}
		if len(o.Regions) > 0 {
			head.Last = f.Src.Pos(o.Off+int(o.Regions[0].Open)).Line - 1
		}
		if head.Last > head.First {
			out = append(out, head)
		}
		for _, r := range o.Regions {
			end := int32(r.Close)
			if end < 0 {
				end = o.Len
			}
			first := f.Src.Pos(o.Off + int(r.Open)).Line
			last := f.Src.Pos(o.Off+int(end)).Line - 1
			if last > first {
				out = append(out, Fold{First: first, Last: last})
			}
		}
		return true
	})
	start := -1
	for n := 0; n <= f.Src.Lines(); n++ {
		comment := n < f.Src.Lines() && strings.HasPrefix(strings.TrimSpace(f.Src.Line(n)), "//")
		switch {
		case comment && start < 0:
			start = n
		case !comment && start >= 0:
			if n-1 > start {
				out = append(out, Fold{First: start, Last: n - 1, Comment: true})
			}
			start = -1
		}
	}
	return out
}
