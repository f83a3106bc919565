package machine

import (
	"testing"

	"dmir/dialect/types"
)

// The form of a sort follows from the length of its lines and how many of their elements are wanted.
func TestSortPlans(t *testing.T) {
	m, _ := Lookup("h200")
	for _, c := range []struct {
		sort     Sort
		want     SortPlan
		launches int64
	}{
		{Sort{1, 1, 1, types.F32}, SortPlan{SortTeams, 1, 256, 1, 1, false, 4}, 1},
		{Sort{1000, 33, 33, types.I64}, SortPlan{SortTeams, 32, 256, 2, 1, false, 8}, 1},
		{Sort{1000, 128, 3, types.F16}, SortPlan{SortTeams, 32, 256, 4, 1, false, 2}, 1},
		{Sort{1000, 129, 129, types.F16}, SortPlan{SortBlock, 1, 64, 4, 1, false, 2}, 1},
		{Sort{1000, 8192, 3, types.F32}, SortPlan{SortBlock, 1, 512, 16, 1, false, 4}, 1},
		{Sort{1, 4097, 4097, types.F64}, SortPlan{SortDigits, 1, 256, 8, 3, false, 8}, 16},
		{Sort{1, 8193, 8193, types.I16}, SortPlan{SortDigits, 1, 256, 16, 3, false, 2}, 4},
		{Sort{1, 1 << 24, 1 << 24, types.F32}, SortPlan{SortDigits, 1, 256, 16, 396, true, 4}, 12},
		{Sort{64, 1 << 20, 1 << 20, types.I8}, SortPlan{SortDigits, 1, 256, 16, 6, false, 1}, 2},
		{Sort{1, 1 << 24, 64, types.F32}, SortPlan{SortSelect, 1, 256, 8, 396, false, 4}, 2},
		{Sort{1, 1 << 20, 1024, types.F32}, SortPlan{SortSelect, 1, 256, 8, 32, false, 4}, 2},
		{Sort{1000, 50000, 8, types.F32}, SortPlan{SortSelect, 1, 256, 8, 1, false, 4}, 1},
		{Sort{1, 1 << 20, 1025, types.F32}, SortPlan{SortDigits, 1, 256, 16, 256, true, 4}, 12},
	} {
		if got := m.SortPlan(c.sort); got != c.want || got.Launches() != c.launches {
			t.Errorf("%+v: %+v in %d launches, want %+v in %d", c.sort, got, got.Launches(), c.want, c.launches)
		}
	}
}

// The time of an element depends on the length of its line as its digits and its network do, not as the line.
func TestSortTimes(t *testing.T) {
	m, _ := Lookup("h200")
	each := func(n, most int64, e types.Elem) float64 { // of an element
		s := Sort{max(1, 1<<26/n), n, most, e}
		return m.SortTime(s) / float64(s.Lines*s.N)
	}
	for _, c := range []struct {
		n, than int64
		factor  float64
	}{{128, 16, 4}, {8192, 1024, 1.01}, {1 << 26, 1 << 14, 1.01}, {1 << 14, 1 << 13, 1.5}} {
		if a, b := each(c.n, c.n, types.F32), each(c.than, c.than, types.F32); a > c.factor*b {
			t.Errorf("an element of lines of %d takes %g, and %g of lines of %d", c.n, a, b, c.than)
		}
	}
	if a, b := each(1<<20, 1<<20, types.F16), each(1<<20, 1<<20, types.F32); a > 0.6*b {
		t.Errorf("half as many digits take %g, and all %g", a, b)
	}
	if a, b := each(1<<20, 64, types.F32), each(1<<20, 1<<20, types.F32); a > 0.2*b {
		t.Errorf("a selection takes %g, and a sort %g", a, b)
	}
}
