package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// statistic describes a value of the elements along dimensions, which vanish or
// stay with size 1.
type statistic struct {
	name, summary, doc string
	foreign            string // what others call it
	flop               int64  // an element
	attrs              []AttrDef
	verify             func(o *ir.Op) *Problem
	// body is the value of x, in at least f32, over n elements along dims, which
	// stay with size 1.
	body       func(w *Builder, o *ir.Op, x *ir.Value, dims []int) *ir.Value
	derivative *Derivative
	linear     func(o *ir.Op) [][]int
	sparse     *Sparse
}

func (s statistic) def() *Def {
	return &Def{
		Name: s.name, Family: Normalization, Class: ClassNormalization,
		Summary: s.summary,
		Foreign: []Foreign{{Names: s.foreign}},
		Doc:     s.doc,
		Example: "func.func @example(%x: tensor<2x4xf32>) -> tensor<2xf32> {\n  %y = dm." + s.name + " %x, dims = [1] : (tensor<2x4xf32>) -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}",
		Operands: []Param{
			{Name: "x", Elems: floats, Doc: "any shape"},
		},
		Results: []Param{{Name: "y", Elems: floats, Doc: "x's sizes without `dims`, x's element type"}},
		Attrs: append([]AttrDef{
			{Name: "dims", Kind: KindInts, Optional: true, Doc: "dimensions that it is taken over; all where absent"},
			{Name: "keep_dims", Kind: KindBool, Default: types.Bool(false), Doc: "these dimensions stay with size 1"},
		}, s.attrs...),
		Traits:  Pure,
		Factors: rowsOf(reducedDims), Linear: s.linear,
		Divides: "The dimensions that `dims` does not name.",
		Infer:   inferReduce,
		Verify:  s.verify,
		FLOP:    perElement(s.flop),
		Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
			dims, ok := reducedDims(o)
			if !ok {
				return nil
			}
			return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
				return w.Reshape(s.body(w, o, x, dims), out(o, 0).Shape...)
			})
		},
		Reduced:    reducedDims,
		Orders:     AnyOrders,
		Derivative: s.derivative,
		Sparse:     s.sparse,
	}
}

func statistics() []*Def {
	var defs []*Def
	for _, s := range []statistic{
		{
			name: "mean", summary: "mean along dimensions", foreign: "reduce_mean average",
			doc:    "`y = Σ x / n` over the n elements along `dims`; NaN of none. " + wideDoc + "\n\nCounts 1 FLOP for each element of x: the additions and a division.",
			flop:   1,
			linear: linearIn([]int{0}),
			sparse: averaged,
			body: func(w *Builder, o *ir.Op, x *ir.Value, dims []int) *ir.Value {
				return w.over(w.reduce("add", x, dims...), w.elements(in(o, 0), dims))
			},
		},
		{
			name: "variance", summary: "variance along dimensions", foreign: "var",
			doc: "`y = Σ (x - mean x)² / (n - correction)` over the n elements along `dims`; with at most `correction` elements, divided by 0. " + wideDoc +
				"\n\nCounts 4 FLOP for each element of x: the sum for the mean, subtraction, square and sum.",
			flop:  4,
			attrs: []AttrDef{{Name: "correction", Kind: KindInt, Default: types.Int{V: 1}, Doc: "subtracted from the number of elements, as in PyTorch: 1 for a sample, 0 for all there is"}},
			verify: func(o *ir.Op) *Problem {
				if c := Int(o, "correction"); c < 0 {
					return attrProblem("DM115", "correction", "correction = %d is negative", c).help("write 0 for the variance of all there is, 1 for that of a sample")
				}
				return nil
			},
			body: func(w *Builder, o *ir.Op, x *ir.Value, dims []int) *ir.Value {
				n := w.elements(in(o, 0), dims)
				centred := w.sub(x, w.over(w.reduce("add", x, dims...), n))
				return w.over(w.reduce("add", w.mul(centred, centred), dims...), max(n-float64(Int(o, "correction")), 0))
			},
		},
		{
			name: "logsumexp", summary: "logarithm of the sum of exponentials along dimensions", foreign: "reduce_log_sum_exp",
			doc: "`y = m + ln Σ e^(x - m)` over the elements along `dims`, m being the greatest of them or, where that is infinite, 0. " + wideDoc +
				"\n\nCounts 3 FLOP for each element of x: subtraction, exponential, sum.",
			flop: 3,
			body: func(w *Builder, _ *ir.Op, x *ir.Value, dims []int) *ir.Value {
				m := w.finite(w.reduce("max", x, dims...))
				return w.add(w.Unary("log", w.reduce("add", w.Unary("exp", w.sub(x, m)), dims...)), m)
			},
			derivative: &Derivative{
				Doc: "`dx = dy · e^(x - y)`, recomputed from x and y.",
				rule: func(g *backward) {
					dims, _ := reducedDims(g.o)
					kept := append([]dim.Dim{}, in(g.o, 0).Shape...)
					for _, d := range dims {
						kept[d] = dim.Const(1)
					}
					x, y, dy := g.wide(g.x(0)), g.wide(g.y(0)), g.wide(g.dy[0])
					share := g.Unary("exp", g.sub(x, g.Reshape(g.finite(y), kept...)))
					g.give(0, g.mul(g.Reshape(dy, kept...), share))
				},
			},
		},
	} {
		defs = append(defs, s.def())
	}
	return defs
}

// elements is how many elements of t lie along dims; a symbol is a failure.
func (w *Builder) elements(t *types.Tensor, dims []int) float64 {
	n := dim.Const(1)
	for _, d := range dims {
		n = n.Mul(t.Shape[d])
	}
	v, ok := n.Int()
	w.failed = w.failed || !ok
	return float64(v)
}

// over is x / v.
func (w *Builder) over(x *ir.Value, v float64) *ir.Value { return w.div(x, w.number(x, v)) }

// finite is x with 0 in place of infinities.
func (w *Builder) finite(x *ir.Value) *ir.Value {
	infinite := w.compare("eq", w.Unary("abs", x), w.number(x, math.Inf(1)))
	return w.choose(infinite, w.number(x, 0), x)
}
