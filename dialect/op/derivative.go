package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Derivative is how gradients flow back through an op.
type Derivative struct {
	// Doc is one or a few sentences for the reference page: the formula, what
	// holds at kinks or, where Rule is nil, why nothing flows. dx is the
	// cotangent of operand x, dy that of result y.
	Doc string
	// rule gives cotangents of the operands. nil: none flows; the op is constant
	// almost everywhere, or its results are no floating-point numbers.
	rule func(g *backward)
	// writtenOut reports whether o is differentiated as the ops that its Expand writes.
	writtenOut func(o *ir.Op) bool
}

// WrittenOut reports whether o, which has an Expand, is differentiated as the ops that it is written out as.
func (d *Def) WrittenOut(o *ir.Op) bool {
	return d.Expand != nil && (d.Derivative == nil || d.Derivative.writtenOut != nil && d.Derivative.writtenOut(o))
}

// Flat reports whether no gradient flows through the op: its results are
// constant almost everywhere or of no floating-point type.
func (d *Derivative) Flat() bool { return d != nil && d.rule == nil }

// backward is one application of a rule: it appends ops through its builder and
// leaves the operands' cotangents in dx.
type backward struct {
	*Builder
	o       *ir.Op
	dy      []*ir.Value // cotangents of the results; nil is zero
	want    []bool      // which operands' cotangents are asked for
	dx      []*ir.Value
	problem *Problem
}

// SizesCode is the code of Derive's problem with an op that could be differentiated if
// its sizes were numbers.
const SizesCode = "DM116"

// Derive emits at b, which must stand behind o, ops that compute the cotangents
// of o's operands from those of its results. dy has an entry for each result,
// nil where the cotangent is zero; want tells of which operands a cotangent is
// asked for. The answer has an entry for each operand, of the operand's shape
// and element type, nil where nothing flows. A rule may give o one more of its
// optional results, which then stands behind those that it has. ok is false for
// ops without a derivative; a problem is why this one cannot be differentiated,
// and then no ops were inserted.
func Derive(b *ir.Builder, o *ir.Op, dy []*ir.Value, want []bool) (dx []*ir.Value, ok bool, p *Problem) {
	d := Of(o)
	if d == nil || d.Derivative == nil {
		return nil, false, nil
	}
	g := &backward{Builder: NewBuilder(b, nil), o: o, dy: dy, want: make([]bool, len(want)), dx: make([]*ir.Value, len(o.Operands))}
	for i, v := range o.Operands { // without elements there is no gradient
		g.want[i] = want[i] && !noElements(v)
	}
	nothing := slices.Contains(want, true) && !slices.Contains(g.want, true)
	if d.Derivative.rule == nil || nothing || len(o.Results) > 0 && !slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return !noElements(v) }) {
		return g.dx, true, nil
	}
	if !Valid(o) {
		return nil, true, problem("DM128", -1, "%s is not valid", o.Name)
	}
	if d.WrittenOut(o) { // which it has no numbers for
		g.failed = true
	} else {
		d.Derivative.rule(g)
	}
	for i, v := range g.dx {
		switch {
		case v == nil:
		case !g.want[i] || !in(o, i).Elem.IsFloat():
			g.dx[i] = nil
		case !sameShape(asTensor(v.Type).Shape, in(o, i).Shape):
			g.failed = true
		default:
			g.dx[i] = g.Convert(v, in(o, i).Elem)
		}
	}
	if g.done() == nil && g.failed || g.problem != nil {
		if p = g.problem; p == nil {
			p = problem(SizesCode, -1, "the derivative of %s needs sizes in numbers, and some are symbols", o.Name).
				help("bind the symbols, or write numbers")
		}
		g.failed = true
		g.done()
		return nil, true, p
	}
	return g.dx, true, nil
}

// noElements reports whether v is a tensor with a dimension of size 0.
func noElements(v *ir.Value) bool {
	t := v.Tensor()
	return t != nil && slices.ContainsFunc(t.Shape, dim.Dim.IsZero)
}

// refuse ends the rule with a reason.
func (g *backward) refuse(format string, args ...any) *Problem {
	g.problem = problem("DM128", -1, format, args...)
	return g.problem
}

// x and y are operand and result i.
func (g *backward) x(i int) *ir.Value { return g.o.Operands[i] }
func (g *backward) y(i int) *ir.Value { return g.o.Results[i] }

// wide brings v to the type in which half precision is computed.
func (w *Builder) wide(v *ir.Value) *ir.Value { return w.Convert(v, wide(asTensor(v.Type).Elem)) }

// give adds v to operand i's cotangent, summed over what broadcast added.
func (g *backward) give(i int, v *ir.Value) {
	if !g.want[i] || g.failed {
		return
	}
	if _, scalar := v.Type.(types.Scalar); !scalar {
		v = g.sumTo(v, in(g.o, i).Shape)
	}
	if old := g.dx[i]; old != nil {
		if asTensor(old.Type).Elem != asTensor(v.Type).Elem {
			old, v = g.wide(old), g.wide(v)
		}
		v = g.Binary("add", old, v)
	}
	g.dx[i] = v
}

// sumTo adds v up over the dimensions along which shape would broadcast to v's.
func (w *Builder) sumTo(v *ir.Value, shape []dim.Dim) *ir.Value {
	have := asTensor(v.Type).Shape
	extra := len(have) - len(shape)
	if extra < 0 {
		w.failed = true
		return v
	}
	dims := identity(len(have))[:extra]
	for i, d := range shape {
		if isOne(d) && !isOne(have[extra+i]) {
			dims = append(dims, extra+i)
		}
	}
	if len(dims) == 0 {
		return v
	}
	return w.Reshape(w.sum(v, dims...), shape...)
}

// sum adds v up over dims, which vanish.
func (w *Builder) sum(v *ir.Value, dims ...int) *ir.Value {
	if len(dims) == 0 {
		return v
	}
	return w.Value("reduce", []*ir.Value{v}, []types.Named{{Name: "kind", Value: types.Keyword("add")}, {Name: "dims", Value: IntList(dims...)}})
}

// zeros is a tensor of x's shape and element type full of zeros.
func (w *Builder) zeros(x *types.Tensor) *ir.Value { return w.filled(x, 0) }

// filled is a tensor of x's shape and element type full of v.
func (w *Builder) filled(x *types.Tensor, v float64) *ir.Value {
	s := w.number(&ir.Value{Type: x}, v)
	if x.Rank() == 0 || w.failed {
		return s
	}
	return w.Value("broadcast", []*ir.Value{s}, nil, tensor(x, x.Elem, x.Shape...))
}

func (w *Builder) mul(x, y *ir.Value) *ir.Value { return w.Binary("mul", x, y) }
func (w *Builder) sub(x, y *ir.Value) *ir.Value { return w.Binary("sub", x, y) }
func (w *Builder) add(x, y *ir.Value) *ir.Value { return w.Binary("add", x, y) }
func (w *Builder) div(x, y *ir.Value) *ir.Value { return w.Binary("div", x, y) }

func (w *Builder) neg(x *ir.Value) *ir.Value { return w.Unary("neg", x) }

func (w *Builder) compare(direction string, x, y *ir.Value) *ir.Value {
	return w.Value("compare", []*ir.Value{x, y}, named("direction", types.Keyword(direction)))
}

func (w *Builder) choose(pred, x, y *ir.Value) *ir.Value {
	return w.Value("select", []*ir.Value{pred, x, y}, nil)
}

// when is x where pred holds and 0 elsewhere.
func (w *Builder) when(pred, x *ir.Value) *ir.Value { return w.choose(pred, x, w.number(x, 0)) }

func flat(doc string) *Derivative { return &Derivative{Doc: doc} }

// SumTo emits at b the sum of v over the dimensions along which a tensor of the
// given shape would be repeated to have v's; v itself where there are none.
func SumTo(b *ir.Builder, v *ir.Value, shape []dim.Dim) *ir.Value {
	return NewBuilder(b, nil).sumTo(v, shape)
}

// Zeros emits at b a tensor, or a scalar, of type t full of zeros.
func Zeros(b *ir.Builder, t types.Type) *ir.Value { return Filled(b, t, 0) }

// Filled emits at b a tensor, or a scalar, of type t whose elements are all n.
func Filled(b *ir.Builder, t types.Type, n float64) *ir.Value {
	w := NewBuilder(b, nil)
	if s, ok := t.(types.Scalar); ok {
		return w.number(&ir.Value{Type: s}, n)
	}
	return w.filled(asTensor(t), n)
}

// Add emits at b the sum of two values of one type.
func Add(b *ir.Builder, x, y *ir.Value) *ir.Value { return NewBuilder(b, nil).add(x, y) }

// Convert emits at b v in another element type; v itself where it has that.
func Convert(b *ir.Builder, v *ir.Value, elem types.Elem) *ir.Value {
	return NewBuilder(b, nil).Convert(v, elem)
}
