package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var sliceDef = &Def{
	Name: "slice", Family: Movement, Class: ClassMovement,
	Summary: "a regular part of every dimension",
	Foreign: []Foreign{{Names: "narrow strided_slice"}, {Names: "split chunk", Rest: "once for each part"}},
	Doc: "Element i of dimension d is element `start_indices[d] + i·strides[d]` of the operand, below `limit_indices[d]`. The lists have one entry for each dimension or, with `dims`, for each dimension " +
		"that it names; the others, such as those of symbolic size, stay whole.\n\nReads what it takes, the result's size, and writes it; counts no FLOP.",
	Example: `func.func @example(%x: tensor<4x6xf32>) -> tensor<2x3xf32> {
  %y = dm.slice %x, start_indices = [1, 0], limit_indices = [3, 6], strides = [1, 2] : (tensor<4x6xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "sizes `(limit - start) / stride`, rounded up"}},
	Attrs: []AttrDef{
		{Name: "start_indices", Kind: KindInts, Doc: "first element taken"},
		{Name: "limit_indices", Kind: KindInts, Doc: "first element no longer taken"},
		{Name: "strides", Kind: KindInts, Optional: true, Doc: "step; 1 where absent"},
		{Name: "dims", Kind: KindInts, Optional: true, Doc: "dimensions that the lists apply to; all where absent"},
	},
	Traits:  Pure,
	Factors: sliceFactors, Linear: linearIn([]int{0}), Piece: slicePiece,
	Divides:    "Dimensions that are taken whole.",
	Exchange:   moving(sliceMoves),
	Exchanges:  "The others: devices get the elements that they lack from their neighbours.",
	Infer:      inferSlice,
	Traffic:    touchedTraffic,
	Move:       moveSlice,
	Orders:     AlikeOrders,
	Derivative: sliceDerivative,
}

// slicing is the part of every dimension that a dm.slice takes. Limit is
// meaningless where Whole.
type slicing struct {
	Start, Limit, Stride []int64
	Whole                []bool
}

// sliceOf reads the lists of a dm.slice, one entry for each dimension of its operand.
func sliceOf(o *ir.Op) (*slicing, *Problem) {
	x := in(o, 0)
	dims, p := dimsOf(o, "dims", x.Shape)
	if p != nil {
		return nil, p
	}
	var lists [3][]int64
	for i, name := range []string{"start_indices", "limit_indices", "strides"} {
		otherwise, least := int64(0), int64(0)
		if name == "strides" {
			otherwise, least = 1, 1
		}
		if lists[i], p = listOf(o, name, len(dims), otherwise, least); p != nil {
			return nil, p
		}
	}
	n := x.Rank()
	s := &slicing{Start: make([]int64, n), Limit: make([]int64, n), Stride: make([]int64, n), Whole: make([]bool, n)}
	for d := range n {
		s.Whole[d], s.Stride[d] = true, 1
		if size, ok := x.Shape[d].Int(); ok {
			s.Limit[d] = size
		}
	}
	for i, d := range dims {
		s.Whole[d], s.Start[d], s.Limit[d], s.Stride[d] = false, lists[0][i], lists[1][i], lists[2][i]
	}
	return s, nil
}

func inferSlice(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	s, p := sliceOf(o)
	if p != nil {
		return nil, p
	}
	shape := append([]dim.Dim{}, x.Shape...)
	for d := range shape {
		if s.Whole[d] {
			continue
		}
		if s.Limit[d] < s.Start[d] {
			return nil, attrProblem("DM119", "limit_indices", "the slice of dimension %d runs from %d to %d", d, s.Start[d], s.Limit[d]).help("the limit must not be below the start")
		}
		if n, ok := x.Shape[d].Int(); ok && s.Limit[d] > n {
			return nil, attrProblem("DM119", "limit_indices", "the slice of dimension %d of %s ends at %d", d, shapeText(x.Shape), s.Limit[d]).
				help("the limit is at most the dimension's size, %d", n)
		}
		shape[d] = dim.Const(0)
		if n := s.Limit[d] - s.Start[d]; n > 0 {
			shape[d] = dim.Const((n-1)/s.Stride[d] + 1) // rounded up, without leaving 64 bits
		}
	}
	return one(tensor(x, x.Elem, shape...)), nil
}

// touchedTraffic: of operand 0 only as much is read as the result has, further
// operands (indices) in full.
func touchedTraffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	if len(read) > 0 {
		read[0] = written
	}
	return read, written
}

const startsDoc = "one scalar tensor for each dimension; one integer type"

var dynamicSliceDef = &Def{
	Name: "dynamic_slice", Family: Movement, Class: ClassMovement,
	Summary: "a slice of fixed size at a position known at run time",
	Doc: "The part starts at the scalars given, one for each dimension, moved so that it lies inside, as in StableHLO. A size of -1 takes the whole dimension.\n\n" +
		"Reads what it takes, the result's size, and the starts of dimensions that it does not take whole; writes the result; counts no FLOP.",
	Example: `func.func @example(%x: tensor<4x6xf32>) -> tensor<2x6xf32> {
  %i = dm.constant dense<1> : tensor<i64>
  %j = dm.constant dense<0> : tensor<i64>
  %y = dm.dynamic_slice %x, %i, %j, slice_sizes = [2, 6] : (tensor<4x6xf32>, tensor<i64>, tensor<i64>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: storable, Doc: "any shape"},
		{Name: "start_indices", Elems: indexes, Variadic: true, Doc: startsDoc},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "`slice_sizes`"}},
	Attrs:   []AttrDef{{Name: "slice_sizes", Kind: KindInts, Doc: "size of the part in every dimension; -1 is the whole"}},
	Traits:  Pure,
	Factors: func(o *ir.Op) *Factors { return partFactors(o, out(o, 0)) }, Linear: linearIn([]int{0}), Piece: dynamicSlicePiece,
	Divides:  "Dimensions that are taken whole.",
	Exchange: exchangedPart, Exchanges: "The others: each device gives what its piece has, and the results are parts of a sum.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if p := startsProblem(o, 1, x); p != nil {
			return nil, p
		}
		sizes, p := listOf(o, "slice_sizes", x.Rank(), 0, -1)
		if p != nil {
			return nil, p
		}
		shape := append([]dim.Dim{}, x.Shape...)
		for d, n := range sizes {
			if n < 0 {
				continue
			}
			if have, ok := x.Shape[d].Int(); ok && n > have {
				return nil, attrProblem("DM119", "slice_sizes", "a slice of size %d does not fit dimension %d of %s", n, d, shapeText(x.Shape))
			}
			shape[d] = dim.Const(n)
		}
		return one(tensor(x, x.Elem, shape...)), nil
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		read, written := touchedTraffic(o)
		return startsRead(o, read, 1, o.Out(0)), written
	},
	Move:       moveDynamicSlice,
	Derivative: dynamicSliceDerivative,
}

// startsRead is read without the starts, operands first and up, of the dimensions
// of o's first operand that part has whole: there they can only be 0.
func startsRead(o *ir.Op, read []dim.Dim, first int, part *types.Tensor) []dim.Dim {
	x := o.In(0)
	if x == nil || part == nil {
		return read
	}
	for d := range min(x.Rank(), part.Rank(), len(read)-first) {
		if x.Shape[d].Equal(part.Shape[d]) {
			read[first+d] = dim.Dim{}
		}
	}
	return read
}

// startsProblem checks the scalar positions, operands first and up, for each dimension of x.
func startsProblem(o *ir.Op, first int, x *types.Tensor) *Problem {
	if n := len(o.Operands) - first; n != x.Rank() {
		return problem("DM124", -1, "%s for the %s of %s", diag.Count(n, "start position"), diag.Count(x.Rank(), "dimension"), shapeText(x.Shape)).
			help("give one scalar for each dimension")
	}
	for i := first; i < len(o.Operands); i++ {
		if p := rankIs(o, i, 0, "a start index"); p != nil {
			return p
		}
	}
	return sameElems(o, first)
}

var dynamicUpdateSliceDef = &Def{
	Name: "dynamic_update_slice", Family: Movement, Class: ClassMovement,
	Summary: "a tensor with a slice replaced at a position known at run time",
	Foreign: []Foreign{{Names: "slice_scatter"}},
	Doc: "The result is x with `update` written over it from the starting position, which is moved so that the update lies inside, as in StableHLO.\n\n" +
		"Done in place it reads the update and the starts of dimensions that it does not have whole, and writes the update's size; else it also reads the rest of x and writes all of y. " + inPlaceDoc + " Counts no FLOP.",
	Example: `func.func @example(%x: tensor<4x6xf32>, %u: tensor<1x6xf32>) -> tensor<4x6xf32> {
  %i = dm.constant dense<2> : tensor<i64>
  %j = dm.constant dense<0> : tensor<i64>
  %y = dm.dynamic_update_slice %x, %u, %i, %j : (tensor<4x6xf32>, tensor<1x6xf32>, tensor<i64>, tensor<i64>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: storable, Doc: "any shape"},
		{Name: "update", Elems: storable, Doc: "x's number of dimensions, sizes not above x's, x's element type"},
		{Name: "start_indices", Elems: indexes, Variadic: true, Doc: startsDoc},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Traits:  Pure | Update,
	Factors: func(o *ir.Op) *Factors { return partFactors(o, in(o, 1)) }, Linear: linearIn([]int{0, 1}),
	Divides:  "Dimensions that the update has whole.",
	Exchange: exchangedUpdate, Exchanges: "The others of x: each device writes what belongs to its piece.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x, u := in(o, 0), in(o, 1)
		if x.Elem != u.Elem {
			return nil, problem("DM111", 1, "element types %s and %s differ", x.Elem, u.Elem).help("convert one of them with dm.convert")
		}
		if p := rankIs(o, 1, x.Rank(), "the update"); p != nil {
			return nil, p
		}
		for d := range x.Shape {
			a, ok := u.Shape[d].Int()
			b, ok2 := x.Shape[d].Int()
			if ok && ok2 && a > b {
				return nil, problem("DM119", 1, "the update %s does not fit %s in dimension %d", shapeText(u.Shape), shapeText(x.Shape), d)
			}
		}
		if p := startsProblem(o, 2, x); p != nil {
			return nil, p
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		read, _ := wholeTraffic(o)
		if len(read) < 2 {
			return read, dim.Dim{}
		}
		read[0] = dim.Dim{}
		return startsRead(o, read, 2, o.In(1)), read[1]
	},
	Move:       moveDynamicUpdate,
	Derivative: dynamicUpdateSliceDerivative,
}

const outsideDoc = "An index outside the dimension is clamped to the nearest one inside, as in StableHLO; of a dimension of size 0 there are zeros."

var gatherDef = &Def{
	Name: "gather", Family: Movement, Class: ClassMovement,
	Summary: "slices selected by an index tensor",
	Foreign: []Foreign{{Names: "take index_select"}},
	Doc: "`y[a…, i…, c…] = x[a…, indices[i…], c…]`: the dimension `dim` of x is replaced by the indices' dimensions, as in NumPy's `take`. The first `batch_dims` dimensions of x and indices are shared: " +
		"each batch has its own indices. " + outsideDoc + "\n\nReads what it takes, the result's size or, where the indices were counted (`dm.counted`), the rows that they name, and the indices; writes the result; counts no FLOP.",
	Example: `func.func @example(%x: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %i = dm.constant dense<[3, 0]> : tensor<2xi64>
  %y = dm.gather %x, %i, dim = 0 : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: storable, Doc: "at least one dimension"},
		{Name: "indices", Elems: indexes, Doc: "any shape that begins with the batch dimensions"},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "x's shape with the indices' in place of `dim`"}},
	Attrs:   []AttrDef{gatherDim, batchDims},
	Traits:  Pure,
	Factors: gatherFactors(-1), Linear: linearIn([]int{0}),
	Divides:  "The dimensions of x but `dim`, and those of the indices.",
	Exchange: indexedGather, Exchanges: "`dim`: each device gives what its piece of x has, and the results are parts of a sum.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		shape, p := gathered(o)
		if p != nil {
			return nil, p
		}
		return one(tensor(in(o, 0), in(o, 0).Elem, shape...)), nil
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		if len(o.Operands) < 2 {
			return touchedTraffic(o)
		}
		return gatherTraffic(o, numbersOf(o.Operands[1]))
	},
	Move:       moveGather,
	Derivative: gatherDerivative,
}

var (
	gatherDim = AttrDef{Name: "dim", Kind: KindInt, Default: types.Int{}, Doc: "dimension of x that is indexed; not below `batch_dims`"}
	batchDims = AttrDef{Name: "batch_dims", Kind: KindInt, Default: types.Int{}, Doc: "how many leading dimensions x and indices share"}
)

// gathered is the shape of what operand 1's indices pick from operand 0.
func gathered(o *ir.Op) ([]dim.Dim, *Problem) {
	x, idx := in(o, 0), in(o, 1)
	d, p := dimOf(o, "dim", x.Shape)
	if p != nil {
		return nil, p
	}
	batch := Int(o, "batch_dims")
	if batch < 0 || batch > int64(d) || batch > int64(idx.Rank()) {
		return nil, attrProblem("DM115", "batch_dims", "batch_dims = %d with dim = %d of %s and indices %s", batch, d, shapeText(x.Shape), shapeText(idx.Shape)).
			help("batch dimensions come before dim, and the indices have them too")
	}
	if !sameShape(x.Shape[:batch], idx.Shape[:batch]) {
		return nil, problem("DM122", 1, "x %s and indices %s differ in their %s", shapeText(x.Shape), shapeText(idx.Shape), diag.Count(int(batch), "batch dimension"))
	}
	shape := append(append([]dim.Dim{}, x.Shape[:d]...), idx.Shape[batch:]...)
	return append(shape, x.Shape[d+1:]...), nil
}

var scatterDef = &Def{
	Name: "scatter", Family: Movement, Class: ClassMovement,
	Summary: "slices written or combined at positions given by an index tensor",
	Foreign: []Foreign{{Names: "index_add scatter_add", Form: "add"}, {Names: "index_copy index_put", Form: "set"}},
	Doc: "The reverse of `dm.gather`: the result is x with `x[a…, indices[i…], c…]` replaced by `updates[a…, i…, c…]` or, with `add`, `mul`, `max` or `min`, combined with it. " +
		"With the default `set`, of several updates of one element the last in row-major order stays. An update outside the dimension is dropped, as in StableHLO.\n\n" +
		"Done in place it reads the indices, the updates and, unless `set`, as much of x, and writes the updates' size, x's at most; else it reads all of x and writes all of y. " + inPlaceDoc + " `add` and `mul` count 1 FLOP for each element of the updates.",
	Example: `func.func @example(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %i = dm.constant dense<[3, 3]> : tensor<2xi64>
  %y = dm.scatter add %x, %i, %u, dim = 0 : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: storable, Doc: "at least one dimension"},
		{Name: "indices", Elems: indexes, Doc: "any shape that begins with the batch dimensions"},
		{Name: "updates", Elems: storable, Doc: "the shape that `dm.gather` of x and indices has; x's element type"},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Attrs: []AttrDef{
		{Name: "kind", Kind: KindKeyword, Lead: true, Enum: append([]string{"set"}, reductionKinds...), Default: types.Keyword("set"), Doc: "how an update is combined with the element that it replaces"},
		gatherDim, batchDims,
	},
	Traits:  Pure | Update,
	Factors: gatherFactors(2), Linear: linearScatter,
	Divides:  "The dimensions of x but `dim`.",
	Exchange: indexedScatter, Exchanges: "`dim`: each device keeps the updates of its piece. Unless `set`, those of the indices: the results are parts of a reduction of the kind.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x, u := in(o, 0), in(o, 2)
		want, p := gathered(o)
		if p != nil {
			return nil, p
		}
		if !sameShape(want, u.Shape) {
			return nil, problem("DM122", 2, "x %s at indices %s takes updates %s, but they have shape %s", shapeText(x.Shape), shapeText(in(o, 1).Shape), shapeText(want), shapeText(u.Shape))
		}
		if x.Elem != u.Elem {
			return nil, problem("DM111", 2, "element types %s and %s differ", x.Elem, u.Elem).help("convert one of them with dm.convert")
		}
		if Str(o, "kind") != "set" && (x.Elem == types.I1 || x.Elem.Packed() || x.Elem.Bytes() == 1 && x.Elem.IsFloat()) {
			return nil, problem("DM111", 0, "scatter %s does not work on %s", Str(o, "kind"), x.Elem)
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	FLOP: func(o *ir.Op) dim.Dim { return sums(o, in(o, 2).Elements()) },
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		read, _ := wholeTraffic(o)
		if len(read) < 3 {
			return read, dim.Dim{}
		}
		part := read[2] // each place once, however many updates meet there
		if x := in(o, 0); x != nil && part.AtLeast(x.Bytes()) {
			part = x.Bytes()
		}
		if read[0] = part; Str(o, "kind") == "set" {
			read[0] = dim.Dim{}
		}
		return read, part
	},
	Kernel:     Selective,
	Derivative: scatterDerivative,
}

var embeddingDef = &Def{
	Name: "embedding", Family: Movement, Class: ClassMovement,
	Summary: "rows of a table selected by index",
	Foreign: []Foreign{{Names: "embedding_lookup embed"}},
	Doc:     "`y[i…, :] = table[ids[i…], :]`, that is `dm.gather` along dimension 0. " + outsideDoc + "\n\nReads the rows that it takes, the result's size, and the ids; writes the result; counts no FLOP.",
	Example: `func.func @example(%table: tensor<10x4xf32>) -> tensor<2x3x4xf32> {
  %ids = dm.constant dense<[[1, 2, 3], [9, 0, 1]]> : tensor<2x3xi64>
  %y = dm.embedding %table, %ids : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}`,
	Operands: []Param{
		{Name: "table", Elems: storable, Doc: "`[vocabulary, depth]`"},
		{Name: "ids", Elems: indexes, Doc: "any shape"},
	},
	Results: []Param{{Name: "y", Elems: storable, Doc: "`[ids…, depth]`"}},
	Traits:  Pure,
	Factors: func(o *ir.Op) *Factors { return pickFactors(o, 0, 0, -1) }, Linear: linearIn([]int{0}),
	Divides:  "The depth, and the dimensions of the ids.",
	Exchange: indexedGather, Exchanges: "The vocabulary: each device gives the rows that its piece of the table has, and the results are parts of a sum.",
	Classes: func(o *ir.Op) (int, dim.Dim, int64) { return 1, in(o, 0).Shape[0], math.MinInt64 },
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		table := in(o, 0)
		if p := rankIs(o, 0, 2, "the table"); p != nil {
			return nil, p.help("a table is [vocabulary, depth]")
		}
		return one(tensor(table, table.Elem, append(append([]dim.Dim{}, in(o, 1).Shape...), table.Shape[1])...)), nil
	},
	Traffic: touchedTraffic,
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		w := NewBuilder(b, nil)
		return w.done(w.Value("gather", o.Operands, named("dim", intAttr(0))))
	},
	Move:       moveEmbedding,
	Derivative: embeddingDerivative,
}

// Taken is the part that the dm.slice o takes of each dimension of its operand:
// elements start, start + stride and so on below limit. Whole dimensions, which
// may be of open size, have a stride of 0. ok is false if o is not a Valid slice.
func Taken(o *ir.Op) (part []Range, ok bool) {
	if o.Name != "dm.slice" || !Valid(o) {
		return nil, false
	}
	s, p := sliceOf(o)
	if p != nil {
		return nil, false
	}
	for d := range s.Start {
		r := Range{s.Start[d], s.Limit[d], s.Stride[d]}
		if n, known := in(o, 0).Shape[d].Int(); s.Whole[d] || known && r == (Range{0, n, 1}) {
			r = Range{}
		}
		part = append(part, r)
	}
	return part, true
}

// Range is every Stride'th element from Start below Limit; see Taken.
type Range struct{ Start, Limit, Stride int64 }
