package pattern

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Elementwise reports whether o's operands broadcast.
func Elementwise(o *ir.Op) bool {
	return op.Of(o).Is(op.Pointwise) && !op.Of(o).Is(op.Random) && len(o.Operands) > 0
}

// WithoutBroadcast is the operand of the broadcast v that the element-wise op o
// can read wherever it reads v, because its other operands give the result its
// shape. shape is what x must be reshaped to first, nil where it is read as it
// is; x is nil where o cannot.
func WithoutBroadcast(o *ir.Op, v *ir.Value) (x *ir.Value, shape []dim.Dim) {
	b := From(v, "dm.broadcast")
	if b == nil || !op.Valid(b) {
		return nil, nil
	}
	to, p := op.BroadcastDims(b)
	if p != nil || !slices.IsSorted(to) {
		return nil, nil // it reorders dimensions
	}
	rank := b.Out(0).Rank()
	begin := rank // the first dimension that must be there
	if len(to) > 0 {
		begin = to[0]
	}
	shape = make([]dim.Dim, rank-begin)
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	for i, d := range to {
		shape[d-begin] = b.In(0).Shape[i]
	}
	x = b.Operands[0]
	if !Reads(o, v, x.Tensor().With(shape...)) {
		return nil, nil
	}
	if len(shape) == b.In(0).Rank() {
		return x, nil
	}
	return x, shape
}

// Reads reports whether the element-wise op o gives the same result with a value
// of type t wherever it reads v, which is t repeated: its other operands have the
// result's shape together, and its rules allow it (the operands of an optimizer
// have one shape).
func Reads(o *ir.Op, v *ir.Value, t *types.Tensor) bool {
	want := o.Out(0)
	if !Elementwise(o) || len(o.Operands) < 2 || want == nil || !op.Valid(o) {
		return false
	}
	for d := range want.Shape {
		covered := IsOne(want, d) && d >= want.Rank()-t.Rank()
		for _, w := range o.Operands {
			other := w.Tensor()
			if w == v || other == nil {
				continue
			}
			at := d - want.Rank() + other.Rank()
			covered = covered || at >= 0 && other.Shape[at].Equal(want.Shape[d])
		}
		if !covered {
			return false
		}
	}
	now := *o
	now.Operands = slices.Clone(o.Operands)
	for i, w := range now.Operands {
		if w == v {
			now.Operands[i] = &ir.Value{Type: t}
		}
	}
	return verify.Op(&now) == nil
}
