package feature

import (
	"testing"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/dialect/dim"
)

// Labels have one width whatever the figures, and no figure has a space in it.
func TestLabels(t *testing.T) {
	n, m := dim.Sym("n"), dim.Sym("m")
	for _, c := range []struct {
		ns    float64
		moved dim.Dim
		want  string
	}{
		{34_700, dim.Const(50_331_648), "34.7µs  50MB"},
		{1, dim.Const(4), "1.00ns    4B"},
		{0.5, dim.Const(999), " 500ps  999B"},
		{999_999, dim.Const(1000), "1.00ms 1.0kB"},
		{0, dim.Const(0), "          0B"},
		{3e9, dim.Const(9_949_999), " 3.00s 9.9MB"},
		{5e12, dim.Const(9_950_000), " 5000s  10MB"},
		{5e16, dim.Const(999_500_000), "5e+07s 1.0GB"},
		{1e4, dim.Const(999_499_999), "10.0µs 999MB"},
		{1e4, dim.Const(1 << 62), "10.0µs 4.6EB"},
		{0, n.Scale(4096), "    4096*n\u00a0B"},
		{0, n.Scale(12288).Add(m.Scale(4096)), "      f(m,n)"},
		{0, n.Scale(123_456_789), "        f(n)"}, // with a mark before it the formula has no place
		{0, dim.Const(1 << 62).Add(dim.Const(1 << 62)), "      >9.2EB"},
		{0, dim.Sym("batch").Add(dim.Sym("sequence")), "  f(2 sizes)"},
	} {
		l := labelOf(cost.Time{Ns: c.ns, Known: c.ns > 0}, c.moved)
		got := l.Column()
		if utf8.RuneCountInString(got) != LabelWidth {
			t.Errorf("%q has %d characters", got, utf8.RuneCountInString(got))
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A label with a mark is no wider: a measured time leaves out what has no place
// beside it.
func TestMarkedLabels(t *testing.T) {
	n := dim.Sym("n")
	formula := labelOf(cost.Time{}, n.Scale(4096))
	stale, measured := formula, formula
	stale.Mark = MarkStale
	measured.measured(34_700)
	longest := labelOf(cost.Time{}, n.Scale(12_345_678))
	longest.Mark = MarkStale
	for _, c := range []struct {
		l              Label
		label, columns string
	}{
		{stale, "≈4096*n\u00a0B", "   ≈4096*n\u00a0B"},
		{longest, "≈f(n)", "      ≈ f(n)"},
		{measured, "34.7µs•", "34.7µs•     "},
	} {
		if got := c.l.String(); got != c.label {
			t.Errorf("%q, want %q", got, c.label)
		}
		if got := c.l.Column(); got != c.columns {
			t.Errorf("%q, want %q", got, c.columns)
		}
	}
}
