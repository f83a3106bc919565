package attention

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// lookedUp bounds the biases that are looked up in a table, as T5 does: they are
// learned with the scores and of their size.
const lookedUp = 1000

// beside reports whether scores that are put in place of others, or to which put is added, take no part
// beside those that all masks which are added make of the others. They would for a query all of whose
// other keys such a mask hides as well, so it must be one that hides nothing: one whose elements are bounded
// by what it is computed from.
func (f *finder) beside(put float64, list ...masked) bool {
	for _, m := range list {
		if !m.chooses() {
			in, ok := f.bounds(m.v, map[*ir.Value]op.Interval{})
			if !ok {
				return false
			}
			put += m.behind * (max(0, in.Hi) - min(0, in.Lo))
		}
	}
	return masks(put)
}

// bounds is an interval that holds every element of v; not ok where none is known.
// Intervals are those of exact numbers, as far as the type holds them.
func (f *finder) bounds(v *ir.Value, known map[*ir.Value]op.Interval) (b op.Interval, ok bool) {
	v = origin(v)
	if b, ok := known[v]; ok {
		return b, true
	}
	o, t := v.Op, v.Tensor()
	if f.tired() || o == nil || t == nil || len(o.Results) != 1 || !op.Valid(o) {
		return b, false
	}
	if b, ok = f.bound(o, known); !ok || math.IsNaN(b.Lo) || math.IsNaN(b.Hi) || !fits(b, t.Elem) {
		return b, false
	}
	known[v] = b
	return b, true
}

// bound is bounds for the result of o.
func (f *finder) bound(o *ir.Op, known map[*ir.Value]op.Interval) (b op.Interval, ok bool) {
	var in []op.Interval
	operands := func(from int) bool {
		for _, v := range o.Operands[from:] {
			x, ok := f.bounds(v, known)
			if !ok {
				return false
			}
			in = append(in, x)
		}
		return true
	}
	switch o.Name {
	case op.Constant:
		d, ok := op.Attr(o, "value").(*types.Dense)
		if !ok || d.Len() == 0 {
			return b, false
		}
		b = op.Interval{Lo: d.Float(0), Hi: d.Float(0)}
		for i := range d.Len() {
			b.Lo, b.Hi = min(b.Lo, d.Float(i)), max(b.Hi, d.Float(i))
		}
		return b, true
	case "dm.iota":
		d, ok := op.Dim(o, "dim", o.Out(0).Rank())
		if !ok {
			return b, false
		}
		n, ok := o.Out(0).Shape[d].Int()
		first := op.Float(o, "start")
		last := first + op.Float(o, "step")*float64(max(n-1, 0))
		return hull(first, last), ok
	case "dm.embedding", "dm.gather":
		return op.Interval{Lo: -lookedUp, Hi: lookedUp}, o.Out(0).Elem.IsFloat()
	case "dm.transpose", "dm.reshape", "dm.broadcast", "dm.slice", "dm.reverse":
		if !operands(0) {
			return b, false
		}
		return in[0], true
	case "dm.convert":
		if !operands(0) {
			return b, false
		}
		if b = in[0]; !o.Out(0).Elem.IsFloat() {
			b = op.Interval{Lo: math.Floor(b.Lo), Hi: math.Ceil(b.Hi)}
		}
		return b, true
	case "dm.select":
		if !operands(1) {
			return b, false
		}
		return hull(in[0].Lo, in[0].Hi, in[1].Lo, in[1].Hi), true
	case "dm.add", "dm.sub", "dm.mul", "dm.div", "dm.pow", "dm.max", "dm.min":
		if !operands(0) || o.Name == "dm.div" && (in[1].Lo <= 0 && in[1].Hi >= 0 || !o.Out(0).Elem.IsFloat()) || o.Name == "dm.pow" && in[0].Lo <= 0 {
			return b, false
		}
		x, y, of := in[0], in[1], arithmetic[o.Name]
		return hull(of(x.Lo, y.Lo), of(x.Lo, y.Hi), of(x.Hi, y.Lo), of(x.Hi, y.Hi)), true
	}
	if d := op.Of(o); len(o.Operands) == 1 && d != nil && d.Scalar != nil && d.Scalar.Range != nil {
		if !operands(0) {
			in = []op.Interval{{Lo: math.Inf(-1), Hi: math.Inf(1)}} // a sine, or what saturates
		}
		return d.Scalar.Range(in[0]), true
	}
	return b, false
}

// arithmetic are functions that rise or fall in each operand where the other is
// fixed, so that their extremes are at the ends of intervals.
var arithmetic = map[string]func(x, y float64) float64{
	"dm.add": func(x, y float64) float64 { return x + y },
	"dm.sub": func(x, y float64) float64 { return x - y },
	"dm.mul": func(x, y float64) float64 { return x * y },
	"dm.div": func(x, y float64) float64 { return x / y },
	"dm.pow": math.Pow,
	"dm.max": func(x, y float64) float64 { return max(x, y) },
	"dm.min": func(x, y float64) float64 { return min(x, y) },
}

// hull is the least interval that holds the numbers.
func hull(numbers ...float64) op.Interval {
	b := op.Interval{Lo: math.Inf(1), Hi: math.Inf(-1)}
	for _, n := range numbers {
		b.Lo, b.Hi = min(b.Lo, n), max(b.Hi, n)
	}
	return b
}

// fits reports whether numbers in b neither wrap nor overflow in elements of type e.
func fits(b op.Interval, e types.Elem) bool {
	lo, hi := -math.MaxFloat32, math.MaxFloat32
	switch bits := float64(e.Bits()); {
	case e == types.I1:
		lo, hi = 0, 1
	case e.IsFloat() && e.Bytes() < 4 && e != types.BF16:
		lo, hi = -240, 240 // of the narrowest
		if e == types.F16 {
			lo, hi = -65504, 65504
		}
	case e.IsUnsigned():
		lo, hi = 0, math.Exp2(bits)-1
	case e.IsInt():
		lo, hi = -math.Exp2(bits-1), math.Exp2(bits-1)-1
	}
	return lo <= b.Lo && b.Hi <= hi
}
