package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var crossEntropyDef = &Def{
	Name: "cross_entropy", Family: Normalization, Class: ClassNormalization,
	Summary: "negative logarithm of the softmax at the label",
	Foreign: []Foreign{
		{Names: "cross_entropy_loss softmax_cross_entropy softmax_cross_entropy_loss softmax_cross_entropy_with_integer_labels"},
		{Names: "nll_loss negative_log_likelihood", Rest: "of the logits, without the dm.log_softmax before it"},
	},
	Doc: "`loss = -log_softmax(logits)[label]` along `dim` for every row, then the mean or the sum of all rows or, with `reduction = none`, a loss for each row. " + wideDoc +
		" Rows whose label is `ignore_index` have the loss 0, and the mean is over the other rows, NaN where there is none; any other label outside the classes is clamped to the nearest one, and nothing outside is read. " +
		"With `label_smoothing = s` the loss of a row is `(1 - s) · loss - s · mean(log_softmax(logits))`, the mean over its classes. Attributes and defaults are those of PyTorch.\n\n" +
		"Counts 4 FLOP for each logit as `dm.log_softmax`, 5 with smoothing and then 3 for each row, and for `mean` and `sum` the additions over the rows, for `mean` one division.",
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
		{Name: "ignore_index", Kind: KindInt, Default: types.Int{V: -100}, Doc: "label of the rows that do not count; -2^63 where all do, whatever their labels"},
		{Name: "label_smoothing", Kind: KindFloat, Default: types.Float{}, Doc: "share of the loss that all classes have evenly: at least 0, at most 1"},
	},
	Traits: Pure,
	Classes: func(o *ir.Op) (int, dim.Dim, int64) {
		d, _ := Dim(o, "dim", in(o, 0).Rank())
		return 1, in(o, 0).Shape[d], Int(o, "ignore_index")
	},
	Factors: crossEntropyFactors,
	Divides: "The rows; with `reduction = sum` the results are parts of the sum. With `mean` nothing: the number of rows that count is that of the whole.",
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
	Verify: func(o *ir.Op) *Problem {
		if s := Float(o, "label_smoothing"); !(s >= 0 && s <= 1) {
			return attrProblem("DM115", "label_smoothing", "label_smoothing = %g is not between 0 and 1", s).
				help("write 0.1 to give a tenth of the loss to all classes evenly")
		}
		return nil
	},
	FLOP: func(o *ir.Op) dim.Dim {
		x := in(o, 0)
		n, rows := x.Elements().Scale(4), in(o, 1).Elements()
		if Float(o, "label_smoothing") > 0 {
			n = n.Add(x.Elements()).Add(rows.Scale(3))
		}
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
	xt, labels := in(o, 0), in(o, 1)
	d, ok := Dim(o, "dim", xt.Rank())
	rows, known := labels.Elements().Int()
	if !ok || (Str(o, "reduction") == "mean" && !Ignores(o) && (!known || rows == 0)) {
		return nil
	}
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
		last := labels.Rank()
		if d != last {
			order := append(identity(last + 1)[:d:d], append(identity(last + 1)[d+1:], d)...)
			x = w.Value("transpose", []*ir.Value{x}, []types.Named{{Name: "dims", Value: IntList(order...)}})
		}
		p := logSoftmax(w, x, last)
		loss := w.neg(w.Value("gather", []*ir.Value{p, o.Operands[1]}, []types.Named{{Name: "dim", Value: intAttr(last)}, {Name: "batch_dims", Value: intAttr(last)}}))
		if s := Float(o, "label_smoothing"); s > 0 {
			loss = w.sub(w.scale(loss, 1-s), w.scale(w.sum(p, last), s/w.size(xt, []int{d})))
		}
		counts := w.counts(o)
		if counts != nil {
			loss = w.when(counts, loss)
		}
		if Str(o, "reduction") == "none" {
			return loss
		}
		loss = w.sumAll(loss)
		switch {
		case Str(o, "reduction") == "sum":
		case counts != nil:
			loss = w.div(loss, w.sumAll(w.Convert(counts, asTensor(x.Type).Elem)))
		default:
			loss = w.scale(loss, 1/float64(rows))
		}
		return loss
	})
}

// IgnoresNone is the ignore_index of a cross_entropy of which all rows count.
const IgnoresNone = math.MinInt64

// Ignores reports whether a label of o, a cross_entropy, can be its ignore_index.
func Ignores(o *ir.Op) bool {
	n, e := Int(o, "ignore_index"), in(o, 1).Elem
	if n == IgnoresNone {
		return false
	}
	switch e {
	case types.I32:
		return n == int64(int32(n))
	case types.UI32:
		return n == int64(uint32(n))
	case types.UI64:
		return n >= 0
	}
	return true
}

// counts is where rows of o, a cross_entropy, count; nil where all do.
func (w *Builder) counts(o *ir.Op) *ir.Value {
	if !Ignores(o) {
		return nil
	}
	t := tensor(in(o, 1), in(o, 1).Elem)
	ignored := w.Value("constant", nil, named("value", types.IntOf(t, Int(o, "ignore_index"))), t)
	return w.compare("ne", o.Operands[1], ignored)
}

// sumAll is the sum of all elements of v.
func (w *Builder) sumAll(v *ir.Value) *ir.Value {
	return w.Value("reduce", []*ir.Value{v}, named("kind", types.Keyword("add")))
}
