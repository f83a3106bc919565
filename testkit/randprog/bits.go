package randprog

import (
	"math"

	"dmir/dialect/types"
)

// bits is an op on the bits of exact integers.
func (w *writer) bits() bool {
	x, ok := w.find(func(v value) bool { return v.exact && takes("popcnt", 0, v.elem) })
	if !ok {
		return false
	}
	e, _ := types.ElemByName(x.elem)
	size := float64(e.Bits())
	name := w.pick("popcnt", "count_leading_zeros", "shift_left", "shift_right_logical", "shift_right_arithmetic", "bitcast")
	switch name {
	case "popcnt", "count_leading_zeros":
		w.one(name, "", w.fresh(x.elem, x.shape, 0, size, true, x), x)
		return true
	case "bitcast":
		return w.bitcast()
	case "shift_right_logical":
		if x.lo < 0 { // its bits are those of a large number
			x = w.one("relu", "", w.fresh(x.elem, x.shape, 0, max(0, x.hi), true, x), x)
		}
	}
	by := float64(w.r.IntN(4))
	if w.chance(6) {
		by = size + float64(w.r.IntN(20)) // all bits go
	}
	n := w.constant(x.elem, by)
	lo, hi := min(0, x.lo), max(0, x.hi)
	if name == "shift_left" {
		lo, hi = lo*math.Exp2(n.hi), hi*math.Exp2(n.hi)
		if n.hi >= size {
			lo, hi = 0, 0
		}
		if max(-lo, hi) > limit(x.elem) {
			return false
		}
	} else if n.hi >= size {
		lo, hi = min(-1, lo), 0
	}
	shape := x.shape
	if v, found := w.find(func(v value) bool { return v.exact && v.elem == x.elem && v.lo >= 0 && v.hi <= 3 && n.hi <= 3 }); found && name != "shift_left" {
		if s, fits := joined(x.shape, v.shape); fits { // each element by its own number
			n, shape = v, s
		}
	}
	w.one(name, "", w.fresh(x.elem, shape, min(lo, -b2f(lo < 0)), hi, true, x, n), x, n)
	return true
}

func b2f(b bool) float64 { return float64(b2i(b)) }

// bitcast takes the bits of a value as another type and back.
func (w *writer) bitcast() bool {
	to := map[string][]string{
		"f64": {"i64", "ui64"}, "f32": {"i32", "ui32"}, "f16": {"i16", "ui16", "bf16"}, "bf16": {"i16", "ui16", "f16"}, "f8E4M3FN": {"i8", "ui8"}, "f8E5M2": {"i8", "ui8"},
		"i64": {"f64", "ui64"}, "i32": {"ui32"}, "ui32": {"i32"}, "i16": {"ui16"}, "ui16": {"i16"}, "i8": {"ui8"}, "ui8": {"i8"},
	}
	x, ok := w.find(func(v value) bool { return to[v.elem] != nil && (v.float() || v.exact) })
	if !ok {
		return false
	}
	y := w.fresh(w.pick(to[x.elem]...), x.shape, 0, 0, false, x)
	w.line("bitcast", "", "", []value{y}, []value{x}) // y is no operand of others: it may be any number
	w.one("bitcast", "", w.fresh(x.elem, x.shape, x.lo, x.hi, x.exact, x), y)
	return true
}
