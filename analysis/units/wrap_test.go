package units

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"2048*b*n B", 0, []string{"2048*b*n B"}},
		{"2048*b*n B", 10, []string{"2048*b*n B"}},
		{"2048*b*n B", 9, []string{"2048*b*n", "B"}},
		{"32*b*n^2 + 14336*b*n + 8388608 B", 12, []string{"32*b*n^2 +", "14336*b*n +", "8388608 B"}},
		{"max(äbcdefgh, 1) B", 4, []string{"max(", "äbcd", "efgh", ", 1)", "B"}},
		{"2*batch*sequence*width FLOP", 12, []string{"2*batch*", "sequence*", "width FLOP"}},
		{"a bcdef", 3, []string{"a", "bcd", "ef"}},
	} {
		got := Wrap(c.text, c.width)
		if !slices.Equal(got, c.want) {
			t.Errorf("Wrap(%q, %d): %q, want %q", c.text, c.width, got, c.want)
		}
		for _, line := range got {
			if c.width > 0 && utf8.RuneCountInString(line) > c.width {
				t.Errorf("Wrap(%q, %d): %q is too long", c.text, c.width, line)
			}
		}
		if strings.ReplaceAll(strings.Join(got, ""), " ", "") != strings.ReplaceAll(c.text, " ", "") {
			t.Errorf("Wrap(%q, %d) changes the text: %q", c.text, c.width, got)
		}
	}
}
