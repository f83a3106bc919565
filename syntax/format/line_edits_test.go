package format_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/syntax/diag"
	"dmir/syntax/format"
)

func applied(t *testing.T, text string, edits []diag.Edit) string {
	t.Helper()
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.Span.Start < at || e.Span.End < e.Span.Start || e.Span.End > len(text) {
			t.Fatalf("edits %v of %d bytes", edits, len(text))
		}
		b.WriteString(text[at:e.Span.Start] + e.Text)
		at = e.Span.End
	}
	return b.String() + text[at:]
}

// The edits of lines turn one text into the other, and leave equal lines alone.
func TestLineEdits(t *testing.T) {
	for _, c := range []struct {
		before, after string
		edits         int
	}{
		{"", "", 0},
		{"a\n", "a\n", 0},
		{"", "a\n", 1},
		{"a\n", "", 1},
		{"a\nb\nc\n", "a\nB\nc\n", 1},
		{"a\nb\nc\nd\ne\n", "x\na\nb\nc\nd\ny\ne\n", 2},
		{"--- a\n+++ b\nc\n", "--- b\n+++ b\nc\n", 1},
		{"a\nb", "a\nb\nc\n", 1},
		{"a\nb\n", "a\nb", 1},
		{"a\r\nb\r\n", "x\r\na\r\nb\r\n", 1},
	} {
		edits := format.LineEdits(c.before, c.after)
		if got := applied(t, c.before, edits); got != c.after || len(edits) != c.edits {
			t.Errorf("%q → %q: %d edits to %q", c.before, c.after, len(edits), got)
		}
	}
}

func TestLineEditsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString([]string{"a", "b", "- c", "+ d", "@@ -1,2 +3,4 @@", " e", ""}[r.IntN(7)])
			if r.IntN(20) > 0 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	for range 3000 {
		before, after := text(), text()
		if got := applied(t, before, format.LineEdits(before, after)); got != after {
			t.Fatalf("%q → %q: %q", before, after, got)
		}
	}
}
