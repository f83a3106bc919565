package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var selectAndScatterDef = &Def{
	Name: "select_and_scatter", Family: Normalization, Class: ClassNormalization,
	Summary: "values added where a moving window finds its extreme element",
	Doc: "For every position of the window that `dm.reduce_window` with the same attributes reads x at, the value there in `source` is added to the element of the result that is the window's first largest, " +
		"or with `min` first smallest, in row-major order; a NaN counts as both. All else is 0. This is how the gradient of a max-pool flows back. Padding is never chosen. " +
		"Half precision is accumulated in f32. The name and the meaning are StableHLO's.\n\n" +
		"Counts 1 FLOP for each element of source. Reads the elements of x that some window touches.",
	Example: `func.func @example(%x: tensor<1x2x4x4xf32>, %dy: tensor<1x2x2x2xf32>) -> tensor<1x2x4x4xf32> {
  %dx = dm.select_and_scatter max %x, %dy, window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2] : (tensor<1x2x4x4xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x4x4xf32>
  return %dx : tensor<1x2x4x4xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "any shape"},
		{Name: "source", Elems: floats, Doc: "the shape that `dm.reduce_window` of x has; x's element type"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs: []AttrDef{
		{Name: "kind", Kind: KindKeyword, Lead: true, Enum: []string{"max", "min"}, Doc: "which element of a window is chosen"},
		{Name: "window_dimensions", Kind: KindInts, Doc: "size of the window in every dimension"},
		{Name: "window_strides", Kind: KindInts, Optional: true, Doc: "step of the window; 1 where absent"},
		{Name: "window_dilations", Kind: KindInts, Optional: true, Doc: "distance of the window's elements; 1 where absent"},
		{Name: "padding", Kind: KindPairs, Optional: true, Doc: "elements before and after every dimension; none where absent"},
	},
	Traits:  Pure,
	Factors: windowFactors, Linear: linearIn([]int{1}),
	Divides:  "Dimensions along which the window does not move: of one element, with stride 1 and no padding.",
	Exchange: moving(reduceWindowMoves), Exchanges: "The others: devices get the elements that they lack from their neighbours, and give them what they add to theirs.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x, s := in(o, 0), in(o, 1)
		if p := sameElems(o, 0); p != nil {
			return nil, p
		}
		w, p := reduceWindow(o)
		if p != nil {
			return nil, p
		}
		if !sameShape(w.Out, s.Shape) {
			return nil, problem("DM122", 1, "the window has %s positions in x %s, but source has shape %s", shapeText(w.Out), shapeText(x.Shape), shapeText(s.Shape)).
				help("source has one value for each position of the window")
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		w, p := reduceWindow(o)
		return windowTraffic(o, w, p)
	},
	FLOP:       func(o *ir.Op) dim.Dim { return in(o, 1).Elements() },
	Derivative: selectAndScatterDerivative,
}
