// Package pattern matches ops: which compute a value that is there already, which
// give an operand back, what an op could read in place of its operand. A match
// changes nothing and does not weigh whether it pays: the compiler rewrites IR by
// it, lint the text.
package pattern

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Unchanged is the operand that o gives back element by element, with its type
// and placement; nil where o changes something.
func Unchanged(o *ir.Op) *ir.Value {
	if len(o.Results) != 1 || len(o.Operands) == 0 || !types.Equal(o.Results[0].Type, o.Operands[0].Type) || !op.Valid(o) {
		return nil
	}
	same := false
	switch o.Name {
	case "dm.convert", "dm.copy", "dm.reshape", "dm.slice", "dm.pad": // which do nothing else than the types tell
		same = true
	case "dm.concatenate":
		same = len(o.Operands) == 1
	case "dm.broadcast":
		dims, p := op.BroadcastDims(o)
		same = p == nil && slices.IsSorted(dims) // otherwise it transposes
	case "dm.transpose", "dm.reverse":
		same = trivial(o, dimsOf(o))
	}
	if !same {
		return nil
	}
	return o.Operands[0]
}

// Undone is the op whose effect o takes back, so that o's result is that op's
// operand; nil where there is none.
func Undone(o *ir.Op) *ir.Op {
	inner, dims := Composed(o)
	if inner == nil || !types.Equal(o.Results[0].Type, inner.Operands[0].Type) || !trivial(inner, dims) {
		return nil
	}
	return inner
}

// Composed is the op that o's operand comes from, where both are transposes or
// both reverse dimensions, and the dims of one such op in place of the two;
// inner is nil otherwise.
func Composed(o *ir.Op) (inner *ir.Op, dims []int) {
	if o.Name != "dm.transpose" && o.Name != "dm.reverse" {
		return nil, nil
	}
	inner = From(o.Operands[0], o.Name)
	if inner == nil || !op.Valid(inner) || !op.Valid(o) {
		return nil, nil
	}
	first, second := dimsOf(inner), dimsOf(o)
	if o.Name == "dm.transpose" {
		for _, d := range second {
			dims = append(dims, first[d])
		}
		return inner, dims
	}
	for d := range o.In(0).Rank() { // reversed in both is not reversed
		if slices.Contains(first, d) != slices.Contains(second, d) {
			dims = append(dims, d)
		}
	}
	return inner, dims
}

// trivial reports whether o, a transpose or a reverse, would move no element if
// its dims were these.
func trivial(o *ir.Op, dims []int) bool {
	x := o.In(0)
	if o.Name == "dm.transpose" {
		return KeepsOrder(x, dims)
	}
	return !slices.ContainsFunc(dims, func(d int) bool { return !IsOne(x, d) })
}

// KeepsOrder reports whether the dimensions of x that are longer than 1 keep
// their order in a permutation.
func KeepsOrder(x *types.Tensor, dims []int) bool {
	last := -1
	for _, d := range dims {
		if IsOne(x, d) {
			continue
		}
		if d < last {
			return false
		}
		last = d
	}
	return true
}

// From is the op that v is the result of, if it is called name; else nil.
func From(v *ir.Value, name string) *ir.Op {
	if v.Op == nil || v.Op.Name != name {
		return nil
	}
	return v.Op
}

// IsOne reports whether dimension d of t has size 1.
func IsOne(t *types.Tensor, d int) bool {
	n, ok := t.Shape[d].Int()
	return ok && n == 1
}

// dimsOf is attribute dims of o, which keeps the rank of its operand.
func dimsOf(o *ir.Op) []int {
	dims, _ := op.Dims(o, "dims", o.In(0).Rank())
	return dims
}
