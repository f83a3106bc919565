package op

import (
	"math/bits"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The ops on positions: a vector of m + 1 integers that do not fall, by which m segments divide
// a dimension, as the positions of a compressed level divide what a sparse tensor stores.

// batchedPositions is how many leading dimensions positions have, in each of which they divide segments of their own.
var batchedPositions = AttrDef{Name: "batch_dims", Kind: KindInt, Default: types.Int{}, Doc: "how many leading dimensions positions have, along which each element has positions of its own"}

// positionElems are the element types of positions, and of numbers of segments.
var positionElems = []types.Elem{types.I64, types.I32}

const positionsDoc = "m + 1 positions that do not fall: segment i begins at the i-th and ends before the next"

// ReducesSegments reports whether o is a dm.segment_reduce, whose last operand says where its segments begin.
func ReducesSegments(o *ir.Op) bool { return o.Name == Prefix+"segment_reduce" }

// Positions is the operand of o that says where the segments begin which it walks one after the other; -1 of other ops.
func Positions(o *ir.Op) int {
	switch o.Name {
	case Prefix + "segment_reduce":
		return 1
	case Prefix + "segment_ids":
		return 0
	case Prefix + "segment_attention":
		return 3
	}
	return -1
}

var segmentReduceDef = &Def{
	Name: "segment_reduce", Family: Normalization, Class: ClassNormalization,
	Summary: "reduction of the segments of a dimension, of any lengths",
	Foreign: []Foreign{
		{Names: "segment_csr", Form: "add"},
		{Names: "segment_sum segment_add_csr segment_sum_csr", Form: "add", Rest: "with positions in place of the numbers of the segments"},
		{Names: "segment_prod", Form: "mul", Rest: "with positions in place of the numbers of the segments"},
		{Names: "segment_max segment_max_csr", Form: "max", Rest: "with positions in place of the numbers of the segments"},
		{Names: "segment_min segment_min_csr", Form: "min", Rest: "with positions in place of the numbers of the segments"},
	},
	Doc: "`y[…, i, …] = Σ x[…, k, …]` over `positions[i] ≤ k < positions[i + 1]` along `dim`, or the product, the maximum or the minimum; of an empty segment the neutral element of the kind. " +
		"Elements in front of the first position and from the last one on are in no segment. Positions are clamped to 0 and the size of the dimension, so that nothing outside is read, and a segment that would end before it begins is empty. " +
		"Half precision is accumulated in f32 and rounded once.\n\n" +
		"Counts 1 FLOP for each element of x for `add` and `mul`, none for `max` and `min`.",
	Example: `func.func @example(%x: tensor<5x2xf32>) -> tensor<3x2xf32> {
  %positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %y = dm.segment_reduce add %x, %positions : (tensor<5x2xf32>, tensor<4xi32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: numeric, Doc: "at least one dimension"},
		{Name: "positions", Elems: positionElems, Doc: positionsDoc},
	},
	Results: []Param{{Name: "y", Elems: numeric, Doc: "x's sizes with m at `dim`, x's element type"}},
	Attrs: []AttrDef{
		{Name: "kind", Kind: KindKeyword, Lead: true, Enum: reductionKinds, Doc: "the reduction"},
		{Name: "dim", Kind: KindInt, Default: types.Int{}, Doc: "dimension that the segments divide; not below `batch_dims`"},
		batchedPositions,
	},
	Traits:  Pure,
	Factors: segmentReduceFactors, Linear: linearKind,
	Divides: "The dimensions but `dim`.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		d, p := dimOf(o, "dim", x.Shape)
		if p != nil {
			return nil, p
		}
		m, p := segments(o, 1)
		if p != nil {
			return nil, p
		}
		if b := batched(o); d < b || !sameShape(x.Shape[:b], in(o, 1).Shape[:b]) {
			return nil, attrProblem("DM115", "batch_dims", "batch_dims = %d with dim = %d of %s and positions %s", b, d, shapeText(x.Shape), shapeText(in(o, 1).Shape)).
				help("x and the positions begin with the same dimensions, and segments divide one behind these")
		}
		return one(tensor(x, x.Elem, replaced(x.Shape, d, m)...)), nil
	},
	FLOP:       func(o *ir.Op) dim.Dim { return sums(o, in(o, 0).Elements()) },
	Expand:     expandSegmentReduce,
	Derivative: segmentReduceDerivative,
}

// batched is how many leading dimensions the positions of o have.
func batched(o *ir.Op) int { return int(Int(o, "batch_dims")) }

// batchFactors are the leading dimensions of tensors, which are those of positions, the last operand.
func batchFactors(o *ir.Op, f *Factors) {
	positions := f.Operands[len(f.Operands)-1]
	for d := range min(batched(o), len(positions)) {
		n := f.factor(in(o, len(f.Operands)-1).Shape[d], Parallel)
		positions[d], f.Results[0][d] = []int{n}, []int{n}
	}
}

func segmentReduceFactors(o *ir.Op) *Factors {
	f := rowsOf(reducedDim)(o)
	if f != nil {
		for d := range min(batched(o), in(o, 1).Rank()) {
			f.Operands[1][d] = f.Operands[0][d]
		}
	}
	return f
}

// segments is the number of segments of the positions, operand i.
func segments(o *ir.Op, i int) (dim.Dim, *Problem) {
	b := batched(o)
	if b < 0 {
		return dim.Dim{}, attrProblem("DM115", "batch_dims", "batch_dims = %d is no number of dimensions", b)
	}
	if p := rankIs(o, i, 1+b, "the vector of positions"); p != nil {
		return dim.Dim{}, p
	}
	n := in(o, i).Shape[b]
	if n.IsZero() {
		return dim.Dim{}, problem("DM119", i, "no positions").help("m segments have m + 1 positions; one position is that of no segments")
	}
	return n.Sub(dim.Const(1)), nil
}

var segmentIDsDef = &Def{
	Name: "segment_ids", Family: Movement, Class: ClassMovement,
	Summary: "for each element the number of the segment that holds it",
	Foreign: []Foreign{{Names: "ptr2ind convert_indices_from_csr_to_coo"}},
	Doc: "Element k is how many of the positions but the first are at most k: the number of the segment that has k where one does, as `dm.segment_reduce` divides a dimension, 0 in front of the first segment, and m from the last position on. " +
		"The length is that of the type as written. Numbers are i32, or i64 where the result is written so. Where positions fall, the elements are some numbers from 0 to m.\n\n" +
		"Inside a kernel that reduces the segments of the same positions it moves nothing. Counts no FLOP.",
	Example: `func.func @example() -> tensor<5xi32> {
  %positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %ids = dm.segment_ids %positions : (tensor<4xi32>) -> tensor<5xi32>
  return %ids : tensor<5xi32>
}`,
	Operands: []Param{{Name: "positions", Elems: positionElems, Doc: positionsDoc}},
	Results:  []Param{{Name: "ids", Elems: positionElems, Doc: "a vector of the length written"}},
	Attrs:    []AttrDef{batchedPositions},
	Traits:   Pure | Cast,
	Factors: func(o *ir.Op) *Factors {
		if batched(o) == 0 { // an element depends on its number in the whole vector
			return nil
		}
		f := newFactors(o)
		batchFactors(o, f)
		return f
	},
	Divides: "The leading dimensions of the positions: an element depends on its number in the whole vector.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if _, p := segments(o, 0); p != nil {
			return nil, p
		}
		if len(o.Results) == 0 {
			return nil, noResult("segment_ids")
		}
		y, b := out(o, 0), batched(o)
		if y.Rank() != 1+b || !sameShape(y.Shape[:b], in(o, 0).Shape[:b]) {
			return nil, problem("DM117", -1, "the numbers of segments have shape %s where 1 dimension is expected, behind those that the positions have in front", shapeText(y.Shape))
		}
		return one(tensor(in(o, 0), countElem(o), y.Shape...)), nil
	},
	Steps:      16,
	Expand:     expandSegmentIDs,
	Derivative: flat("The result is a number of a segment: no gradient flows."),
}

// countElem is the integer type in which numbers of segments and of elements are written:
// i64 where the result is written so, otherwise i32.
func countElem(o *ir.Op) types.Elem {
	if out(o, 0).Elem == types.I64 {
		return types.I64
	}
	return types.I32
}

var searchSortedDef = &Def{
	Name: "searchsorted", Family: Movement, Class: ClassMovement,
	Summary: "for each element its place in a sorted vector",
	Foreign: []Foreign{{Names: "bucketize digitize", Rest: "with the boundaries first"}},
	Doc: "How many elements of the sorted vector are less than that of x, with `side = right` less or equal, as NumPy's `searchsorted`; NaN counts as the largest, as `dm.sort` orders. " +
		"Numbers are i32, or i64 where the result is written so. Where the vector is not sorted, the elements are some numbers from 0 to its length.\n\n" +
		"Reads both operands, writes the result; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xi32> {
  %sorted = dm.constant dense<[0.0, 1.0, 1.0, 3.0]> : tensor<4xf32>
  %i = dm.searchsorted %sorted, %x, side = right : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<2x3xi32>
  return %i : tensor<2x3xi32>
}`,
	Operands: []Param{
		{Name: "sorted", Elems: numeric, Doc: "a vector whose elements do not fall"},
		{Name: "x", Elems: numeric, Doc: "any shape, the element type of the vector"},
	},
	Results: []Param{{Name: "place", Elems: positionElems, Doc: "x's shape"}},
	Attrs: []AttrDef{{
		Name: "side", Kind: KindKeyword, Enum: []string{"left", "right"}, Default: types.Keyword("left"), Doc: "before elements that are equal, or behind them",
	}},
	Traits: Pure,
	Factors: func(o *ir.Op) *Factors {
		f := newFactors(o)
		for d, size := range in(o, 1).Shape {
			n := f.factor(size, Parallel)
			f.Operands[1][d], f.Results[0][d] = []int{n}, []int{n}
		}
		return f
	},
	Divides: "The dimensions of x.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if p := rankIs(o, 0, 1, "what is searched"); p != nil {
			return nil, p
		}
		if p := sameElems(o, 0); p != nil {
			return nil, p
		}
		return one(tensor(in(o, 1), countElem(o), in(o, 1).Shape...)), nil
	},
	Steps:      16,
	Expand:     expandSearchSorted,
	Derivative: flat("The result is a position: no gradient flows."),
}

// expandSegmentReduce scatters each element into its segment; those in none are dropped.
func expandSegmentReduce(b *ir.Builder, o *ir.Op) []*ir.Value {
	if batched(o) > 0 {
		return Unbatched(b, o)
	}
	x := in(o, 0)
	kind, known := types.ReductionOf(Str(o, "kind"))
	d, ok := Dim(o, "dim", x.Rank())
	if !known || !ok {
		return nil
	}
	m, isNumber := out(o, 0).Shape[d].Int()
	if !isNumber {
		return nil
	}
	w := NewBuilder(b, nil)
	v := w.wide(o.Operands[0])
	ids, inside := w.segmentsOf(o.Operands[1], x.Shape[d])
	ids = w.choose(inside, ids, w.number(ids, float64(m)))
	t := tensor(out(o, 0), asTensor(v.Type).Elem, out(o, 0).Shape...)
	none := w.Value(Constant, nil, named("value", Neutral(kind, t.With())), t.With())
	none = w.Value("broadcast", []*ir.Value{none}, nil, t)
	return w.done(w.Convert(w.scatter(Str(o, "kind"), none, ids, v, d, 0), x.Elem))
}

// segmentsOf is, for each of n elements, the number of the segment that has it, and whether one
// does.
func (w *Builder) segmentsOf(positions *ir.Value, n dim.Dim) (ids, inside *ir.Value) {
	t := asTensor(positions.Type)
	batch := t.Rank() - 1
	ids = w.Value("segment_ids", []*ir.Value{positions}, named("batch_dims", intAttr(batch)), tensor(t, types.I32, append(slices.Clone(t.Shape[:batch]), n)...))
	first := w.part(positions, []int{batch}, []int{0}, []int{1}, []int{1})
	k := w.count(tensor(t, t.Elem, n), 0)
	inside = w.Binary("and", w.compare("ge", k, first), w.compare("le", ids, w.lastIndex(ids, t.Shape[batch].Sub(dim.Const(1)))))
	return ids, inside
}

// expandSegmentIDs counts the positions at each element, and sums the counts up.
func expandSegmentIDs(b *ir.Builder, o *ir.Op) []*ir.Value {
	if batched(o) > 0 {
		return Unbatched(b, o)
	}
	p, ids := in(o, 0), out(o, 0)
	n, ok := p.Shape[0].Int()
	w := NewBuilder(b, nil)
	if !ok || !ids.Shape[0].IsConst() {
		return nil
	}
	counts := w.zeros(ids)
	if n > 1 && !ids.Shape[0].IsZero() {
		at := w.part(o.Operands[0], []int{0}, []int{1}, []int{int(n)}, []int{1})
		at = w.Binary("max", at, w.number(at, 0))
		counts = w.scatter("add", counts, at, w.filled(tensor(ids, ids.Elem, dim.Const(n-1)), 1), 0, 0)
		counts = w.Value("cumsum", []*ir.Value{counts}, named("dim", intAttr(0)))
	}
	return w.done(counts)
}

// expandSearchSorted is a binary search for all elements at once: the place grows by half of
// what is left as long as the element there is still one of those before.
func expandSearchSorted(b *ir.Builder, o *ir.Op) []*ir.Value {
	n, ok := in(o, 0).Shape[0].Int()
	if !ok {
		return nil
	}
	w := NewBuilder(b, nil)
	sorted, x := o.Operands[0], o.Operands[1]
	at := w.zeros(out(o, 0))
	for step := 1 << bits.Len64(uint64(n)) >> 1; step > 0 && !w.failed; step /= 2 {
		next := w.plus(at, float64(step))
		v := w.gather(sorted, w.plus(next, -1), 0, 0)
		takes := w.Binary("and", w.compare("le", next, w.number(next, float64(n))), w.precedes(v, x, Str(o, "side") == "right"))
		at = w.choose(takes, next, at)
	}
	return w.done(at)
}

// precedes is whether v comes before x in the order of dm.sort, or is equal to it if that counts.
func (w *Builder) precedes(v, x *ir.Value, equal bool) *ir.Value {
	if !asTensor(v.Type).Elem.IsFloat() {
		return w.compare(map[bool]string{true: "le", false: "lt"}[equal], v, x)
	}
	// Comparisons with NaN do not hold: x is no NaN where it is before v, and v none where it is before x.
	if equal {
		after := w.Binary("or", w.compare("lt", x, v), w.Binary("and", w.compare("eq", x, x), w.compare("ne", v, v)))
		return w.Unary("not", after)
	}
	return w.Binary("or", w.compare("lt", v, x), w.Binary("and", w.compare("eq", v, v), w.compare("ne", x, x)))
}

var segmentReduceDerivative = &Derivative{
	Doc: "`add`: dy gathered by the number of each element's segment, 0 for elements in none. `max`, `min`: the elements of a segment that have the extreme value share dy evenly. " +
		"`mul`: dy times the product of the other elements of the segment, right also where some are 0. None for the positions.",
	rule: segmentReduceRule,
}

func segmentReduceRule(g *backward) {
	x, kind := in(g.o, 0), Str(g.o, "kind")
	d, _ := Dim(g.o, "dim", x.Rank())
	batch := batched(g.o)
	ids, inside := g.segmentsOf(g.x(1), x.Shape[d])
	shape := make([]dim.Dim, x.Rank())
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	copy(shape, x.Shape[:batch])
	shape[d] = x.Shape[d]
	inside = g.Reshape(inside, shape...)
	each := func(v *ir.Value) *ir.Value { return g.gather(v, ids, d, batch) }
	reduce := func(kind string, v *ir.Value) *ir.Value {
		return g.Value("segment_reduce", []*ir.Value{v, g.x(1)}, []types.Named{{Name: "kind", Value: types.Keyword(kind)}, {Name: "dim", Value: intAttr(d)}, {Name: "batch_dims", Value: intAttr(batch)}})
	}
	dy := g.dy[0]
	switch kind {
	case "add":
		g.give(0, g.when(inside, each(dy)))
	case "mul":
		v, dy := g.wide(g.x(0)), g.wide(dy)
		zero := g.compare("eq", v, g.number(v, 0))
		zeros := reduce("add", g.Convert(zero, asTensor(v.Type).Elem))
		solid := g.choose(zero, g.number(v, 1), v)
		product := g.mul(dy, reduce("mul", solid))
		alone := g.when(g.compare("eq", zeros, g.number(v, 1)), product)
		none := g.when(g.compare("eq", zeros, g.number(v, 0)), product)
		g.give(0, g.when(inside, g.choose(zero, each(alone), g.div(each(none), solid))))
	default:
		same := g.wide(g.Convert(g.compare("eq", g.x(0), each(g.y(0))), x.Elem))
		share := g.div(g.wide(dy), reduce("add", same))
		g.give(0, g.when(g.Binary("and", inside, g.compare("ne", same, g.number(same, 0))), each(share)))
	}
}
