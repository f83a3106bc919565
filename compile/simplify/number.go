package simplify

import (
	"math"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// number is a constant all of whose elements are one value.
type number struct {
	elem types.Elem
	f    float64 // of floating-point types
	i    int64   // of integer types
}

// numberOf is v's value where it is such a constant.
func numberOf(v *ir.Value) (number, bool) {
	if v.Op == nil || v.Op.Name != op.Constant {
		return number{}, false
	}
	n := number{elem: v.Elem()}
	switch a := op.Attr(v.Op, "value").(type) {
	case *types.Dense:
		if a.Len() != 1 || a.Elem != n.elem {
			return n, false
		}
		if n.elem.IsFloat() {
			n.f = a.Float(0)
		} else {
			n.i = a.Int(0)
		}
	case types.Float:
		n.f = types.Round(a.V, n.elem)
	case types.Int:
		n.i, n.f = a.V, float64(a.V)
	case types.Bool:
		if a {
			n.i = 1
		}
	default:
		return n, false
	}
	return n, n.elem != types.InvalidElem
}

// is reports whether n is the number x, which is whole or a power of two; the
// sign of zero counts.
func (n number) is(x float64) bool {
	if n.elem.IsFloat() {
		return n.f == x && math.Signbit(n.f) == math.Signbit(x)
	}
	if n.elem == types.I1 {
		return x == float64(n.i&1)
	}
	return n.i == int64(x)
}

// isZero reports whether n is zero of either sign.
func (n number) isZero() bool {
	if n.elem.IsFloat() {
		return n.f == 0
	}
	return n.i == 0
}

// allOnes reports whether every bit of an integer is set.
func (n number) allOnes() bool {
	switch {
	case n.elem == types.I1:
		return n.i&1 == 1
	case n.elem.IsFloat():
		return false
	case n.elem.IsUnsigned() && n.elem.Bytes() < 8:
		return n.i == 1<<n.elem.Bits()-1
	}
	return n.i == -1
}

// sided is the constant among the two operands of o and the other operand.
// Where o does not commute only the second may be the constant.
func sided(o *ir.Op) (x *ir.Value, n number, ok bool) {
	if n, ok := numberOf(o.Operands[1]); ok {
		return o.Operands[0], n, true
	}
	if op.Of(o).Is(op.Commutative) {
		if n, ok := numberOf(o.Operands[0]); ok {
			return o.Operands[1], n, true
		}
	}
	return nil, number{}, false
}

// constant makes a constant of type t, a tensor or a scalar, with that value.
func constant(b *op.Builder, t types.Type, v float64) *ir.Value {
	switch t := t.(type) {
	case *types.Tensor:
		return b.Splat(t, v)
	case types.Scalar:
		var a types.Attr = types.Int{V: int64(v), Elem: t.Elem}
		if t.Elem.IsFloat() {
			a = types.Float{V: v, Elem: t.Elem}
		} else if t.Elem == types.I1 {
			a = types.Bool(v != 0)
		}
		return b.Value("constant", nil, []types.Named{{Name: "value", Value: a}}, t)
	}
	return nil
}

// becomes replaces o by a constant.
func becomes(o *ir.Op, v float64) bool {
	b := pass.Before(o)
	return built(b, o, constant(b, o.Results[0].Type, v))
}

// sizes are t's dimensions in numbers; ok is false where one is a symbol.
func sizes(t *types.Tensor) (shape []int64, ok bool) {
	if t == nil {
		return nil, false
	}
	shape = make([]int64, t.Rank())
	for i, d := range t.Shape {
		if shape[i], ok = d.Int(); !ok {
			return nil, false
		}
	}
	return shape, true
}

// ints converts attribute values to plain ints.
func ints(ns []int64) []int {
	out := make([]int, len(ns))
	for i, n := range ns {
		out[i] = int(n)
	}
	return out
}

// dimsOf is the list of dimensions in attribute dims of o's tensor of that rank.
func dimsOf(o *ir.Op, rank int) []int {
	ds, ok := op.Dims(o, "dims", rank)
	if !ok {
		return nil
	}
	return slices.Clone(ds)
}

func attr(name string, v types.Attr) types.Named { return types.Named{Name: name, Value: v} }

// kept are o's attributes but for those named.
func kept(o *ir.Op, but ...string) []types.Named {
	var out []types.Named
	for _, a := range o.Attrs {
		if !contains(but, a.Name) {
			out = append(out, a)
		}
	}
	return out
}
