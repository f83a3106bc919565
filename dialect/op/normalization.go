package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func normalizations() []*Def {
	return append([]*Def{
		reduceDef, softmaxDef, logSoftmaxDef, layerNormDef, rmsNormDef, batchNormDef, groupNormDef,
		crossEntropyDef, argmaxDef, cumsumDef, reduceWindowDef, selectAndScatterDef, topKDef, sortDef,
		cumprodDef, cummaxDef, segmentReduceDef,
	}, statistics()...)
}

func lastDimAttr(doc string) AttrDef {
	return AttrDef{Name: "dim", Kind: KindInt, Default: types.Int{V: -1}, Doc: doc}
}

var epsilonAttr = AttrDef{
	Name: "epsilon", Kind: KindFloat, Default: types.Float{V: 1e-5},
	Doc: "added to the variance, so that a constant row does not divide by 0",
}

const wideDoc = "Half precision is computed in f32 and rounded once."

// reducedDims are the dimensions that attribute dims names.
func reducedDims(o *ir.Op) ([]int, bool) { return Dims(o, "dims", in(o, 0).Rank()) }

// reducedDim is the one dimension that attribute dim names.
func reducedDim(o *ir.Op) ([]int, bool) {
	d, ok := Dim(o, "dim", in(o, 0).Rank())
	return []int{d}, ok
}

// RowDims are the dimensions of the first operand, in rising order, along which a
// kernel for o holds whole rows on chip; ok is false if o is not row-wise.
func RowDims(o *ir.Op) (dims []int, ok bool) {
	d, x := Of(o), o.In(0)
	if d == nil || d.Class != ClassNormalization || x == nil || !Valid(o) {
		return nil, false
	}
	switch {
	case d.Row != nil:
		dims = d.Row(o)
	case d.Attr("dims") == nil && d.Attr("dim") == nil:
		dims = identity(x.Rank())[max(0, x.Rank()-1):]
	case d.Attr("dim") != nil:
		if n, ok := Dim(o, "dim", x.Rank()); ok {
			dims = []int{n}
		}
	case Attr(o, "dims") != nil: // a reduction of everything has no rows
		dims, _ = Dims(o, "dims", x.Rank())
	}
	slices.Sort(dims)
	return dims, len(dims) > 0
}

var softmaxDef = &Def{
	Name: "softmax", Family: Normalization, Class: ClassNormalization,
	Summary: "exponentials that sum to 1 along a dimension",
	Doc:     "`y = e^(x - max x) / Σ e^(x - max x)` along `dim`. " + wideDoc + "\n\nCounts 4 FLOP an element: subtraction, exponential, sum, division.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = dm.softmax %x, dim = 1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: floats, Doc: "at least one dimension"}},
	Results:  []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs:    []AttrDef{lastDimAttr("dimension along which the values sum to 1")},
	Traits:   Pure,
	Factors:  rowsOf(reducedDim),
	Divides:  "The dimensions but `dim`.",
	Infer:    inferAlongDim,
	FLOP:     perElement(4),
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		return alongDim(b, o, func(w *Builder, x *ir.Value, d int) *ir.Value {
			e := w.Unary("exp", w.Binary("sub", x, w.reduce("max", x, d)))
			return w.Binary("div", e, w.reduce("add", e, d))
		})
	},
	Reduced:    reducedDim,
	Orders:     AlikeOrders,
	Derivative: softmaxDerivative,
}

var logSoftmaxDef = &Def{
	Name: "log_softmax", Family: Normalization, Class: ClassNormalization,
	Summary: "logarithm of the softmax",
	Doc:     "`y = x - max x - ln Σ e^(x - max x)` along `dim`. " + wideDoc + "\n\nCounts 4 FLOP an element: two subtractions, exponential, sum; the logarithms, one a row, are not counted.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = dm.log_softmax %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: floats, Doc: "at least one dimension"}},
	Results:  []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs:    []AttrDef{lastDimAttr("dimension along which the exponentials of the values sum to 1")},
	Traits:   Pure,
	Factors:  rowsOf(reducedDim),
	Divides:  "The dimensions but `dim`.",
	Infer:    inferAlongDim,
	FLOP:     perElement(4),
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		return alongDim(b, o, logSoftmax)
	},
	Reduced:    reducedDim,
	Orders:     AlikeOrders,
	Derivative: logSoftmaxDerivative,
}

func logSoftmax(w *Builder, x *ir.Value, d int) *ir.Value {
	c := w.Binary("sub", x, w.reduce("max", x, d))
	return w.Binary("sub", c, w.Unary("log", w.reduce("add", w.Unary("exp", c), d)))
}

func alongDim(b *ir.Builder, o *ir.Op, body func(w *Builder, x *ir.Value, d int) *ir.Value) []*ir.Value {
	d, ok := Dim(o, "dim", in(o, 0).Rank())
	if !ok {
		return nil
	}
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value { return body(w, x, d) })
}

func inferAlongDim(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	if _, p := dimOf(o, "dim", x.Shape); p != nil {
		return nil, p
	}
	return one(tensor(x, x.Elem, x.Shape...)), nil
}

// perElement counts n FLOP for each element of the first operand.
func perElement(n int64) func(o *ir.Op) dim.Dim {
	return func(o *ir.Op) dim.Dim { return floatElements(in(o, 0)).Scale(n) }
}

func without(shape []dim.Dim, d int) []dim.Dim {
	r := make([]dim.Dim, 0, len(shape))
	r = append(r, shape[:d]...)
	return append(r, shape[d+1:]...)
}
