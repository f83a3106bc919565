package diag_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// TestExcerpt holds that carets stand under what they mean, also far into lines
// that no terminal shows whole.
func TestExcerpt(t *testing.T) {
	for _, c := range []struct{ name, before, marked, after string }{
		{"a short line", "  ", "dm.exp", " %x"},
		{"the end of a line", "  dm.exp", "", ""},
		{"accents", "  // é è ", "dm.exp", " – ü"},
		{"a long line", strings.Repeat("a ", 5000), "dm.exp", strings.Repeat(" b", 5000)},
		{"long and wide", strings.Repeat("𝔻é ", 5000), "dm.exp", strings.Repeat(" é𝔻", 5000)},
		{"tabs and controls", "\t\x1b[31m", "dm.exp", "\x00"},
		{"not UTF-8", strings.Repeat("\xff\x80", 300), "dm.exp", strings.Repeat("\x80", 300)},
		{"a long mark", "  ", strings.Repeat("x", 1000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := source.New("a.dmir", "\n"+c.before+c.marked+c.after+"\n")
			var b strings.Builder
			start := 1 + len(c.before)
			diag.Text(&b, src, diag.Diagnostic{Code: "DM000", Span: source.Span{Start: start, End: start + len(c.marked)}}, diag.Style{})
			lines := strings.Split(b.String(), "\n")
			shown, carets := []rune(lines[1]), []rune(lines[2])
			if n := len(shown); n > 180 {
				t.Errorf("the excerpt has %d columns", n)
			}
			first, end := strings.Index(lines[2], "^"), strings.LastIndex(lines[2], "^")+1
			if first < 0 || string(carets[:first]) != "    |"+strings.Repeat(" ", first-5) {
				t.Fatalf("carets: %q", lines[2])
			}
			want := c.marked
			if utf8.RuneCountInString(want) > end-first {
				want = want[:end-first]
			}
			if got := string(shown[first:min(first+len(want), len(shown))]); got != want {
				t.Errorf("the carets stand under %q, want %q:\n%s\n%s", got, want, lines[1], lines[2])
			}
		})
	}
}
