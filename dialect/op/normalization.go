package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func normalizations() []*Def {
	return []*Def{
		reduceDef, softmaxDef, logSoftmaxDef, layerNormDef, rmsNormDef, batchNormDef, groupNormDef,
		crossEntropyDef, argmaxDef, cumsumDef, reduceWindowDef, selectAndScatterDef, topKDef, sortDef,
	}
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

var crossEntropyDef = &Def{
	Name: "cross_entropy", Family: Normalization, Class: ClassNormalization,
	Summary: "negative logarithm of the softmax at the label",
	Foreign: []Foreign{{Names: "cross_entropy_loss softmax_cross_entropy softmax_cross_entropy_loss"}},
	Doc: "`loss = -log_softmax(logits)[label]` along `dim` for every row, then the mean or the sum of all rows or, with `reduction = none`, a loss for each row. " + wideDoc +
		" A label outside the classes is clamped to the nearest one.\n\nCounts 4 FLOP for each logit as `dm.log_softmax`, and for `mean` and `sum` the additions over the rows, for `mean` one division.",
	Example: `func.func @example(%logits: tensor<3x5xf32>) -> tensor<f32> {
  %labels = dm.constant dense<[0, 4, 2]> : tensor<3xi64>
  %loss = dm.cross_entropy %logits, %labels : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}`,
	Operands: []Param{
		{Name: "logits", Elems: floats, Doc: "`[…, classes]`, or the classes at `dim`"},
		{Name: "labels", Elems: indexes, Doc: "logits' shape without `dim`: the number of the right class"},
	},
	Results: []Param{{Name: "loss", Elems: floats, Doc: "a scalar, or the labels' shape"}},
	Attrs: []AttrDef{
		lastDimAttr("dimension of the classes"),
		{Name: "reduction", Kind: KindKeyword, Enum: []string{"mean", "sum", "none"}, Default: types.Keyword("mean"), Doc: "how the losses of the rows are combined"},
	},
	Traits: Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x, labels := in(o, 0), in(o, 1)
		d, p := dimOf(o, "dim", x.Shape)
		if p != nil {
			return nil, p
		}
		rows := without(x.Shape, d)
		if !sameShape(rows, labels.Shape) {
			return nil, problem("DM122", 1, "logits %s need labels %s, but they have shape %s", shapeText(x.Shape), shapeText(rows), shapeText(labels.Shape)).
				help("labels have one number for each row of logits")
		}
		if Str(o, "reduction") != "none" {
			rows = nil
		}
		return one(tensor(x, x.Elem, rows...)), nil
	},
	FLOP: func(o *ir.Op) dim.Dim {
		x := in(o, 0)
		n := x.Elements().Scale(4)
		rows := in(o, 1).Elements()
		switch Str(o, "reduction") {
		case "mean":
			n = n.Add(rows)
		case "sum":
			n = n.Add(rows).Sub(dim.Const(1))
		}
		return n
	},
	Expand:     expandCrossEntropy,
	Reduced:    reducedDim,
	Derivative: crossEntropyDerivative,
}

func expandCrossEntropy(b *ir.Builder, o *ir.Op) []*ir.Value {
	x, labels := in(o, 0), in(o, 1)
	d, ok := Dim(o, "dim", x.Rank())
	rows, known := labels.Elements().Int()
	if !ok || (Str(o, "reduction") == "mean" && (!known || rows == 0)) {
		return nil
	}
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
		last := labels.Rank()
		if d != last {
			order := append(identity(last + 1)[:d:d], append(identity(last + 1)[d+1:], d)...)
			x = w.Value("transpose", []*ir.Value{x}, []types.Named{{Name: "dims", Value: IntList(order...)}})
		}
		loss := w.Unary("neg", w.Value("gather", []*ir.Value{logSoftmax(w, x, last), o.Operands[1]}, []types.Named{{Name: "dim", Value: intAttr(last)}, {Name: "batch_dims", Value: intAttr(last)}}))
		if Str(o, "reduction") == "none" {
			return loss
		}
		loss = w.Value("reduce", []*ir.Value{loss}, named("kind", types.Keyword("add")))
		if Str(o, "reduction") == "mean" {
			loss = w.scale(loss, 1/float64(rows))
		}
		return loss
	})
}

func without(shape []dim.Dim, d int) []dim.Dim {
	r := make([]dim.Dim, 0, len(shape))
	r = append(r, shape[:d]...)
	return append(r, shape[d+1:]...)
}
