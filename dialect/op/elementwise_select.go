package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// selections are the element-wise ops whose result type differs from their
// operands' or that have more than two operands.
func selections() []*Def {
	return []*Def{compareDef, selectDef, clampDef, convertDef, bitcastDef, dropoutDef}
}

var compareDef = &Def{
	Name: "compare", Family: Elementwise, Class: ClassElementwise,
	Summary: "comparison, gives i1",
	Foreign: []Foreign{
		{Names: "eq equal", Form: "eq"},
		{Names: "ne not_equal", Form: "ne"},
		{Names: "lt less", Form: "lt"},
		{Names: "le less_equal less_or_equal", Form: "le"},
		{Names: "gt greater", Form: "gt"},
		{Names: "ge greater_equal greater_or_equal", Form: "ge"},
		{Names: "cmp cmpf cmpi"},
	},
	Doc: "Every element of the result is whether the comparison holds between the operands' elements, which broadcast as in NumPy. " +
		"Comparisons with NaN are false, except `ne`, which is true.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xi1> {
  %z = dm.compare lt %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  return %z : tensor<2x3xi1>
}`,
	Operands: []Param{
		{Name: "x", Elems: ordered, Doc: "any shape"},
		{Name: "y", Elems: ordered, Doc: "a shape that broadcasts with x's, the same element type"},
	},
	Results: []Param{{Name: "z", Elems: bools, Doc: "the broadcast shape"}},
	Attrs: []AttrDef{{
		Name: "direction", Kind: KindKeyword, Lead: true, Enum: []string{"eq", "ne", "lt", "le", "gt", "ge"},
		Doc: "equal, not equal, less, less or equal, greater, greater or equal",
	}},
	Traits: Pure | Pointwise | Memberwise,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		ts, p := inferPointwise(o)
		if p != nil {
			return nil, p
		}
		return one(like(o, tensor(in(o, 0), types.I1, asTensor(ts[0]).Shape...))), nil
	},
	Maps:       pointwiseMaps,
	Scalar:     &Scalar{Form: "direction", Jumps: true},
	Derivative: compareDerivative,
}

var selectDef = &Def{
	Name: "select", Family: Elementwise, Class: ClassElementwise,
	Summary: "choice between two tensors by a predicate",
	Foreign: []Foreign{{Names: "where"}, {Names: "masked_fill", Rest: "with the mask first"}},
	Doc:     "Every element of the result is `pred ? on_true : on_false`. The three operands broadcast as in NumPy.\n\nCounts no FLOP; reads both alternatives.",
	Example: `func.func @example(%p: tensor<2x3xi1>, %x: tensor<2x3xf32>, %y: tensor<f32>) -> tensor<2x3xf32> {
  %z = dm.select %p, %x, %y : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}`,
	Operands: []Param{
		{Name: "pred", Elems: bools, Doc: "where true, the result is on_true"},
		{Name: "on_true", Elems: storable, Doc: "any shape that broadcasts"},
		{Name: "on_false", Elems: storable, Doc: "any shape that broadcasts, on_true's element type"},
	},
	Results: []Param{{Name: "z", Elems: storable, Doc: "the broadcast shape, on_true's element type"}},
	Traits:  Pure | Pointwise | Memberwise,
	Linear:  linearIn([]int{1, 2}),
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if p := sameElems(o, 1); p != nil {
			return nil, p
		}
		shape, p := broadcastAll(o, 0)
		if p != nil {
			return nil, p
		}
		return one(like(o, tensor(in(o, 1), in(o, 1).Elem, shape...))), nil
	},
	Maps:       pointwiseMaps,
	Scalar:     &Scalar{},
	Derivative: selectDerivative,
}

var clampDef = &Def{
	Name: "clamp", Family: Elementwise, Class: ClassElementwise,
	Summary: "value limited to an interval",
	Foreign: []Foreign{{Names: "clip", Rest: "with the least value first"}, {Names: "relu6 hardtanh", Rest: "between two constants, 0 and 6 or -1 and 1"}},
	Doc:     "Every element of the result is `min(max(x, low), high)`. The operands broadcast as in NumPy; their order is StableHLO's.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %low = dm.constant dense<-1.0> : tensor<f32>
  %high = dm.constant dense<1.0> : tensor<f32>
  %y = dm.clamp %low, %x, %high : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Operands: []Param{
		{Name: "low", Elems: numeric, Doc: "least value"},
		{Name: "x", Elems: numeric, Doc: "the values, of low's element type"},
		{Name: "high", Elems: numeric, Doc: "greatest value, of low's element type"},
	},
	Results:    []Param{{Name: "y", Elems: numeric, Doc: "the broadcast shape"}},
	Traits:     Pure | Pointwise | Memberwise,
	Infer:      inferPointwise,
	Maps:       pointwiseMaps,
	Scalar:     &Scalar{},
	Derivative: clampDerivative,
}

var convertDef = &Def{
	Name: "convert", Family: Elementwise, Class: ClassElementwise,
	Summary: "the same values in another element type",
	Foreign: []Foreign{{Names: "cast astype type_convert convert_element_type"}},
	Doc: "The element type is that of the result as written; the shape stays. Floating-point values are rounded to the nearest, halves to even; " +
		"to an integer type they are cut towards zero; a value becomes `true` unless it is 0.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %y = dm.convert %x : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return %y : tensor<2x3xf16>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's shape, any element type"}},
	Traits:   Pure | Pointwise | Cast | Memberwise,
	Linear:   linearConvert,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		elem := out(o, 0).Elem
		if elem == types.InvalidElem {
			elem = in(o, 0).Elem
		}
		return one(like(o, tensor(in(o, 0), elem, in(o, 0).Shape...))), nil
	},
	Maps:       pointwiseMaps,
	Scalar:     &Scalar{},
	Derivative: convertDerivative,
}

var bitcastDef = &Def{
	Name: "bitcast", Family: Elementwise, Class: ClassElementwise,
	Summary: "the same bits in another element type",
	Foreign: []Foreign{{Names: "bitcast_convert bitcast_convert_type"}},
	Doc:     "The element type is that of the result as written, of the size of x's; the shape stays. The bits of a number are those of IEEE 754, of an integer those of two's complement.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xi32> {
  %y = dm.bitcast %x : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}`,
	Operands: []Param{{Name: "x", Elems: multiply, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: multiply, Doc: "x's shape, an element type of the same size"}},
	Traits:   Pure | Pointwise | Memberwise,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		elem := out(o, 0).Elem
		if elem == types.InvalidElem {
			elem = in(o, 0).Elem
		}
		if from := in(o, 0).Elem; from.Bytes() != elem.Bytes() {
			return nil, problem("DM111", 0, "elements of %s have %d bytes, those of %s %d", from, from.Bytes(), elem, elem.Bytes()).
				help("the bits stay: give the result an element type of the same size")
		}
		return one(like(o, tensor(in(o, 0), elem, in(o, 0).Shape...))), nil
	},
	Maps:       pointwiseMaps,
	Scalar:     &Scalar{Jumps: true},
	Derivative: flat("The bits of a number have no derivative: no gradient flows."),
}

var dropoutDef = &Def{
	Name: "dropout", Family: Elementwise, Class: ClassElementwise,
	Summary: "random zeros, seeded; returns value and mask",
	Doc: "The mask is 0 with probability `rate` and 1 otherwise, drawn from `seed` and the element's number in row-major order, so that the same op " +
		"always gives the same mask: two neighbours share 64 random bits, of which the even one has the lower 32, and an element is kept where " +
		"these are at least `rate · 2³²`: SplitMix64 of `key(seed, 1) + γ · (number / 2 + 1)`. The elements of a part of a whole have the numbers that they have there: `first` is that of the first, in row-major order of `whole`. " + stepDoc + " `y = x · mask / (1 - rate)`. The mask has any floating-point type or i1, and may be left out.\n\n" +
		"Counts 1 FLOP an element. Source: Srivastava et al., *Dropout*, JMLR 15 (2014).",
	Example: `func.func @example(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi1>) {
  %y, %mask = dm.dropout %x, rate = 0.5, seed = 7 : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi1>)
  return %y, %mask : tensor<2x8xf32>, tensor<2x8xi1>
}`,
	Operands: []Param{{Name: "x", Elems: floats, Doc: "any shape"}, stepParam, firstParam("of a part of a whole, with the attribute `whole`: the number of its first element there, a scalar")},
	Results: []Param{
		{Name: "y", Elems: floats, Doc: "x's type"},
		{Name: "mask", Elems: join(floats, bools), Optional: true, Drawn: true, Doc: "x's shape; 1 where the element was kept"},
	},
	Attrs: []AttrDef{
		{Name: "rate", Kind: KindFloat, Doc: "probability that an element becomes 0: at least 0, below 1"},
		{Name: "seed", Kind: KindInt, Default: types.Int{}, Doc: "start of the random sequence"},
		wholeParam("of a part of a whole, with the operand `first`: the sizes of the whole"),
	},
	Traits: Pure | Pointwise | Random,
	Whole:  "what is dropped depends on the number of the element in the whole tensor, which the partitioner gives to each device.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		ts := one(tensor(x, x.Elem, x.Shape...))
		if len(o.Results) > 1 {
			elem := out(o, 1).Elem
			if elem == types.InvalidElem {
				elem = types.I1
			}
			ts = append(ts, tensor(x, elem, x.Shape...))
		}
		return ts, nil
	},
	Verify:     drawnProblem("rate"),
	FLOP:       func(o *ir.Op) dim.Dim { return out(o, 0).Elements() },
	Maps:       pointwiseMaps,
	Steps:      12,
	Derivative: dropoutDerivative,
}
