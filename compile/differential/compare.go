package differential

import (
	"fmt"
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// unit is the relative error of one rounding to the type.
func unit(e types.Elem) float64 {
	switch e {
	case types.F64:
		return 0x1p-53
	case types.F32:
		return 0x1p-24
	case types.F16:
		return 0x1p-11
	case types.BF16:
		return 0x1p-8
	case types.F8E4M3FN:
		return 0x1p-4
	case types.F8E5M2:
		return 0x1p-3
	}
	return 0
}

// A result may differ by so many roundings of its largest number, or of 1, which
// is what programs compute with on the way, and so many times as far as the
// execution in another type shows.
const (
	roundings       = 64
	roundingsF64    = 1024 // long sums, of which the execution in f32 shows little
	roundingsCoarse = 12   // of 16 bits: what these do, the execution in f64 shows
	times           = 16
)

// sample is a result of another correct execution: rounding moves results by
// factor times as far as it differs.
type sample struct {
	result *tensor.Tensor
	factor float64
}

// compare reports how got differs from want, the reference's result, beyond what
// rounding explains; "" where it does not. coarse programs hold numbers of 16 bits
// somewhere.
//
// Rounding is measured over the whole result: where one element has lost digits,
// another may as well.
func compare(got, want *tensor.Tensor, samples []sample, coarse bool) string {
	if got.Elem != want.Elem || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return fmt.Sprintf("it is of type %s", got.Type())
	}
	if !want.Elem.IsFloat() {
		for i := range want.Len() {
			if g, w := got.Float(i), want.Float(i); g != w {
				return fmt.Sprintf("element %d is %v, not %v", i, g, w)
			}
		}
		return ""
	}
	var scale, moved float64
	for i := range want.Len() {
		w := want.Float(i)
		if math.IsInf(w, 0) || math.IsNaN(w) {
			continue
		}
		scale = max(scale, math.Abs(w))
		for _, o := range samples {
			if d := math.Abs(w - o.result.Float(i)); !math.IsNaN(d) {
				moved = max(moved, o.factor*d)
			}
		}
	}
	allowed := roundings * unit(want.Elem)
	if want.Elem == types.F64 {
		allowed = roundingsF64 * unit(want.Elem)
	}
	if coarse {
		allowed = roundingsCoarse * max(unit(want.Elem), 0x1p-11)
	}
	allowed = allowed*max(scale, 1) + times*moved
	worst, at := 0.0, -1
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		d := math.Abs(g - w)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if math.IsNaN(d) || math.IsInf(d, 0) {
			if slices.ContainsFunc(samples, func(o sample) bool { return finite(o.result.Float(i)) != finite(w) }) {
				continue // only the narrow type overflows
			}
			return fmt.Sprintf("element %d is %g, not %g", i, g, w)
		}
		if d > worst {
			worst, at = d, i
		}
	}
	if worst <= allowed {
		return ""
	}
	return fmt.Sprintf("element %d is %.9g, not %.9g; rounding explains %.3g", at, got.Float(at), want.Float(at), allowed)
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
