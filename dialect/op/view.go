package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// IsView reports whether o names the elements of its operand otherwise and
// leaves them where they lie: a reshape of row-major tensors, a transpose whose
// result is stored in the order that its operand has.
func IsView(o *ir.Op) bool {
	if len(o.Operands) != 1 || len(o.Results) != 1 {
		return false
	}
	x, y := o.In(0), o.Out(0)
	if x == nil || y == nil || x.At.In() != y.At.In() {
		return false
	}
	if x.Format != nil || y.Format != nil {
		return x.Format != nil && y.Format != nil && o.Name == "dm.transpose"
	}
	if o.Name == "dm.transpose" {
		dims, ok := Dims(o, "dims", x.Rank())
		return ok && len(dims) == x.Rank() && slices.Equal(TransposedOrder(OrderOf(x), dims), OrderOf(y))
	}
	return Of(o).Is(View) && x.At.Order == nil && y.At.Order == nil
}

// OrderOf is the order in which t's dimensions lie in memory, outermost first,
// written out also where it is row-major.
func OrderOf(t *types.Tensor) []int {
	if t.At.Order != nil {
		return t.At.Order
	}
	return identity(t.Rank())
}

// TransposedOrder is the order of the result of a transpose by dims that leaves
// the elements of an operand of the given order where they lie.
func TransposedOrder(order, dims []int) []int {
	at := Inverse(dims) // where the operand's dimension went
	out := make([]int, len(order))
	for i, d := range order {
		out[i] = at[d]
	}
	return out
}
