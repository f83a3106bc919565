package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var reductionKinds = []string{"add", "max", "min", "mul"}

var reduceDef = &Def{
	Name: "reduce", Family: Normalization, Class: ClassNormalization,
	Summary: "reduction of dimensions by a named or any scalar function",
	Foreign: []Foreign{
		{Names: "sum reduce_sum", Form: "add"},
		{Names: "prod reduce_prod", Form: "mul"},
		{Names: "amax reduce_max", Form: "max"},
		{Names: "amin reduce_min", Form: "min"},
	},
	Doc: "`dm.reduce add %x, dims = [1]` sums over dimension 1; `add`, `max`, `min` and `mul` are named. Any other function is given by a region of two scalars and an initial value: " +
		"`dm.reduce %x, %init, dims = [1] : … { ^bb0(%a: f32, %b: f32): … dm.yield %c : f32 }`; it must be associative, and `init` its neutral element. " +
		"Half precision is accumulated in f32 and rounded once, unless `accumulate = f16`. The reduced dimensions vanish, or stay as 1 with `keep_dims`.\n\n" +
		"Counts elements of x minus elements of the result for `add` and `mul`, none for `max` and `min`; with a region the region's FLOP for each element of x.",
	Example: `func.func @example(%x: tensor<2x3xf32>, %init: tensor<f32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %sum = dm.reduce add %x, dims = [1] : (tensor<2x3xf32>) -> tensor<2xf32>
  %far = dm.reduce %x, %init, dims = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32> {
  ^bb0(%a: f32, %b: f32):
    %p = dm.abs %a : f32
    %q = dm.abs %b : f32
    %m = dm.max %p, %q : f32
    dm.yield %m : f32
  }
  return %sum, %far : tensor<2xf32>, tensor<3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: ordered, Doc: "any shape"},
		{Name: "init", Elems: ordered, Optional: true, Doc: "the neutral element as a scalar tensor of x's element type; only with a region"},
	},
	Results: []Param{{Name: "y", Elems: ordered, Doc: "x's sizes without `dims`, x's element type"}},
	Attrs: []AttrDef{
		{Name: "kind", Kind: KindKeyword, Lead: true, Optional: true, Enum: reductionKinds, Doc: "the named reduction; absent with a region"},
		{Name: "dims", Kind: KindInts, Optional: true, Doc: "dimensions to reduce; all where absent"},
		{Name: "keep_dims", Kind: KindBool, Default: types.Bool(false), Doc: "reduced dimensions stay with size 1"},
		{Name: "over", Kind: KindKeyword, Enum: []string{"all", "stored"}, Default: types.Keyword("all"), Doc: "of a sparse operand: all elements, of which those that are not stored are 0, or those that are stored"},
		accumulateAttr,
	},
	Regions: []RegionDef{{Name: "body", Optional: true, Doc: "two scalars of x's element type in, one out"}},
	Traits:  Pure | Isolated,
	Factors: reduceFactors, Linear: linearKind,
	Divides: "Every dimension; along reduced ones the results are parts of a reduction of the same kind, which a region must name: it is one op, `add`, `mul`, `max`, `min`, `and` or `or`.",
	Infer:   inferReduce,
	Verify:  verifyReduce,
	FLOP: func(o *ir.Op) dim.Dim {
		if hasRegion(o, 0) {
			return bodyFLOP(o.Regions[0]).Mul(in(o, 0).Elements())
		}
		return sums(o, in(o, 0).Elements().Sub(out(o, 0).Elements()))
	},
	Maps: func(o *ir.Op) *Iteration {
		x := in(o, 0)
		dims, ok := Dims(o, "dims", x.Rank())
		if !ok {
			return nil
		}
		it := &Iteration{Loops: x.Shape, Names: loopNames(x.Rank()), Reduces: make([]bool, x.Rank())}
		for _, d := range dims {
			it.Reduces[d] = true
		}
		it.Operands = [][]int{identity(x.Rank())}
		if len(o.Operands) > 1 {
			it.Operands = append(it.Operands, []int{})
		}
		result := []int{}
		for d := range x.Shape {
			switch {
			case !it.Reduces[d]:
				result = append(result, d)
			case Bool(o, "keep_dims"):
				result = append(result, -1)
			}
		}
		it.Results = [][]int{result}
		return it
	},
	Reduced:    reducedDims,
	Orders:     AnyOrders,
	Derivative: reduceDerivative,
}

// sums is n where o adds or multiplies floating-point numbers, else 0.
func sums(o *ir.Op, n dim.Dim) dim.Dim {
	if k := Str(o, "kind"); k != "add" && k != "mul" || !in(o, 0).Elem.IsFloat() {
		return dim.Dim{}
	}
	return n
}

func inferReduce(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	dims, p := dimsOf(o, "dims", x.Shape)
	if p != nil {
		return nil, p
	}
	gone := make([]bool, x.Rank())
	for _, d := range dims {
		gone[d] = true
	}
	shape := []dim.Dim{}
	for i, d := range x.Shape {
		switch {
		case !gone[i]:
			shape = append(shape, d)
		case Bool(o, "keep_dims"):
			shape = append(shape, dim.Const(1))
		}
	}
	return one(tensor(x, x.Elem, shape...)), nil
}

func verifyReduce(o *ir.Op) *Problem {
	kind, region := Str(o, "kind"), hasRegion(o, 0)
	switch {
	case kind == "" && !region:
		return problem("DM129", -1, "reduce has neither a named reduction nor a region").help("name it: dm.reduce add; or give a region and an initial value")
	case kind != "" && region:
		return attrProblem("DM129", "kind", "reduce is named %s and has a region as well", kind).help("keep one of them")
	case kind != "" && len(o.Operands) > 1:
		return problem("DM129", 1, "reduce %s starts at its own neutral element and takes no initial value", kind).help("leave it out")
	case region && len(o.Operands) < 2:
		return problem("DM129", -1, "reduce with a region has no initial value").help("give the neutral element as second operand")
	case kind != "" && in(o, 0).Elem == types.I1:
		return problem("DM111", 0, "reduce %s does not work on i1", kind).help("convert to an integer, or give a region with dm.and or dm.or")
	}
	if region {
		x, init := in(o, 0), in(o, 1)
		if init.Rank() != 0 || init.Elem != x.Elem {
			return problem("DM122", 1, "the initial value is %s, not tensor<%s>", o.Operands[1].Type, x.Elem)
		}
		s := types.Scalar{Elem: x.Elem}
		return regionProblem(o, 0, []types.Type{s, s}, []types.Type{s})
	}
	return accumulateProblem(o)
}

// accumulateProblem refuses accumulate = f16 for anything but f16.
func accumulateProblem(o *ir.Op) *Problem {
	if e := in(o, 0).Elem; Str(o, "accumulate") == "f16" && e != types.F16 {
		return attrProblem("DM115", "accumulate", "accumulate = f16 is not supported for operands of %s", e).help("leave accumulate out")
	}
	return nil
}

var argmaxDef = &Def{
	Name: "argmax", Family: Normalization, Class: ClassNormalization,
	Summary: "position of the largest element along a dimension",
	Doc:     "The first position of the largest value along `dim`; a NaN counts as the largest. Positions are i64, or i32 where the result is written so.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2xi64> {
  %i = dm.argmax %x, dim = 1 : (tensor<2x4xf32>) -> tensor<2xi64>
  return %i : tensor<2xi64>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results:  []Param{{Name: "index", Elems: []types.Elem{types.I64, types.I32}, Doc: "x's sizes without `dim`"}},
	Attrs: []AttrDef{
		lastDimAttr("dimension that is searched"),
		{Name: "keep_dims", Kind: KindBool, Default: types.Bool(false), Doc: "the dimension stays with size 1"},
	},
	Traits:   Pure,
	Factors:  rowsOf(reducedDim),
	Divides:  "The dimensions but `dim`.",
	Exchange: exchangedSearch, Exchanges: "`dim`: devices exchange what they found in their pieces.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		d, p := dimOf(o, "dim", x.Shape)
		if p != nil {
			return nil, p
		}
		shape := without(x.Shape, d)
		if Bool(o, "keep_dims") {
			shape = replaced(x.Shape, d, dim.Const(1))
		}
		return one(tensor(x, indexElem(o, 0), shape...)), nil
	},
	Kernel:     Library,
	Derivative: argmaxDerivative,
}

func replaced(shape []dim.Dim, d int, n dim.Dim) []dim.Dim {
	r := append([]dim.Dim{}, shape...)
	r[d] = n
	return r
}

var reduceWindowDef = &Def{
	Name: "reduce_window", Family: Normalization, Class: ClassNormalization,
	Summary: "reduction over a moving window (pooling)",
	Foreign: []Foreign{
		{Names: "max_pool max_pool1d max_pool2d max_pool3d", Form: "max"},
		{Names: "avg_pool avg_pool1d avg_pool2d avg_pool3d average_pool", Form: "add", Rest: "and dm.div by the elements of a window"},
	},
	Doc: "Every element of the result is the named reduction of a window of x; the lists have one entry for each dimension of x, so that a pool of NCHW images has windows such as `[1, 1, 2, 2]`. " +
		"Padding holds the neutral element of the reduction. An average pool is `add` and a division by the window's elements. Half precision is accumulated in f32.\n\n" +
		"Counts (elements of the window - 1) FLOP for each element of the result for `add` and `mul`, none for `max` and `min`. Reads the elements that some window touches.",
	Example: `func.func @example(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %y = dm.reduce_window max %x, window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2] : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  return %y : tensor<1x2x2x2xf32>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: numeric, Doc: "x's element type; sizes `(d + low + high - (window - 1)·dilation - 1) / stride + 1`, rounded down"}},
	Attrs: []AttrDef{
		{Name: "kind", Kind: KindKeyword, Lead: true, Enum: reductionKinds, Doc: "the reduction"},
		{Name: "window_dimensions", Kind: KindInts, Doc: "size of the window in every dimension"},
		{Name: "window_strides", Kind: KindInts, Optional: true, Doc: "step of the window; 1 where absent"},
		{Name: "window_dilations", Kind: KindInts, Optional: true, Doc: "distance of the window's elements; 1 where absent"},
		{Name: "padding", Kind: KindPairs, Optional: true, Doc: "elements before and after every dimension; none where absent"},
	},
	Traits:  Pure | Windowed,
	Factors: windowFactors, Linear: linearKind,
	Divides:  "Dimensions along which the window does not move: of one element, with stride 1 and no padding.",
	Exchange: moving(reduceWindowMoves), Exchanges: "The others: devices get the elements that they lack from their neighbours.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		w, p := reduceWindow(o)
		if p != nil {
			return nil, p
		}
		return one(tensor(in(o, 0), in(o, 0).Elem, w.Out...)), nil
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		w, p := reduceWindow(o)
		return windowTraffic(o, w, p)
	},
	Row: func(o *ir.Op) (dims []int) {
		for d, n := range Ints(o, "window_dimensions") {
			if n > 1 {
				dims = append(dims, d)
			}
		}
		return dims
	},
	FLOP: func(o *ir.Op) dim.Dim {
		n := dim.Const(1)
		for _, s := range Ints(o, "window_dimensions") {
			n = n.Scale(s)
		}
		return sums(o, out(o, 0).Elements().Mul(n.Sub(dim.Const(1))))
	},
	Derivative: reduceWindowDerivative,
}

var topKDef = &Def{
	Name: "top_k", Family: Normalization, Class: ClassNormalization,
	Summary: "the k largest elements along a dimension, with their positions",
	Doc: "Values in falling order along `dim`, of equal values the earlier first; with `largest = false` the smallest in rising order. The second result, which may be left out, holds their positions, " +
		"i64 or, where written so, i32.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v, %i = dm.top_k %x, k = 3 : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results: []Param{
		{Name: "values", Elems: numeric, Doc: "x's sizes with k at `dim`"},
		{Name: "indices", Elems: []types.Elem{types.I64, types.I32}, Optional: true, Doc: "positions of the values along `dim`"},
	},
	Attrs: []AttrDef{
		{Name: "k", Kind: KindInt, Doc: "how many; at most the dimension's size"},
		lastDimAttr("dimension that is searched"),
		{Name: "largest", Kind: KindBool, Default: types.Bool(true), Doc: "the largest, otherwise the smallest"},
	},
	Traits:   Pure,
	Factors:  rowsOf(reducedDim),
	Divides:  "The dimensions but `dim`.",
	Exchange: exchangedSearch, Exchanges: "`dim`: devices exchange what they found in their pieces.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		d, p := dimOf(o, "dim", x.Shape)
		if p != nil {
			return nil, p
		}
		k := Int(o, "k")
		if n, ok := x.Shape[d].Int(); k < 1 || ok && k > n {
			return nil, attrProblem("DM115", "k", "k = %d of dimension %d of %s, which has %s elements", k, d, shapeText(x.Shape), dimText(x.Shape[d])).
				help("k is at least 1 and at most the dimension's size")
		}
		return withIndices(o, tensor(x, x.Elem, replaced(x.Shape, d, dim.Const(k))...)), nil
	},
	Kernel:     Library,
	Derivative: topKDerivative,
}

var sortDef = &Def{
	Name: "sort", Family: Normalization, Class: ClassNormalization,
	Summary: "elements in order along a dimension, with their positions",
	Doc: "Rising order along `dim`, falling with `descending`; equal elements keep their order; NaN comes last. The second result, which may be left out, holds the elements' former positions, " +
		"i64 or, where written so, i32.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>) {
  %v, %i = dm.sort %x, descending = true : (tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>)
  return %v, %i : tensor<2x5xf32>, tensor<2x5xi64>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results: []Param{
		{Name: "values", Elems: numeric, Doc: "x's type"},
		{Name: "indices", Elems: []types.Elem{types.I64, types.I32}, Optional: true, Doc: "former positions along `dim`"},
	},
	Attrs: []AttrDef{
		lastDimAttr("dimension that is sorted"),
		{Name: "descending", Kind: KindBool, Default: types.Bool(false), Doc: "the largest first"},
	},
	Traits:  Pure,
	Factors: rowsOf(reducedDim),
	Divides: "The dimensions but `dim`.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		ts, p := inferAlongDim(o)
		if p != nil {
			return nil, p
		}
		return withIndices(o, asTensor(ts[0])), nil
	},
	Kernel:     Library,
	Derivative: sortDerivative,
}

// withIndices adds the type of the positions where o has a second result.
func withIndices(o *ir.Op, values *types.Tensor) []types.Type {
	ts := one(values)
	if len(o.Results) > 1 {
		ts = append(ts, tensor(values, indexElem(o, 1), values.Shape...))
	}
	return ts
}

// Ordering is what dm.sort and dm.top_k put in order: lines of so many elements, of which the first Most are results.
type Ordering struct{ Lines, Length, Most dim.Dim }

// OrderingOf is that of o, if it is such an op.
func OrderingOf(o *ir.Op) (x Ordering, ok bool) {
	d := Of(o)
	if d != sortDef && d != topKDef {
		return x, false
	}
	t := o.In(0)
	if t == nil {
		return x, false
	}
	at, ok := Dim(o, "dim", t.Rank())
	if !ok {
		return x, false
	}
	x = Ordering{Lines: dim.Const(1), Length: t.Shape[at], Most: t.Shape[at]}
	for i, n := range t.Shape {
		if i != at {
			x.Lines = x.Lines.Mul(n)
		}
	}
	if d == topKDef {
		x.Most = dim.Const(Int(o, "k"))
	}
	return x, true
}
