package edittest

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An Edit replaces the bytes [Start, End) of a text.
type Edit struct {
	Start, End int
	Text       string
}

// A Step is what an editor sends as one version: edits, each of which counts in
// the text that the one before left.
type Step struct {
	Kind  string // kind of edit, for messages
	Edits []Edit
	Whole bool // sent as the whole new text
	Look  bool // the test reads the state after it
}

// Apply is the text after an edit that fits it.
func (e Edit) Apply(text string) string { return text[:e.Start] + e.Text + text[e.End:] }

// Fit moves an edit to places that the text has and an editor can name: not
// beyond the end, not inside a character or "\r\n". So every subsequence
// is valid.
func (e Edit) Fit(text string) Edit {
	e.Start, e.End = fit(text, e.Start), fit(text, e.End)
	if e.End < e.Start {
		e.Start, e.End = e.End, e.Start
	}
	return e
}

func fit(text string, off int) int {
	off = max(0, min(off, len(text)))
	for off > 0 && off < len(text) && (!utf8.RuneStart(text[off]) || text[off] == '\n' && text[off-1] == '\r') {
		off--
	}
	return off
}

// Apply is the text after all edits of a step, and the edits as they fit.
func (s Step) Apply(text string) (string, []Edit) {
	fitting := make([]Edit, len(s.Edits))
	for i, e := range s.Edits {
		if s.Whole {
			e.Start, e.End = 0, len(text)
		}
		fitting[i] = e.Fit(text)
		text = fitting[i].Apply(text)
	}
	return text, fitting
}

// Position is the line and the column of an offset, both from 0, as the
// Language Server Protocol counts: lines end at "\n", "\r\n" and "\r"; columns
// are UTF-16 units, or bytes. It is an independent implementation, to be
// compared with the one under test.
func Position(text string, off int, units16 bool) (line, col int) {
	head := text[:off]
	start := 0
	for i := 0; i < len(head); i++ {
		if head[i] == '\n' || head[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			line, start = line+1, i+1
		}
	}
	if units16 {
		return line, len(utf16.Encode([]rune(head[start:])))
	}
	return line, off - start
}

// Show writes a case as Go source, to be kept as a regression test.
func Show(base string, steps []Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tbase: %q,\n\tsteps: []edittest.Step{\n", base)
	for _, s := range steps {
		fmt.Fprintf(&b, "\t\t{Kind: %q, Edits: []edittest.Edit{", s.Kind)
		for i, e := range s.Edits {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "{%d, %d, %q}", e.Start, e.End, e.Text)
		}
		b.WriteString("}")
		if s.Whole {
			b.WriteString(", Whole: true")
		}
		if s.Look {
			b.WriteString(", Look: true")
		}
		b.WriteString("},\n")
	}
	b.WriteString("\t},\n},\n")
	return b.String()
}
