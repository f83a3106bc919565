package op

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/dialect/dim"
)

// A place meets an element, or the padding, with the taps of its phase, where these say, and zeros between elements with all others.
func TestPhases(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 2000 {
		w := &window{}
		for range 1 + r.IntN(3) {
			w.Size = append(w.Size, 1+r.Int64N(5))
			w.Stride = append(w.Stride, 1+r.Int64N(3))
			w.Dilation = append(w.Dilation, 1+r.Int64N(4))
			w.Spread = append(w.Spread, 1+r.Int64N(4))
			w.Padding = append(w.Padding, [2]int64{r.Int64N(5)})
			w.Out = append(w.Out, dim.Const(1+r.Int64N(9)))
		}
		f := w.phases()
		if f == nil {
			continue
		}
		found++
		taps := int64(1)
		for _, n := range w.Size {
			taps *= n
		}
		for _, p := range f.All {
			for number := range taps {
				var tap []int64
				rest := number
				for _, n := range slices.Backward(w.Size) {
					tap = append([]int64{rest % n}, tap...)
					rest /= n
				}
				i := slices.IndexFunc(f.Taps[p.Begin:p.End], func(t PhaseTap) bool { return t.Number == number })
				for round := range int64(2) { // the first place of the phase, and one further on
					meets := true
					for d := range tap {
						place := p.First[d] + round*f.Period[d]
						at := place*w.Stride[d] + tap[d]*w.Dilation[d] - w.Padding[d][0]
						meets = meets && at%w.Spread[d] == 0
						if i >= 0 && at != (f.Taps[p.Begin:p.End][i].At[d]+round*f.Step[d])*w.Spread[d] {
							t.Fatalf("%+v: place %d meets %d with tap %v, phase %+v has %+v", w, place, at, tap, p, f.Taps[p.Begin:p.End][i])
						}
					}
					if meets != (i >= 0) {
						t.Fatalf("%+v: tap %v of phase %+v meets elements: %t", w, tap, p, meets)
					}
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("%d windows have phases", found)
	}
}
