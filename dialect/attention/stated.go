package attention

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Causal is what states the dm.attention o without its mask, where that hides from each query the
// later keys and no others: a constant, or numbers that the program computes of the indices. A
// kernel then reads no mask and leaves hidden scores out. ok is false for another mask.
func Causal(o *ir.Op) (operands []*ir.Value, attrs []types.Named, ok bool) {
	n := op.OperandNumber(o, "mask")
	if o.Name != "dm.attention" || o.Bad || n < 0 || !op.Valid(o) {
		return nil, nil, false
	}
	q, k := o.In(0), o.In(1)
	r := q.Rank()
	queries, keys := &atom{size: q.Shape[r-2]}, &atom{size: k.Shape[r-2]}
	shape, x := slices.Clone(q.Shape[:r-1]), axes{}
	for _, size := range shape[:r-2] {
		x = append(x, []*atom{{size: size}})
	}
	shape, x = append(shape, keys.size), append(x, []*atom{queries}, []*atom{keys})
	f := &finder{indexed: true, units: true, keys: []*atom{keys}}
	y, fits := aligned(o.In(n), shape, x)
	if !fits {
		return nil, nil, false
	}
	c := f.causalNumbers(o.Operands[n], y, 1)
	later, known := keys.size.Sub(queries.size).Int()
	if c == nil || !known || later < 0 || c.shift != later || c.key != keys || c.query != queries ||
		c.finite() && math.Abs(scaleOf(o, q.Shape[r-1])) > mostScale {
		return nil, nil, false
	}
	attrs = slices.DeleteFunc(slices.Clone(o.Attrs), func(a types.Named) bool { return a.Name == "causal" })
	return slices.Delete(slices.Clone(o.Operands), n, n+1), append(attrs, types.Named{Name: "causal", Value: types.Bool(true)}), true
}

// scaleOf is the scale of the dm.attention o with queries of the depth; unknown ones are at most 1.
func scaleOf(o *ir.Op, depth dim.Dim) float64 {
	if o.Attr("scale") != nil {
		return op.Float(o, "scale")
	}
	if n, ok := depth.Int(); ok && n > 0 {
		return 1 / math.Sqrt(float64(n))
	}
	return 1
}
