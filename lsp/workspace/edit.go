package workspace

import (
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Edit replaces the text between two positions of the editor, or the whole text.
type Edit struct {
	Whole      bool
	Start, End source.Pos
	Text       string
}

// apply gives the text after the edits, each of which counts its positions in
// the text that the one before left, and the places that changed.
func apply(src *source.File, edits []Edit, enc source.Encoding) (*source.File, []change) {
	var changes []change
	for _, e := range edits {
		if e.Whole {
			changes = append(changes, change{0, src.Len(), len(e.Text)})
			src = source.New(src.Path, e.Text)
			continue
		}
		lo, hi := src.Offset(e.Start, enc), src.Offset(e.End, enc)
		if hi < lo {
			lo, hi = hi, lo
		}
		src = src.Edit(lo, hi, e.Text)
		changes = append(changes, change{lo, hi, len(e.Text)})
	}
	return src, changes
}

// change is an edit in bytes: [start, end) became length bytes.
type change struct{ start, end, length int }

// shift moves findings of the text before the changes to where they stand
// after them. One whose place was touched is dropped: it may no longer be true.
// Fixes and related places belong to the old text and are dropped.
func shift(ds []diag.Diagnostic, changes []change) []diag.Diagnostic {
	var kept []diag.Diagnostic
next:
	for _, d := range ds {
		for _, c := range changes {
			switch {
			case d.Span.End < c.start:
			case d.Span.Start >= c.end && d.Span.Start > c.start:
				by := c.length - (c.end - c.start)
				d.Span.Start += by
				d.Span.End += by
			default:
				continue next
			}
		}
		d.Fixes, d.Related = nil, nil
		kept = append(kept, d)
	}
	return kept
}
