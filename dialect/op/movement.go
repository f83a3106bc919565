package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

func movements() []*Def {
	return []*Def{
		transposeDef, reshapeDef, broadcastDef, sliceDef, dynamicSliceDef, dynamicUpdateSliceDef,
		concatenateDef, padDef, reverseDef, gatherDef, scatterDef, copyDef, embeddingDef, rollDef, oneHotDef, stopGradientDef,
		segmentIDsDef, searchSortedDef,
	}
}

var transposeDef = &Def{
	Name: "transpose", Family: Movement, Class: ClassMovement,
	Summary: "permutation of the dimensions",
	Foreign: []Foreign{{Names: "permute permute_dims"}, {Names: "swapaxes swapdims moveaxis movedim", Rest: "with all dimensions in dims"}},
	Doc: "Dimension i of the result is dimension `dims[i]` of the operand.\n\n" +
		"Moves nothing if the result's layout keeps the elements in place, as `order = [1, 0]` does after `dims = [1, 0]` of a row-major operand; otherwise it reads and writes everything. " +
		"Counts no FLOP. To change the layout and keep the dimensions, use `dm.copy`.",
	Example: `func.func @example(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %y = dm.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %y : tensor<4x2x3xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's sizes in the new order"}},
	Attrs:    []AttrDef{{Name: "dims", Kind: KindInts, Order: true, Doc: "a permutation of x's dimensions"}},
	Traits:   Pure,
	Linear:   linearIn([]int{0}),
	Divides:  "Every dimension.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		dims, p := dimsOf(o, "dims", x.Shape)
		if p != nil {
			return nil, p
		}
		if len(dims) != x.Rank() {
			return nil, attrProblem("DM113", "dims", "dims names %d of the %s of %s", len(dims), diag.Count(x.Rank(), "dimension"), shapeText(x.Shape)).
				help("a permutation names every dimension once")
		}
		shape := make([]dim.Dim, len(dims))
		for i, d := range dims {
			shape[i] = x.Shape[d]
		}
		return one(tensor(x, x.Elem, shape...)), nil
	},
	Maps: func(o *ir.Op) *Iteration {
		y := out(o, 0)
		dims, ok := Dims(o, "dims", y.Rank())
		if !ok || len(dims) != y.Rank() {
			return nil
		}
		return spread(y.Shape, Inverse(dims))
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		if IsView(o) {
			return make([]dim.Dim, len(o.Operands)), dim.Dim{}
		}
		return wholeTraffic(o)
	},
	Move:       moveTranspose,
	Derivative: transposeDerivative,
}

// spread is the iteration over a result with one operand, whose dimensions
// lie on the loops named.
func spread(shape []dim.Dim, operand []int) *Iteration {
	return &Iteration{
		Loops: shape, Names: loopNames(len(shape)), Reduces: make([]bool, len(shape)),
		Operands: [][]int{operand}, Results: [][]int{identity(len(shape))},
	}
}

var reshapeDef = &Def{
	Name: "reshape", Family: Movement, Class: ClassMovement,
	Summary: "the same elements in another shape",
	Foreign: []Foreign{{Names: "view flatten ravel squeeze unsqueeze expand_dims"}},
	Doc: "The result's shape is the one written; it has as many elements as the operand, in the same row-major order.\n\n" +
		"Moves nothing where both are row-major; with another layout it reads and writes everything. Counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %y = dm.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "as many elements, x's element type"}},
	Traits:   Pure | View,
	Factors:  reshapeFactors, Linear: linearIn([]int{0}),
	Divides: "What dimensions of both shapes have in common: `[6, 4]` and `[3, 8]` as `[3·2, 4]` and `[3, 2·4]` divide over 3, 2 or 4 devices, or products of these.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if len(o.Results) == 0 {
			return nil, noResult("reshape")
		}
		y := out(o, 0)
		if !sameDim(x.Elements(), y.Elements()) {
			return nil, problem("DM118", -1, "%s has %s elements, %s has %s", shapeText(x.Shape), dimText(x.Elements()), shapeText(y.Shape), dimText(y.Elements())).
				help("a reshape keeps the number of elements")
		}
		return one(tensor(x, x.Elem, y.Shape...)), nil
	},
	Traffic:    viewTraffic,
	Move:       moveReshape,
	Derivative: reshapeDerivative,
}

// viewTraffic is that of a View.
func viewTraffic(o *ir.Op) ([]dim.Dim, dim.Dim) {
	if in(o, 0).At.Order == nil && out(o, 0).At.Order == nil {
		return make([]dim.Dim, len(o.Operands)), dim.Dim{}
	}
	return wholeTraffic(o)
}

var stopGradientDef = &Def{
	Name: "stop_gradient", Family: Movement, Class: ClassMovement,
	Summary: "the operand, through which no gradient flows",
	Foreign: []Foreign{{Names: "detach"}},
	Doc:     "The result is the operand. `dm.grad` takes it for a constant.\n\nMoves nothing where both are row-major; with another layout it reads and writes everything. Counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = dm.stop_gradient %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Traits:   Pure | View,
	Factors:  everyDim, Linear: linearIn([]int{0}),
	Divides: "Every dimension.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		return one(tensor(in(o, 0), in(o, 0).Elem, in(o, 0).Shape...)), nil
	},
	Traffic:    viewTraffic,
	Move:       moveAll,
	Derivative: flat("The result counts as a constant: no gradient flows."),
}

func noResult(name string) *Problem {
	return problem("DM125", -1, "the result type of %s must be written", name).help("write one result with its type")
}

var broadcastDef = &Def{
	Name: "broadcast", Family: Movement, Class: ClassMovement,
	Summary: "repetition along new dimensions and those of size 1, written out",
	Foreign: []Foreign{{Names: "expand expand_as broadcast_to broadcast_in_dim"}},
	Doc: "Dimension i of the operand becomes dimension `dims[i]` of the result, whose shape is the one written; its size stays or, if it is 1, is repeated. Without `dims` the shapes are aligned at " +
		"the last dimension. Element-wise ops broadcast by themselves and need no such op.\n\nReads the operand, writes the result; counts no FLOP.",
	Example: `func.func @example(%x: tensor<3xf32>) -> tensor<3x4xf32> {
  %y = dm.broadcast %x, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "at least x's dimensions, x's element type"}},
	Attrs:    []AttrDef{{Name: "dims", Kind: KindInts, Optional: true, Doc: "dimension of the result for each of x's; the last ones where absent"}},
	Traits:   Pure,
	Linear:   linearIn([]int{0}),
	Divides:  "Every dimension.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if len(o.Results) == 0 {
			return nil, noResult("broadcast")
		}
		y := out(o, 0)
		to, p := BroadcastDims(o)
		if p != nil {
			return nil, p
		}
		for i, d := range to {
			if !isOne(x.Shape[i]) && !sameDim(x.Shape[i], y.Shape[d]) {
				return nil, problem("DM118", 0, "dimension %d of %s does not broadcast to dimension %d of %s", i, shapeText(x.Shape), d, shapeText(y.Shape)).
					help("only dimensions of size 1 can be repeated; the others keep their size")
			}
		}
		return one(tensor(x, x.Elem, y.Shape...)), nil
	},
	Maps: func(o *ir.Op) *Iteration {
		to, p := BroadcastDims(o)
		if p != nil {
			return nil
		}
		from := make([]int, len(to))
		for i, d := range to {
			if from[i] = d; isOne(in(o, 0).Shape[i]) && !isOne(out(o, 0).Shape[d]) {
				from[i] = -1
			}
		}
		return spread(out(o, 0).Shape, from)
	},
	Move:       moveBroadcast,
	Derivative: broadcastDerivative,
}

// BroadcastDims is the result's dimension for each dimension of a dm.broadcast's operand.
func BroadcastDims(o *ir.Op) ([]int, *Problem) {
	x, y := in(o, 0), out(o, 0)
	if Attr(o, "dims") == nil {
		if x.Rank() > y.Rank() {
			return nil, problem("DM118", 0, "%s has more dimensions than %s", shapeText(x.Shape), shapeText(y.Shape)).help("a broadcast never drops dimensions")
		}
		to := identity(y.Rank())[y.Rank()-x.Rank():]
		return to, nil
	}
	to, p := dimsOf(o, "dims", y.Shape)
	if p == nil && len(to) != x.Rank() {
		p = attrProblem("DM114", "dims", "dims has %d entries for the %s of %s", len(to), diag.Count(x.Rank(), "dimension"), shapeText(x.Shape)).
			help("name the result's dimension for each of the operand's")
	}
	return to, p
}

var concatenateDef = &Def{
	Name: "concatenate", Family: Movement, Class: ClassMovement,
	Summary: "tensors one after the other along a dimension",
	Foreign: []Foreign{{Names: "cat concat"}, {Names: "stack", Rest: "after dm.reshape of the operands"}},
	Doc:     "The operands agree in all sizes but that of `dim`, which adds up.\n\nReads and writes everything; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %z = dm.concatenate %x, %y, dim = 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}`,
	Operands: []Param{{Name: "operands", Elems: storable, Variadic: true, Doc: "at least one; one element type"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "the operands' sizes, added at `dim`"}},
	Attrs:    []AttrDef{{Name: "dim", Kind: KindInt, Doc: "dimension along which the operands follow each other"}},
	Traits:   Pure,
	Factors:  concatenateFactors, Linear: linearInAll,
	Divides:  "The dimensions but `dim`.",
	Exchange: exchangedJoint, Exchanges: "`dim`: devices get the elements of their piece of the result.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Operands) == 0 {
			return nil, problem("DM124", -1, "concatenate needs at least one operand")
		}
		if p := sameElems(o, 0); p != nil {
			return nil, p
		}
		x := in(o, 0)
		d, p := dimOf(o, "dim", x.Shape)
		if p != nil {
			return nil, p
		}
		shape, lengths := x.Shape, []dim.Dim{x.Shape[d]}
		for i := 1; i < len(o.Operands); i++ {
			t := in(o, i)
			if t.Rank() != x.Rank() || !sameShape(without(t.Shape, d), without(shape, d)) {
				return nil, problem("DM122", i, "shapes %s and %s differ outside dimension %d", shapeText(x.Shape), shapeText(t.Shape), d).
					help("all sizes but that of dim must be equal")
			}
			shape, lengths = unify(shape, t.Shape), append(lengths, t.Shape[d])
		}
		return one(tensor(x, x.Elem, replaced(shape, d, dim.Sum(lengths...))...)), nil
	},
	Move:       moveConcatenate,
	Orders:     AlikeOrders,
	Derivative: concatenateDerivative,
}

var padDef = &Def{
	Name: "pad", Family: Movement, Class: ClassMovement,
	Summary: "a value before, after and between the elements",
	Foreign: []Foreign{{Names: "constant_pad_nd"}},
	Doc: "Dimension d becomes `low + d + (d - 1)·interior + high`. The lists have one entry for each dimension; an absent one is zeros. To cut, use `dm.slice`.\n\n" +
		"Reads both operands, writes the result; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<4x5xf32> {
  %zero = dm.constant dense<0.0> : tensor<f32>
  %y = dm.pad %x, %zero, low = [1, 0], high = [1, 2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: storable, Doc: "any shape"},
		{Name: "value", Elems: storable, Doc: "a scalar tensor of x's element type"},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "the larger shape"}},
	Attrs: []AttrDef{
		{Name: "low", Kind: KindInts, Optional: true, Doc: "how many before every dimension"},
		{Name: "high", Kind: KindInts, Optional: true, Doc: "how many after every dimension"},
		{Name: "interior", Kind: KindInts, Optional: true, Doc: "how many between two neighbours"},
	},
	Traits:  Pure,
	Factors: padFactors, Linear: linearPad,
	Exchange: moving(padMoves), Exchanges: "The others: devices get the elements that they lack from their neighbours.",
	Divides: "Dimensions that are not padded.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if p := sameElems(o, 0); p != nil {
			return nil, p
		}
		if p := rankIs(o, 1, 0, "the padding value"); p != nil {
			return nil, p
		}
		shape := append([]dim.Dim{}, x.Shape...)
		for _, name := range []string{"low", "high", "interior"} {
			l, p := listOf(o, name, x.Rank(), 0, 0)
			if p != nil {
				return nil, p
			}
			for i, n := range l {
				add := dim.Const(n)
				if name == "interior" && n > 0 {
					if z, ok := x.Shape[i].Int(); ok && z == 0 {
						continue
					}
					add = x.Shape[i].Sub(dim.Const(1)).Scale(n)
				}
				shape[i] = shape[i].Add(add)
			}
		}
		return one(tensor(x, x.Elem, shape...)), nil
	},
	Move:       movePad,
	Orders:     AlikeOrders,
	Derivative: padDerivative,
}

var reverseDef = &Def{
	Name: "reverse", Family: Movement, Class: ClassMovement,
	Summary: "elements in opposite order along dimensions",
	Foreign: []Foreign{{Names: "flip"}},
	Doc:     "Element i of a named dimension of size d is element `d - 1 - i` of the operand.\n\nReads and writes everything; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = dm.reverse %x, dims = [1] : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Attrs:    []AttrDef{{Name: "dims", Kind: KindInts, Doc: "dimensions to reverse"}},
	Traits:   Pure,
	Factors:  besides("dims"), Linear: linearIn([]int{0}),
	Divides:  "The dimensions that `dims` does not name.",
	Exchange: exchangedDims, Exchanges: "`dims`, if evenly: devices exchange pieces.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if _, p := dimsOf(o, "dims", x.Shape); p != nil {
			return nil, p
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Move:       moveReverse,
	Orders:     AlikeOrders,
	Derivative: reverseDerivative,
}

var copyDef = &Def{
	Name: "copy", Family: Movement, Class: ClassMovement,
	Summary: "the same tensor in another memory space or layout",
	Foreign: []Foreign{{Names: "clone contiguous device_put"}},
	Doc: "The result has the operand's shape and element type and the placement written: `dm.copy %x : (tensor<4x8xf16>) -> tensor<4x8xf16, #dm.at<host>>` brings it to the host, " +
		"`#dm.at<hbm, order = [1, 0]>` stores it by columns.\n\nReads and writes everything; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf32, #dm.at<hbm, order = [1, 0]>> {
  %y = dm.copy %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #dm.at<hbm, order = [1, 0]>>
  return %y : tensor<2x3xf32, #dm.at<hbm, order = [1, 0]>>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape and placement"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's shape and element type, any placement"}},
	Traits:   Pure | Cast | Memberwise,
	Linear:   linearIn([]int{0}),
	Divides:  "Every dimension.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		y := tensor(x, x.Elem, x.Shape...)
		if len(o.Results) > 0 {
			y.At = out(o, 0).At
		}
		return one(y), nil
	},
	Maps:       func(o *ir.Op) *Iteration { return spread(out(o, 0).Shape, identity(in(o, 0).Rank())) },
	Move:       moveAll,
	Derivative: copyDerivative,
}
