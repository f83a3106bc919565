package format

import (
	"strings"
	"testing"

	"dmir/syntax/diag"
)

func apply(text string, edits []diag.Edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Span.Start])
		b.WriteString(e.Text)
		at = e.Span.End
	}
	b.WriteString(text[at:])
	return b.String()
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		edits               int
	}{
		{"nothing to do", "a b\n", "a b\n", 0},
		{"one blank too many", "a  b\n", "a b\n", 1},
		{"indentation and the end", "{\na\n }", "{\n  a\n}\n", 3},
		{"line ends", "a\r\nb\r\n", "a\nb\n", 2},
		{"a word is split by a line end", "a b", "a\n  b\n", 2},
		{"another text altogether", "a b", "a c", 1},
		{"from nothing", "", "a\n", 1},
		{"to nothing", "\n\n", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			edits := Edits(c.before, c.after)
			if len(edits) != c.edits {
				t.Errorf("%d edits, want %d: %v", len(edits), c.edits, edits)
			}
			if got := apply(c.before, edits); got != c.after {
				t.Errorf("applied to %q the edits give %q, want %q", c.before, got, c.after)
			}
			for i := 1; i < len(edits); i++ {
				if edits[i].Span.Start < edits[i-1].Span.End {
					t.Errorf("edit %d overlaps the one before: %v", i, edits)
				}
			}
		})
	}
}

func FuzzEdits(f *testing.F) {
	f.Add("a  b\n", "a b")
	f.Add("a\r\nb", "a\nb\n")
	f.Add("x", "y")
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := apply(before, Edits(before, after)); got != after {
			t.Errorf("from %q: got %q, want %q", before, got, after)
		}
	})
}

func TestDiff(t *testing.T) {
	if d := Diff("a.dmir", "x\n", "x\n"); d != "" {
		t.Errorf("equal texts differ:\n%s", d)
	}
	want := "--- a.dmir\n+++ a.dmir\n@@ -1,2 +1,2 @@\n module {\n-  }\n+}\n"
	if d := Diff("a.dmir", "module {\n  }\n", "module {\n}\n"); d != want {
		t.Errorf("got\n%s\nwant\n%s", d, want)
	}
}
