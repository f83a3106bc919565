package patterns

import (
	"testing"

	"dmir/analysis/report"
)

func TestBraille(t *testing.T) {
	for _, c := range []struct {
		name         string
		down, across int
		counts       []int64
		want         string
	}{
		{"nothing drawn", 0, 0, nil, ""},
		{"nothing stored", 1, 2, []int64{0, 0}, "⠀\n"},
		{"all stored", 4, 2, []int64{1, 1, 1, 1, 1, 1, 1, 1}, "⣿\n"},
		{"a diagonal", 4, 4, []int64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, "⠑⢄\n"},
		{"an odd size", 5, 1, []int64{0, 0, 0, 0, 3}, "⠀\n⠁\n"},
		{"fewer than the mean", 1, 2, []int64{1, 9}, "⠈\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Braille(&report.Pattern{Down: c.down, Across: c.across, Counts: c.counts}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
