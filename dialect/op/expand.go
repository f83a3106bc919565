package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// writer builds the ops of an expansion. Result types come from the registry's
// own inference, so an expansion states only what it computes.
type writer struct {
	b      *ir.Builder
	start  int // where the expansion begins
	failed bool
}

func newWriter(b *ir.Builder) *writer { return &writer{b: b, start: b.Index} }

// op inserts an op whose result type follows from its operands.
func (w *writer) op(name string, operands []*ir.Value, attrs ...types.Named) *ir.Value {
	return w.typed(name, nil, operands, attrs...)
}

// typed inserts an op with a result type as written (nil: inferred). After a
// failure it gives its first operand back and the expansion is void.
func (w *writer) typed(name string, result types.Type, operands []*ir.Value, attrs ...types.Named) *ir.Value {
	if w.failed {
		return operands[0]
	}
	if result != nil {
		return w.b.Op(Prefix+name, operands, attrs, result).Results[0]
	}
	o := w.b.Op(Prefix+name, operands, attrs)
	if !InferResults(o) || len(o.Results) == 0 {
		w.failed = true
		return operands[0]
	}
	return o.Results[0]
}

func (w *writer) unary(name string, x *ir.Value) *ir.Value { return w.op(name, []*ir.Value{x}) }

func (w *writer) binary(name string, x, y *ir.Value) *ir.Value {
	return w.op(name, []*ir.Value{x, y})
}

// number is the constant v of x's element type, which broadcasts with x.
func (w *writer) number(x *ir.Value, v float64) *ir.Value {
	if w.failed {
		return x
	}
	t := asTensor(x.Type)
	if s, ok := x.Type.(types.Scalar); ok {
		return w.b.Op(Constant, nil, named("value", scalarAttr(s.Elem, v)), s).Results[0]
	}
	scalar := tensor(t, t.Elem)
	return w.b.Op(Constant, nil, named("value", types.SplatOf(scalar, v)), scalar).Results[0]
}

func scalarAttr(e types.Elem, v float64) types.Attr {
	if e.IsFloat() {
		return types.Float{V: v, Elem: e}
	}
	return types.Int{V: int64(v), Elem: e}
}

// scale is x · v.
func (w *writer) scale(x *ir.Value, v float64) *ir.Value {
	return w.binary("mul", x, w.number(x, v))
}

// plus is x + v.
func (w *writer) plus(x *ir.Value, v float64) *ir.Value { return w.binary("add", x, w.number(x, v)) }

// reduce applies a named reduction over dims, which stay with size 1.
func (w *writer) reduce(kind string, x *ir.Value, dims ...int) *ir.Value {
	return w.op("reduce", []*ir.Value{x}, types.Named{Name: "kind", Value: types.Keyword(kind)},
		types.Named{Name: "dims", Value: intsAttr(dims)}, types.Named{Name: "keep_dims", Value: types.Bool(true)})
}

// to converts x to elem where it has another.
func (w *writer) to(x *ir.Value, elem types.Elem) *ir.Value {
	t := asTensor(x.Type)
	if t.Elem == elem || w.failed {
		return x
	}
	if _, ok := x.Type.(types.Scalar); ok {
		return w.typed("convert", types.Scalar{Elem: elem}, []*ir.Value{x})
	}
	return w.typed("convert", tensor(t, elem, t.Shape...), []*ir.Value{x})
}

// reshape gives x another shape with as many elements.
func (w *writer) reshape(x *ir.Value, shape ...dim.Dim) *ir.Value {
	t := asTensor(x.Type)
	if sameShape(t.Shape, shape) {
		return x
	}
	return w.typed("reshape", tensor(t, t.Elem, shape...), []*ir.Value{x})
}

// done is what an Expand returns: after a failure nil, and the block is as before.
func (w *writer) done(vs ...*ir.Value) []*ir.Value {
	if !w.failed {
		return vs
	}
	for ; w.b.Index > w.start; w.b.Index-- {
		ir.Erase(w.b.Block.Ops[w.b.Index-1])
	}
	return nil
}

func named(name string, v types.Attr) []types.Named { return []types.Named{{Name: name, Value: v}} }

func intAttr(n int) types.Attr { return types.Int{V: int64(n)} }

func intsAttr(ns []int) types.Attr {
	a := make(types.Array, len(ns))
	for i, n := range ns {
		a[i] = intAttr(n)
	}
	return a
}

// inWide runs body on operand 0 in at least f32 and rounds its value once, as
// the composites define their results for half precision.
func inWide(b *ir.Builder, o *ir.Op, body func(w *writer, x *ir.Value) *ir.Value) []*ir.Value {
	w := newWriter(b)
	elem := in(o, 0).Elem
	y := body(w, w.to(o.Operands[0], wide(elem)))
	return w.done(w.to(y, elem))
}

func expandLogistic(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, logistic)
}

func logistic(w *writer, x *ir.Value) *ir.Value {
	e := w.unary("exp", w.unary("neg", x))
	return w.binary("div", w.number(x, 1), w.plus(e, 1))
}

func expandSilu(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, func(w *writer, x *ir.Value) *ir.Value {
		return w.binary("mul", x, logistic(w, x))
	})
}

func expandGelu(b *ir.Builder, o *ir.Op) []*ir.Value {
	return inWide(b, o, func(w *writer, x *ir.Value) *ir.Value {
		var bell *ir.Value
		if Str(o, "approximate") == "tanh" {
			cube := w.binary("mul", w.binary("mul", x, x), x)
			inner := w.binary("add", x, w.scale(cube, 0.044715))
			bell = w.unary("tanh", w.scale(inner, math.Sqrt(2/math.Pi)))
		} else {
			bell = w.unary("erf", w.scale(x, math.Sqrt(0.5)))
		}
		return w.binary("mul", w.scale(x, 0.5), w.plus(bell, 1))
	})
}
