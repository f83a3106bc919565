package workspace

import (
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Edit replaces the text between two positions of the editor, or the whole text.
type Edit struct {
	Whole      bool
	Start, End source.Pos
	Text       string
}

// apply returns the text after the edits, each of which counts its positions in
// the text that the one before left, and the steps to it.
func apply(src *source.File, edits []Edit, enc source.Encoding) (*source.File, []step) {
	var steps []step
	for _, e := range edits {
		c := parse.Change{End: src.Len(), Length: len(e.Text)}
		if e.Whole {
			src = source.New(src.Path, e.Text)
		} else {
			c.Start, c.End = src.Offset(e.Start, enc), src.Offset(e.End, enc)
			if c.End < c.Start {
				c.Start, c.End = c.End, c.Start
			}
			src = src.Edit(c.Start, c.End, e.Text)
		}
		steps = append(steps, step{Change: c, src: src})
	}
	return src, steps
}

// shift moves findings of the text before the steps to where they stand after
// them. One whose place was touched or whose line has another text now is dropped:
// it may no longer be true. Fixes and related places belong to the old text and are
// dropped.
func shift(ds []diag.Diagnostic, old *source.File, steps []step) []diag.Diagnostic {
	if len(steps) == 0 {
		return ds
	}
	src := steps[len(steps)-1].src
	// Of each step, the lines that it touches in the text before it: no others have another text.
	touched := make([]source.Span, len(steps))
	before := old
	for i, c := range steps {
		last := before.Pos(c.End).Line
		touched[i] = source.Span{Start: before.LineStart(before.Pos(c.Start).Line), End: before.LineStart(last) + len(before.Line(last))}
		before = c.src
	}
	kept := make([]diag.Diagnostic, 0, len(ds))
next:
	for _, d := range ds {
		was, near := d.Span.Start, false
		for i, c := range steps {
			near = near || touched[i].Contains(d.Span.Start)
			switch {
			case d.Span.End < c.Start:
			case d.Span.Start >= c.End && d.Span.Start > c.Start:
				d.Span.Start += c.By()
				d.Span.End += c.By()
			default:
				continue next
			}
		}
		if near && old.Line(old.Pos(was).Line) != src.Line(src.Pos(d.Span.Start).Line) {
			continue
		}
		d.Fixes, d.Related = nil, nil
		kept = append(kept, d)
	}
	return kept
}

// Edited is the text after edits, each of which counts its positions in the text that the one before left.
func Edited(src *source.File, edits []Edit, enc source.Encoding) *source.File {
	src, _ = apply(src, edits, enc)
	return src
}
