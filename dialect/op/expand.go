package op

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// number is the constant v of x's element type, which broadcasts with x.
func (w *Builder) number(x *ir.Value, v float64) *ir.Value {
	if w.failed {
		return x
	}
	t := asTensor(x.Type)
	if s, ok := x.Type.(types.Scalar); ok {
		return w.Op(Constant, nil, named("value", scalarAttr(s.Elem, v)), s).Results[0]
	}
	scalar := tensor(t, t.Elem)
	return w.Op(Constant, nil, named("value", types.SplatOf(scalar, v)), scalar).Results[0]
}

func scalarAttr(e types.Elem, v float64) types.Attr {
	if e.IsFloat() {
		return types.Float{V: v, Elem: e}
	}
	return types.Int{V: int64(v), Elem: e}
}

// scale is x · v.
func (w *Builder) scale(x *ir.Value, v float64) *ir.Value {
	return w.Binary("mul", x, w.number(x, v))
}

// plus is x + v.
func (w *Builder) plus(x *ir.Value, v float64) *ir.Value { return w.Binary("add", x, w.number(x, v)) }

// reduce applies a named reduction over dims, which stay with size 1.
func (w *Builder) reduce(kind string, x *ir.Value, dims ...int) *ir.Value {
	return w.Value("reduce", []*ir.Value{x}, []types.Named{{Name: "kind", Value: types.Keyword(kind)}, {Name: "dims", Value: IntList(dims...)}, {Name: "keep_dims", Value: types.Bool(true)}})
}

func named(name string, v types.Attr) []types.Named { return []types.Named{{Name: name, Value: v}} }

func intAttr(n int) types.Attr { return types.Int{V: int64(n)} }

// inWide runs body on operand 0 in at least f32 and rounds its value once, as
// the composites define their results for half precision.
func inWide(b *ir.Builder, o *ir.Op, body func(w *Builder, x *ir.Value) *ir.Value) []*ir.Value {
	w := NewBuilder(b, nil)
	elem := in(o, 0).Elem
	y := body(w, w.Convert(o.Operands[0], wide(elem)))
	return w.done(w.Convert(y, elem))
}

func expandLogistic(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, logistic)
}

func logistic(w *Builder, x *ir.Value) *ir.Value {
	e := w.Unary("exp", w.Unary("neg", x))
	return w.Binary("div", w.number(x, 1), w.plus(e, 1))
}

func expandSilu(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
		return w.Binary("mul", x, logistic(w, x))
	})
}

func expandGelu(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
		var bell *ir.Value
		if Str(o, "approximate") == "tanh" {
			cube := w.Binary("mul", w.Binary("mul", x, x), x)
			inner := w.Binary("add", x, w.scale(cube, 0.044715))
			bell = w.Unary("tanh", w.scale(inner, math.Sqrt(2/math.Pi)))
		} else {
			bell = w.Unary("erf", w.scale(x, math.Sqrt(0.5)))
		}
		return w.Binary("mul", w.scale(x, 0.5), w.plus(bell, 1))
	})
}

// KeepShardings gives values, which an Expand has built at b for o, the shardings that the types
// of o's results state, and returns them.
func KeepShardings(b *ir.Builder, o *ir.Op, values []*ir.Value) []*ir.Value {
	for i, r := range o.Results {
		want, t := r.Tensor(), values[i].Tensor()
		switch {
		case want == nil || t == nil || want.At.Shard.Equal(t.At.Shard):
		case values[i].Op != nil && values[i].Op.Parent == b.Block && !slices.Contains(o.Operands, values[i]):
			same := *t
			same.At.Shard = want.At.Shard
			values[i].Type = &same
		default: // an operand itself
			same := *t
			same.At.Shard = want.At.Shard
			values[i] = b.Op(Reshard, values[i:i+1:i+1], nil, &same).Results[0]
		}
	}
	return values
}
