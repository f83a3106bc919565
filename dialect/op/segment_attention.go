package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Attention to the keys that a row of a sparse matrix stores: what dm.attention with a
// sparse mask, or a product of queries and keys where one stores, its softmax and the
// weighted sum of values, become on components.

var segmentAttentionDef = &Def{
	Name: "segment_attention", Family: Attention, Class: ClassNormalization,
	Summary: "attention to the keys that segments list",
	Foreign: []Foreign{{Names: "block_sparse_attention sparse_attention graph_attention"}},
	Doc: "`y = softmax(scale · q kᵀ + bias) v` for every head, where the queries of segment i see the keys that `coordinates[positions[i]]` to `coordinates[positions[i + 1] - 1]` name, and no others. " +
		"With `block = [r, c]` a segment is of r neighbouring queries, and a coordinate names c neighbouring keys. q is `[heads, queries, depth]`, k `[key heads, keys, depth]`, v `[key heads, keys, value depth]`; the key heads divide the heads, and each serves as many neighbouring ones.\n\n" +
		"With `scores = sum` the depth is 1, and a score is `scale · (q + k) + bias`. A score below 0 is multiplied by `slope`: both is what graph attention networks have (Veličković et al., arXiv 1710.10903). With `leak` and weights, rows of q and k of any depth are added up, " +
		"elements of the sum below 0 are multiplied by `leak`, and the weights multiply all of them: a score is `scale · Σ weights · leaky(q + k) + bias`, which is what GATv2 has (Brody et al., arXiv 2105.14491).\n\n" +
		"A query whose segment is empty gives 0. Positions are clamped to 0 and the number of coordinates, as `dm.segment_reduce` does; what lies in no segment takes part in nothing. A coordinate outside is clamped to the nearest inside. " +
		"Half precision is computed in f32 and rounded once, but for probabilities that tensor cores multiply. The second result, which may be left out, is what the gradient needs instead of the probabilities: `ln Σ e^score` of every query, -∞ where there is no key.\n\n" +
		"It is what `dm.attention` with a sparse mask becomes, and what a compiler makes of `dm.sample`, `dm.softmax` and a product: no score is in memory (Dao et al., arXiv 2205.14135; Rahman et al., FusedMM, arXiv 2011.06391).\n\n" +
		"Counts, for each score that there is room for, 2·depth, or 1 for a sum, 4·depth for a weighted one, 2·value depth, 1 for the scale, 4 for the softmax, and 1 each for a bias and a slope. " +
		"Moves q, positions, coordinates, the bias, weights and the results, and of k and v the rows that coordinates name, at most all of them.",
	Example: `func.func @example(%q: tensor<2x3x8xf32>, %k: tensor<1x4x8xf32>, %v: tensor<1x4x5xf32>) -> tensor<2x3x5xf32> {
  %positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %keys = dm.constant dense<[0, 3, 1, 2, 3]> : tensor<5xi32>
  %y = dm.segment_attention %q, %k, %v, %positions, %keys, scale = 0.35355339 : (tensor<2x3x8xf32>, tensor<1x4x8xf32>, tensor<1x4x5xf32>, tensor<4xi32>, tensor<5xi32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}`,
	Operands: []Param{
		{Name: "q", Elems: floats, Doc: "queries, `[heads, queries, depth]`", Strided: true},
		{Name: "k", Elems: floats, Doc: "keys, `[key heads, keys, depth]`", Strided: true},
		{Name: "v", Elems: floats, Doc: "values, `[key heads, keys, value depth]`", Strided: true},
		{Name: "positions", Elems: positionElems, Doc: positionsDoc},
		{Name: "coordinates", Elems: indexes, Doc: "the keys, or blocks of keys, of the segments one after the other"},
		{Name: "bias", Elems: floats, Optional: true, Doc: "added to the scores; `[heads or 1, coordinates, r, c]`"},
		{Name: "weights", Elems: floats, Optional: true, With: leakAttr, Doc: "of the elements of a sum of rows of q and k, `[heads or 1, n, depth]`; n divides the queries, of which as many neighbours have the same"},
	},
	Results: []Param{
		{Name: "y", Elems: floats, Doc: "`[heads, queries, value depth]`", Strided: true},
		{Name: "lse", Elems: []types.Elem{types.F64, types.F32}, Optional: true, Doc: "logarithm of the sum of the exponentials of each query's scores, `[heads, queries]`, f32 or wider"},
	},
	Attrs: []AttrDef{
		{Name: "block", Kind: KindInts, Default: IntList(1, 1), Doc: "queries of a segment, and keys of a coordinate"},
		{Name: "scale", Kind: KindFloat, Default: types.Float{V: 1}, Doc: "factor of the scores"},
		{Name: "scores", Kind: KindKeyword, Enum: []string{"product", "sum"}, Default: types.Keyword("product"), Doc: "what queries and keys make scores by"},
		{Name: "slope", Kind: KindFloat, Default: types.Float{V: 1}, Doc: "factor of scores below 0, with their bias"},
		{Name: leakAttr, Kind: KindFloat, Optional: true, Doc: "with weights: factor of elements below 0 of the sum of a row of q and one of k"},
	},
	Traits:  Pure,
	Factors: segmentAttentionFactors,
	Divides: "The key heads, and the heads of each.",
	Infer:   inferSegmentAttention,
	FLOP: func(o *ir.Op) dim.Dim {
		each := dim.Sum(last3(o, 2).Scale(2), dim.Const(5))
		switch {
		case SegmentWeights(o) != nil:
			each = each.Add(last3(o, 0).Scale(4))
		case AddsScores(o):
			each = each.Add(dim.Const(1))
		default:
			each = each.Add(last3(o, 0).Scale(2))
		}
		if SegmentBias(o) != nil {
			each = each.Add(dim.Const(1))
		}
		if Float(o, "slope") != 1 {
			each = each.Add(dim.Const(1))
		}
		return SegmentScores(o).Mul(each)
	},
	Traffic:    segmentAttentionTraffic,
	Kernel:     Library,
	Expand:     expandSegmentAttention,
	Derivative: segmentAttentionDerivative,
}

// TakesSegments reports whether o's own kernel reads what positions of segments determine.
func TakesSegments(o *ir.Op) bool {
	d := Of(o)
	return d != nil && (d == segmentAttentionDef || d == groupedMatmulDef)
}

// AddsScores reports whether a score of o, a dm.segment_attention, is a sum and no product.
func AddsScores(o *ir.Op) bool { return Str(o, "scores") == "sum" }

// leakAttr is the attribute of a dm.segment_attention whose scores are weighted.
const leakAttr = "leak"

// SegmentBias is what o, a dm.segment_attention, adds to its scores; nil: nothing.
func SegmentBias(o *ir.Op) *ir.Value { return operandNamed(o, "bias") }

// SegmentWeights are those of the elements of which a score of o, a dm.segment_attention, is the sum; nil: it has none.
func SegmentWeights(o *ir.Op) *ir.Value { return operandNamed(o, "weights") }

// last3 is the last dimension of operand i, a tensor of three.
func last3(o *ir.Op, i int) dim.Dim {
	if t := in(o, i); t.Rank() == 3 {
		return t.Shape[2]
	}
	return dim.Dim{}
}

// SegmentBlock is the queries of a segment, and the keys of a coordinate; 0 where o is not well-formed.
func SegmentBlock(o *ir.Op) (rows, columns int64) {
	b, p := listOf(o, "block", 2, 1, 1)
	if p != nil {
		return 0, 0
	}
	return b[0], b[1]
}

// SegmentScores is the number of scores of a dm.segment_attention that there is room for.
func SegmentScores(o *ir.Op) dim.Dim {
	r, c := SegmentBlock(o)
	q, at := in(o, 0), in(o, 4)
	if q.Rank() != 3 || at.Rank() != 1 {
		return dim.Dim{}
	}
	return q.Shape[0].Mul(at.Shape[0]).Scale(r).Scale(c)
}

// segmentAttentionTraffic reads of k and v the rows that there are coordinates for.
func segmentAttentionTraffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	_, c := SegmentBlock(o)
	if len(read) < 5 || len(o.Operands) < 5 || in(o, 4).Rank() != 1 {
		return read, written
	}
	n := numbersOf(o.Operands[4])
	for i := 1; i < 3; i++ {
		t := in(o, i)
		if t.Rank() != 3 {
			continue
		}
		rows := in(o, 4).Shape[0].Scale(c)
		if p := n.profile(); p != nil {
			rows = dim.Const(p.By[0].Touched).Scale(c)
		}
		if touched := t.Elem.Size(dim.Prod(t.Shape[0], rows, t.Shape[2])); !touched.AtLeast(read[i]) {
			read[i] = touched
		}
	}
	return read, written
}

func segmentAttentionFactors(o *ir.Op) *Factors {
	f := newFactors(o)
	q, k := in(o, 0).Shape, in(o, 1).Shape
	heads := []int{f.factor(k[0], Reduced)}
	all := heads
	if group, ok := q[0].Div(k[0]); ok {
		all = append(all[:1:1], f.factor(group, Reduced))
	}
	f.Operands[0][0], f.Operands[1][0], f.Operands[2][0] = all, heads, heads
	for i := 5; i < len(o.Operands); i++ { // the bias and weights
		if !isOne(in(o, i).Shape[0]) {
			f.Operands[i][0] = all
		}
	}
	for i := range f.Results {
		f.Results[i][0] = all
	}
	return f
}

func inferSegmentAttention(o *ir.Op) ([]types.Type, *Problem) {
	for i, what := range []string{"q", "k", "v"} {
		if p := rankIs(o, i, 3, what); p != nil {
			return nil, p.help("queries, keys and values are [heads, rows, depth]")
		}
	}
	m, p := segments(o, 3)
	if p != nil {
		return nil, p
	}
	if p := rankIs(o, 4, 1, "the vector of coordinates"); p != nil {
		return nil, p
	}
	q, k, v := in(o, 0), in(o, 1), in(o, 2)
	for i := range o.Operands {
		if t := in(o, i); i != 3 && i != 4 && t.Elem != q.Elem {
			return nil, problem("DM111", i, "element types %s and %s differ", t.Elem, q.Elem).help("convert one of them with dm.convert")
		}
	}
	b, p := listOf(o, "block", 2, 1, 1)
	if p != nil {
		return nil, p
	}
	if !sameDim(q.Shape[1], m.Scale(b[0])) {
		return nil, problem("DM122", 0, "q has %s queries, and %s segments of %d have %s", dimText(q.Shape[1]), dimText(m), b[0], dimText(m.Scale(b[0]))).
			help("m segments have m + 1 positions; each is of as many queries as block says")
	}
	if n, known := k.Shape[1].Int(); known && n%b[1] != 0 {
		return nil, problem("DM123", 1, "%d keys are not a multiple of the %d of a block", n, b[1]).help("pad keys and values")
	}
	if !sameDim(q.Shape[2], k.Shape[2]) {
		return nil, problem("DM122", 1, "q %s has depth %s, k %s has %s", shapeText(q.Shape), dimText(q.Shape[2]), shapeText(k.Shape), dimText(k.Shape[2]))
	}
	weights := OperandNumber(o, "weights")
	if leaks := o.Attr(leakAttr) != nil; leaks && !AddsScores(o) || leaks != (weights >= 0) {
		return nil, attrProblem("DM122", leakAttr, "leak is that of weighted sums of queries and keys").help("state scores = sum and leak, and give weights as the last operand; or leave out all of them")
	}
	if AddsScores(o) && weights < 0 && !isOne(q.Shape[2]) {
		return nil, problem("DM122", 0, "q %s has depth %s, and scores that are sums have depth 1", shapeText(q.Shape), dimText(q.Shape[2])).help("reduce queries and keys to a number each, give weights for the elements of their sum, with leak, or take the product: scores = product")
	}
	for d, what := range []string{"heads", "keys"} {
		if !sameDim(k.Shape[d], v.Shape[d]) {
			return nil, problem("DM122", 2, "k %s has %s %s, v %s has %s", shapeText(k.Shape), dimText(k.Shape[d]), what, shapeText(v.Shape), dimText(v.Shape[d]))
		}
	}
	if _, ok := q.Shape[0].Div(k.Shape[0]); !ok && !sameDim(q.Shape[0], k.Shape[0]) {
		return nil, problem("DM123", 1, "the %s heads of q %s are not a multiple of the %s of k %s", dimText(q.Shape[0]), shapeText(q.Shape), dimText(k.Shape[0]), shapeText(k.Shape)).
			help("the number of key heads divides the number of heads")
	}
	if i := OperandNumber(o, "bias"); i >= 0 {
		want := []dim.Dim{q.Shape[0], in(o, 4).Shape[0], dim.Const(b[0]), dim.Const(b[1])}
		got := in(o, i).Shape
		if len(got) == 4 && isOne(got[0]) {
			want[0] = got[0]
		}
		if !sameShape(got, want) {
			return nil, problem("DM122", i, "the bias is %s, and the scores are %s", shapeText(got), shapeText(want)).help("a bias is [heads or 1, coordinates, queries of a block, keys of a block]")
		}
	}
	if weights >= 0 {
		w := in(o, weights)
		if w.Rank() != 3 || !isOne(w.Shape[0]) && !sameDim(w.Shape[0], q.Shape[0]) || !sameDim(w.Shape[2], q.Shape[2]) {
			return nil, problem("DM122", weights, "the weights are %s, and q is %s", shapeText(w.Shape), shapeText(q.Shape)).help("weights are [heads or 1, a divisor of the queries, depth]")
		}
		if _, ok := q.Shape[1].Div(w.Shape[1]); !ok && !sameDim(q.Shape[1], w.Shape[1]) {
			return nil, problem("DM123", weights, "the %s queries are not a multiple of the %s rows of weights", dimText(q.Shape[1]), dimText(w.Shape[1])).help("give a row of weights for all queries, or for equally many neighbouring ones")
		}
	}
	ts := one(tensor(q, q.Elem, q.Shape[0], q.Shape[1], v.Shape[2]))
	if len(o.Results) > 1 {
		ts = append(ts, tensor(q, wide(q.Elem), q.Shape[:2]...))
	}
	return ts, nil
}

// segmentScores writes the expansion of a dm.segment_attention or of its gradient, in at
// least f32. Its tensors begin with key heads and the heads of each; then come entries
// (coordinates) or segments, then queries or keys of a block.
type segmentScores struct {
	*Builder
	o            *ir.Op
	heads, group dim.Dim // key heads, heads of each
	entries      dim.Dim
	segments     dim.Dim
	r, c         int64
	ids          *ir.Value // the segment of each entry
	weights      *ir.Value // as weighing has them; nil: none
}

func newSegmentScores(b *ir.Builder, o *ir.Op) *segmentScores {
	s := &segmentScores{Builder: NewBuilder(b, nil), o: o, heads: in(o, 1).Shape[0], group: dim.Const(1), entries: in(o, 4).Shape[0]}
	s.r, s.c = SegmentBlock(o)
	s.segments = in(o, 3).Shape[0].Sub(dim.Const(1))
	if !sameDim(in(o, 0).Shape[0], s.heads) {
		s.group, _ = in(o, 0).Shape[0].Div(s.heads)
	}
	s.ids = s.Value("segment_ids", []*ir.Value{o.Operands[3]}, nil, tensor(in(o, 3), types.I32, s.entries))
	if w := SegmentWeights(o); w != nil {
		s.weights = s.weighing(w)
	}
	return s
}

// ofQueries is x, which has a row for each query or none, for each entry: of the queries of its segment.
func (s *segmentScores) ofQueries(x *ir.Value) *ir.Value {
	shape := []dim.Dim{s.heads, s.group, s.segments, dim.Const(s.r)}
	t := asTensor(x.Type)
	return s.gather(s.Reshape(s.wide(x), append(shape, t.Shape[2:]...)...), s.ids, 2, 0)
}

// ofKeys is x, which has a row for each key, for each entry: of the keys that it names. There is no dimension of group.
func (s *segmentScores) ofKeys(x *ir.Value) *ir.Value {
	return s.gather(s.blocks(s.wide(x)), s.o.Operands[4], 1, 0)
}

func (s *segmentScores) blocks(x *ir.Value) *ir.Value {
	t := asTensor(x.Type)
	return s.Reshape(x, s.heads, dim.Quotient(t.Shape[1], s.c), dim.Const(s.c), t.Shape[2])
}

// contract is the einsum of letters. Without blocks it is a product and a sum, which a
// kernel has together with the gathers in front.
func (s *segmentScores) contract(x, y, to string, a, b *ir.Value) *ir.Value {
	if s.r != 1 || s.c != 1 {
		return s.einsum(x+","+y+"->"+to, a, b)
	}
	const all = "agercd"
	spread := func(letters string, v *ir.Value) *ir.Value {
		shape, k := make([]dim.Dim, len(all)), 0
		for i := range all {
			shape[i] = dim.Const(1)
			if k < len(letters) && letters[k] == all[i] {
				shape[i] = asTensor(v.Type).Shape[k]
				k++
			}
		}
		return s.Reshape(v, shape...)
	}
	v := s.mul(spread(x, a), spread(y, b))
	var dims []int
	var shape []dim.Dim
	k := 0
	for i := range all {
		switch {
		case k < len(to) && to[k] == all[i]:
			k++
			shape = append(shape, asTensor(v.Type).Shape[i])
		case !isOne(asTensor(v.Type).Shape[i]):
			dims = append(dims, i)
		}
	}
	if len(dims) > 0 {
		v = s.reduce("add", v, dims...)
	}
	return s.Reshape(v, shape...)
}

// scores are those of queries and keys, [key heads, group, entries, r, c], before slope and with it.
func (s *segmentScores) scores(q, k *ir.Value) (before, with *ir.Value) {
	x := s.unsloped(q, k)
	return x, s.leaky(x, Float(s.o, "slope"))
}

// leaky is x, times f where it is below 0.
func (s *segmentScores) leaky(x *ir.Value, f float64) *ir.Value {
	if f == 1 {
		return x
	}
	return s.choose(s.compare("lt", x, s.number(x, 0)), s.Builder.scale(x, f), x)
}

// unleaky is the gradient of x, of which dy is that of leaky(x, f). At 0 it is the mean of both sides.
func (s *segmentScores) unleaky(x, dy *ir.Value, f float64) *ir.Value {
	if f == 1 {
		return dy
	}
	zero := s.number(x, 0)
	below := s.choose(s.compare("lt", x, zero), s.Builder.scale(dy, f), s.Builder.scale(dy, (1+f)/2))
	return s.choose(s.compare("gt", x, zero), dy, below)
}

// unsloped are the scaled products or sums with the bias.
func (s *segmentScores) unsloped(q, k *ir.Value) *ir.Value {
	var x *ir.Value
	switch r, c := dim.Const(s.r), dim.Const(s.c); {
	case s.weights != nil:
		x = s.reduce("add", s.mul(s.leaky(s.sums(q, k), Float(s.o, leakAttr)), s.weights), 5)
		x = s.Reshape(x, s.heads, s.group, s.entries, r, c)
	case AddsScores(s.o):
		x = s.add(s.Reshape(q, s.heads, s.group, s.entries, r, dim.Const(1)), s.Reshape(k, s.heads, dim.Const(1), s.entries, dim.Const(1), c))
	default:
		x = s.contract("agerd", "aecd", "agerc", q, k)
	}
	if f := Float(s.o, "scale"); f != 1 {
		x = s.Builder.scale(x, f)
	}
	if bias := SegmentBias(s.o); bias != nil {
		t := asTensor(bias.Type)
		shape := []dim.Dim{s.heads, s.group, s.entries, dim.Const(s.r), dim.Const(s.c)}
		if isOne(t.Shape[0]) {
			shape[0], shape[1] = t.Shape[0], t.Shape[0]
		}
		x = s.add(x, s.Reshape(s.wide(bias), shape...))
	}
	return x
}

// sums are those of rows of queries and keys, [key heads, group, entries, r, c, depth].
func (s *segmentScores) sums(q, k *ir.Value) *ir.Value {
	r, c, one, depth := dim.Const(s.r), dim.Const(s.c), dim.Const(1), last3(s.o, 0)
	return s.add(s.Reshape(q, s.heads, s.group, s.entries, r, one, depth), s.Reshape(k, s.heads, one, s.entries, one, c, depth))
}

// weighing is x, weights of all or of some neighbouring queries, for each entry, [key heads or 1, group or 1, entries or 1, r or 1, 1, depth].
func (s *segmentScores) weighing(x *ir.Value) *ir.Value {
	t, one := asTensor(x.Type), dim.Const(1)
	heads := []dim.Dim{one, one}
	if !isOne(t.Shape[0]) {
		heads = []dim.Dim{s.heads, s.group}
	}
	if isOne(t.Shape[1]) {
		return s.Reshape(s.wide(x), append(heads, one, one, one, t.Shape[2])...)
	}
	queries := in(s.o, 0).Shape[1]
	each, _ := queries.Div(t.Shape[1])
	x = s.Reshape(s.wide(x), t.Shape[0], t.Shape[1], one, t.Shape[2])
	x = s.Value("broadcast", []*ir.Value{x}, nil, tensor(asTensor(x.Type), asTensor(x.Type).Elem, t.Shape[0], t.Shape[1], each, t.Shape[2]))
	x = s.gather(s.Reshape(x, append(heads, s.segments, dim.Const(s.r), t.Shape[2])...), s.ids, 2, 0)
	return s.Reshape(x, append(heads, s.entries, dim.Const(s.r), one, t.Shape[2])...)
}

// ofWeights is the gradient of the weights, of which x, [key heads, group, entries, r, c, depth], is that for each entry.
func (s *segmentScores) ofWeights(x *ir.Value) *ir.Value {
	w := SegmentWeights(s.o)
	t := asTensor(w.Type)
	var dims []int
	if isOne(t.Shape[0]) {
		dims = []int{0, 1}
	}
	if isOne(t.Shape[1]) {
		x = s.reduce("add", x, append(dims, 2, 3, 4)...)
	} else {
		x = s.reduce("add", s.ofSegments("add", x), append(dims, 4)...)
		each, _ := in(s.o, 0).Shape[1].Div(t.Shape[1])
		x = s.reduce("add", s.Reshape(x, t.Shape[0], t.Shape[1], each, t.Shape[2]), 2)
	}
	return s.Convert(s.Reshape(x, t.Shape...), t.Elem)
}

// ofSegments reduces x, a value for each entry and query of its segment, to one for each query.
func (s *segmentScores) ofSegments(kind string, x *ir.Value) *ir.Value {
	return s.Value("segment_reduce", []*ir.Value{x, s.o.Operands[3]}, []types.Named{{Name: "kind", Value: types.Keyword(kind)}, {Name: "dim", Value: intAttr(2)}})
}

// overKeys reduces scores to a value for each query, [heads, queries].
func (s *segmentScores) overKeys(kind string, x *ir.Value) *ir.Value {
	return s.Reshape(s.reduce(kind, s.ofSegments(kind, x), 4), in(s.o, 0).Shape[:2]...)
}

// each is x, a value for each query, for each entry, with a dimension of size 1 for its keys.
func (s *segmentScores) each(x *ir.Value) *ir.Value {
	return s.Reshape(s.ofQueries(x), s.heads, s.group, s.entries, dim.Const(s.r), dim.Const(1))
}

func expandSegmentAttention(b *ir.Builder, o *ir.Op) []*ir.Value {
	s := newSegmentScores(b, o)
	_, x := s.scores(s.ofQueries(o.Operands[0]), s.ofKeys(o.Operands[1]))
	most := s.overKeys("max", x)
	x = s.Unary("exp", s.sub(x, s.each(most)))
	sum := s.overKeys("add", x)
	p := s.div(x, s.each(sum))
	y := s.ofSegments("add", s.contract("agerc", "aecd", "agerd", p, s.ofKeys(o.Operands[2])))
	q := in(o, 0)
	vs := []*ir.Value{s.Convert(s.Reshape(y, q.Shape[0], q.Shape[1], last3(o, 2)), q.Elem)}
	if len(o.Results) > 1 {
		vs = append(vs, s.add(s.Unary("log", sum), most))
	}
	return s.done(vs...)
}

var segmentAttentionDerivative = &Derivative{
	Doc: "Scores are computed again, and probabilities from the second result, which the attention gives for that: with p = e^(score - lse), the gradient of a score is p · (dy·v - dy·y), and that of q, k and v sums of products with it or with p, over segments and by coordinates. " +
		"A cotangent of the second result itself flows to each score in proportion to its probability. None for positions and coordinates.",
	rule: segmentAttentionRule,
}

func segmentAttentionRule(g *backward) {
	o := g.o
	if len(o.Results) == 1 {
		g.addResult(tensor(in(o, 0), wide(in(o, 0).Elem), in(o, 0).Shape[:2]...))
	}
	s := newSegmentScores(g.Builder.Builder, o)
	_, inside := s.segmentsOf(o.Operands[3], s.entries)
	inside = s.Reshape(inside, dim.Const(1), dim.Const(1), s.entries, dim.Const(1), dim.Const(1))
	q, k := s.ofQueries(o.Operands[0]), s.ofKeys(o.Operands[1])
	// What is in no segment has no probability, however great its score.
	x, scores := s.scores(q, k)
	p := s.Unary("exp", s.choose(inside, s.sub(scores, s.each(g.y(1))), s.number(g.y(1), math.Inf(-1))))
	var ds *ir.Value
	if dy := g.dy[0]; dy != nil {
		each := s.ofQueries(dy)
		if g.want[2] {
			g.give(2, s.byKeys(2, s.contract("agerc", "agerd", "aecd", p, each)))
		}
		delta := s.Reshape(s.reduce("add", s.mul(s.wide(dy), s.wide(g.y(0))), 2), in(o, 0).Shape[:2]...)
		ds = s.mul(p, s.sub(s.contract("agerd", "aecd", "agerc", each, s.ofKeys(o.Operands[2])), s.each(delta)))
	}
	if len(g.dy) > 1 && g.dy[1] != nil {
		more := s.mul(p, s.each(g.dy[1]))
		if ds == nil {
			ds = more
		} else {
			ds = s.add(ds, more)
		}
	}
	if ds == nil {
		return
	}
	ds = s.when(inside, s.unleaky(x, ds, Float(o, "slope"))) // there rows that are not the segment's were read
	if i := OperandNumber(o, "bias"); i >= 0 && g.want[i] {
		t := in(o, i)
		v := ds
		if isOne(t.Shape[0]) {
			v = s.reduce("add", v, 0, 1)
		}
		g.give(i, s.Convert(s.Reshape(v, t.Shape...), t.Elem))
	}
	if f := Float(o, "scale"); f != 1 {
		ds = s.Builder.scale(ds, f)
	}
	if s.weights != nil {
		s.weighed(g, s.sums(q, k), s.Reshape(ds, append(slices.Clone(asTensor(ds.Type).Shape), dim.Const(1))...))
		return
	}
	if AddsScores(o) { // as products with ones
		q, k = s.filled(asTensor(q.Type), 1), s.filled(asTensor(k.Type), 1)
	}
	if g.want[0] {
		dq := s.ofSegments("add", s.contract("agerc", "aecd", "agerd", ds, k))
		g.give(0, s.Convert(s.Reshape(dq, in(o, 0).Shape...), in(o, 0).Elem))
	}
	if g.want[1] {
		g.give(1, s.byKeys(1, s.contract("agerc", "agerd", "aecd", ds, q)))
	}
	g.failed = g.failed || s.failed
}

// weighed gives the gradients of queries, keys and weights, where u is the sum of rows of queries and keys, and ds the gradient of
// scores, with a last dimension of size 1.
func (s *segmentScores) weighed(g *backward, u, ds *ir.Value) {
	f := Float(s.o, leakAttr)
	if i := OperandNumber(s.o, "weights"); g.want[i] {
		g.give(i, s.ofWeights(s.mul(ds, s.leaky(u, f))))
	}
	du := s.unleaky(u, s.mul(ds, s.weights), f)
	if g.want[0] {
		t := in(s.o, 0)
		g.give(0, s.Convert(s.Reshape(s.reduce("add", s.ofSegments("add", du), 4), t.Shape...), t.Elem))
	}
	if g.want[1] {
		g.give(1, s.byKeys(1, s.Reshape(s.reduce("add", du, 1, 3), s.heads, s.entries, dim.Const(s.c), last3(s.o, 1))))
	}
	g.failed = g.failed || s.failed
}

// byKeys adds up x, rows for the keys of each entry, where operand i has those keys.
func (s *segmentScores) byKeys(i int, x *ir.Value) *ir.Value {
	t := in(s.o, i)
	to := tensor(t, asTensor(x.Type).Elem, s.heads, dim.Quotient(t.Shape[1], s.c), dim.Const(s.c), t.Shape[2])
	at := s.nearest(s.o.Operands[4], to.Shape[1])
	return s.Convert(s.Reshape(s.scatter("add", s.zeros(to), at, x, 1, 0), t.Shape...), t.Elem)
}
