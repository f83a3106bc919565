package op

import (
	"math"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func attentions() []*Def { return []*Def{attentionDef, attentionGradDef, segmentAttentionDef} }

var attentionDef = &Def{
	Name: "attention", Family: Attention, Class: ClassContraction,
	Summary: "scaled dot-product attention with grouped heads",
	Foreign: []Foreign{{Names: "scaled_dot_product_attention dot_product_attention sdpa flash_attention multi_head_attention mha grouped_query_attention gqa multi_query_attention mqa"}},
	Doc: "`y = dropout(softmax(scale · q kᵀ + mask)) v` for every head. q is `[…, heads, queries, depth]`, k `[…, key heads, keys, depth]`, v `[…, key heads, keys, value depth]`; " +
		"the key heads divide the heads, and each serves as many neighbouring heads (grouped-query attention; one key head is multi-query attention). With two dimensions there are no heads.\n\n" +
		"`scale` is `1/√depth` unless given. The mask is added to the scores and broadcasts to `[…, heads, queries, keys]`. With `causal`, query i sees the keys up to `i + keys - queries`, " +
		"so that the last query sees all; the compiler takes a mask for that which hides the same keys, as a constant or computed of indices. Dropout acts on the probabilities as `dm.dropout` with the same seed and step does, numbered in row-major order of `[…, heads, queries, keys]`; " +
		"of an attention that is a part of a whole, with all keys, the numbers are those that the whole would draw: `first` is the number of its first row of scores there, in row-major order of `whole`. " +
		"Half precision is computed in f32 throughout and rounded once; `precision = tf32` is that of `dm.einsum`, of both products and of those of the gradient. The second result, which may be left out, is what the gradient needs instead of the probabilities: `ln Σ e^score` of every query.\n\n" +
		"Counts the two contractions, 2·scores·depth + 2·scores·value depth, and for each score 1 for the scale, 4 for the softmax, 1 for a mask and 1 for dropout. " +
		"There are heads·queries·keys scores; under `causal` only those that are seen count, heads·n·(n + 1)/2 for as many queries as keys and heads·(queries·keys - queries·(queries - 1)/2) for fewer. " +
		"Moves q, k, v, the mask and the results only; of the mask what the scores that count take. Sources: Vaswani et al., arXiv 1706.03762; Ainslie et al., arXiv 2305.13245; Dao et al., arXiv 2205.14135.",
	Example: `func.func @example(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32> {
  %y = dm.attention %q, %k, %v, causal = true : (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}`,
	Operands: []Param{
		{Name: "q", Elems: floats, Doc: "queries, `[…, heads, queries, depth]`", Strided: true},
		{Name: "k", Elems: floats, Doc: "keys, `[…, key heads, keys, depth]`", Strided: true},
		{Name: "v", Elems: floats, Doc: "values, `[…, key heads, keys, value depth]`", Strided: true},
		maskParam, stepParam, firstRowParam,
	},
	Results: []Param{
		{Name: "y", Elems: floats, Doc: "`[…, heads, queries, value depth]`"},
		{Name: "lse", Elems: []types.Elem{types.F64, types.F32}, Optional: true, Doc: "logarithm of the sum of the exponentials of each query's scores, `[…, heads, queries]`, f32 or wider"},
	},
	Attrs:   attentionAttrs,
	Traits:  Pure,
	Factors: attentionFactors, Linear: linearAttention,
	Divides:  "The batch, the key heads, the heads of each and, without `causal`, the queries. With dropout each piece draws what the whole would.",
	Exchange: exchangedScores, Exchanges: "The queries with `causal`, and the keys: where the queries are divided alike, keys and values are passed round a ring, as far as a query sees them; else the devices combine the results.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		ts, p := inferAttention(o)
		if q := in(o, 0); p == nil && len(o.Results) > 1 {
			ts = append(ts, tensor(q, wide(q.Elem), q.Shape[:q.Rank()-1]...))
		}
		return ts, p
	},
	Verify: drawnProblem("dropout"),
	FLOP: func(o *ir.Op) dim.Dim {
		depth, value, each, ok := scoreCost(o)
		if !ok {
			return dim.Dim{}
		}
		return Scores(o).Mul(dim.Sum(each, depth.Scale(2), value.Scale(2)))
	},
	Traffic:    func(o *ir.Op) ([]dim.Dim, dim.Dim) { return attentionTraffic(o) },
	Expand:     expandAttention,
	Kernel:     Library,
	Derivative: attentionDerivative,
}

var maskParam = Param{Name: "mask", Elems: floats, Optional: true, Doc: "added to the scores; broadcasts to `[…, heads, queries, keys]`"}

var firstRowParam = firstParam("of a part of a whole, with the attribute `whole`: the number of its first row of scores there, a scalar")

var attentionAttrs = []AttrDef{
	{Name: "scale", Kind: KindFloat, Optional: true, Doc: "factor of the scores; `1/√depth` where absent"},
	{Name: "causal", Kind: KindBool, Default: types.Bool(false), Doc: "a query attends to no later key"},
	{Name: "dropout", Kind: KindFloat, Default: types.Float{}, Doc: "probability that a probability becomes 0"},
	{Name: "seed", Kind: KindInt, Default: types.Int{}, Doc: "start of dropout's random sequence"},
	wholeParam("of a part of a whole, with the operand `first`: the sizes `[…, heads, queries]` of the whole"),
	precisionAttr,
}

// Scores is the number of scores of an attention that count: those of keys that
// their queries see.
func Scores(o *ir.Op) dim.Dim {
	shape := scoreShape(in(o, 0), in(o, 1))
	n := len(shape)
	return dim.Prod(shape[:n-2]...).Mul(seen(o, shape[n-2], shape[n-1]))
}

// seen is how many pairs of a query and a key an attention computes. With
// symbolic sizes that cannot be compared there are at most as many queries as keys.
func seen(o *ir.Op, queries, keys dim.Dim) dim.Dim {
	all := queries.Mul(keys)
	one := dim.Const(1)
	switch {
	case !Bool(o, "causal"):
		return all
	case queries.AtLeast(keys): // those before the last keys see none
		return dim.Quotient(keys.Mul(keys.Add(one)), 2)
	default:
		return all.Sub(dim.Quotient(queries.Mul(queries.Sub(one)), 2))
	}
}

// attentionTraffic is what an attention moves: everything once, but of the mask only what is added to scores that count.
func attentionTraffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	q, k, mask := in(o, 0), in(o, 1), OperandNumber(o, "mask")
	if mask < 0 || !Bool(o, "causal") || q.Rank() < 2 || k.Rank() < 2 {
		return read, written
	}
	m := in(o, mask)
	queries, keys := q.Shape[q.Rank()-2], k.Shape[k.Rank()-2]
	n := m.Rank()
	if n < 2 || !m.Shape[n-2].Equal(queries) {
		return read, written // the last query sees every key
	}
	taken := seen(o, queries, keys)
	if !m.Shape[n-1].Equal(keys) { // a number for each query: of those that see a key
		if taken = queries; queries.AtLeast(keys) {
			taken = keys
		}
	}
	read[mask] = m.Elem.Size(dim.Prod(m.Shape[:n-2]...).Mul(taken))
	return read, written
}

// scoreCost is the depths of an attention, and
// the FLOP that its forward pass spends on a score beside the contractions.
func scoreCost(o *ir.Op) (depth, value, each dim.Dim, ok bool) {
	q, k, v := in(o, 0), in(o, 1), in(o, 2)
	if q.Rank() < 2 || k.Rank() < 2 || v.Rank() < 2 {
		return depth, value, each, false
	}
	each = dim.Const(5)
	if OperandNumber(o, "mask") >= 0 {
		each = each.Add(dim.Const(1))
	}
	if Float(o, "dropout") > 0 {
		each = each.Add(dim.Const(1))
	}
	return q.Shape[q.Rank()-1], v.Shape[v.Rank()-1], each, true
}

// scoreShape is [batch…, heads, queries, keys].
func scoreShape(q, k *types.Tensor) []dim.Dim {
	n := q.Rank()
	return append(append([]dim.Dim{}, q.Shape[:n-1]...), k.Shape[k.Rank()-2])
}

// inferAttention gives y's type and checks q, k, v and the mask.
func inferAttention(o *ir.Op) ([]types.Type, *Problem) {
	mask := OperandNumber(o, "mask")
	for _, i := range []int{1, 2, mask} {
		if i > 0 && in(o, i).Elem != in(o, 0).Elem {
			return nil, problem("DM111", i, "element types %s and %s differ", in(o, 0).Elem, in(o, i).Elem).help("convert one of them with dm.convert")
		}
	}
	q, k, v := in(o, 0), in(o, 1), in(o, 2)
	if p := roundedProblem(o, q.Elem, q.Elem); p != nil {
		return nil, p
	}
	if p := rankAtLeast(o, 0, 2, "attention"); p != nil {
		return nil, p.help("queries are […, heads, queries, depth]")
	}
	n := q.Rank()
	for i := 1; i < 3; i++ {
		if p := rankIs(o, i, n, o.Operands[i].Name+" beside q "+shapeText(q.Shape)); p != nil {
			return nil, p
		}
	}
	for i, what := range []string{"k", "v"} {
		t := in(o, i+1)
		for d := range max(n-3, 0) {
			if !sameDim(q.Shape[d], t.Shape[d]) {
				return nil, problem("DM122", i+1, "q %s and %s %s differ in batch dimension %d", shapeText(q.Shape), what, shapeText(t.Shape), d)
			}
		}
	}
	if !sameDim(q.Shape[n-1], k.Shape[n-1]) {
		return nil, problem("DM122", 1, "q %s has depth %s, k %s has %s", shapeText(q.Shape), dimText(q.Shape[n-1]), shapeText(k.Shape), dimText(k.Shape[n-1])).
			help("k is [… , keys, depth]; transpose it if it is [… , depth, keys]")
	}
	if !sameDim(k.Shape[n-2], v.Shape[n-2]) {
		return nil, problem("DM122", 2, "k %s has %s keys, v %s has %s", shapeText(k.Shape), dimText(k.Shape[n-2]), shapeText(v.Shape), dimText(v.Shape[n-2]))
	}
	if n > 2 {
		h, kh, vh := q.Shape[n-3], k.Shape[n-3], v.Shape[n-3]
		if !sameDim(kh, vh) {
			return nil, problem("DM122", 2, "k %s has %s heads, v %s has %s", shapeText(k.Shape), dimText(kh), shapeText(v.Shape), dimText(vh))
		}
		if _, ok := h.Div(kh); !ok && !sameDim(h, kh) {
			return nil, problem("DM123", 1, "the %s heads of q %s are not a multiple of the %s of k %s", dimText(h), shapeText(q.Shape), dimText(kh), shapeText(k.Shape)).
				help("the number of key heads divides the number of heads")
		}
	}
	if mask >= 0 {
		want := scoreShape(q, k)
		m := in(o, mask).Shape
		if s, ok := broadcastTwo(want, m); !ok || !sameShape(s, want) {
			return nil, problem("DM110", mask, "mask %s does not broadcast to the scores %s", shapeText(m), shapeText(want)).
				help("a mask is […, heads, queries, keys]; sizes may be 1")
		}
	}
	shape := append(append([]dim.Dim{}, q.Shape[:n-1]...), v.Shape[n-1])
	return one(tensor(q, q.Elem, shape...)), nil
}

// heads writes the expansion of an attention or of its gradient, in at least f32.
// Heads that share a key head become a dimension of their own, g.
type heads struct {
	*Builder
	o            *ir.Op
	q, k, v      *ir.Value
	batch, group string // letters
	scale        float64
	shape        []dim.Dim // of the scores
}

// newHeads is nil where the scale depends on a symbol.
func newHeads(b *ir.Builder, o *ir.Op) *heads {
	qt, kt := in(o, 0), in(o, 1)
	n := qt.Rank()
	depth, known := qt.Shape[n-1].Int()
	if Attr(o, "scale") == nil && (!known || depth == 0) {
		return nil
	}
	h := &heads{Builder: NewBuilder(b, nil), o: o, scale: 1 / math.Sqrt(float64(depth)), shape: scoreShape(qt, kt)}
	if Attr(o, "scale") != nil {
		h.scale = Float(o, "scale")
	}
	h.q, h.k, h.v = h.wide(o.Operands[0]), h.wide(o.Operands[1]), h.wide(o.Operands[2])
	for i := range max(n-2, 0) {
		h.batch += string(rune('A' + i))
	}
	if n > 2 && !sameDim(qt.Shape[n-3], kt.Shape[n-3]) {
		h.group = "g"
	}
	return h
}

// split gives a value of the heads, with the last dimension as named, the
// dimension g.
func (h *heads) split(v *ir.Value, last dim.Dim) *ir.Value {
	if h.group == "" {
		return v
	}
	qt, kt := in(h.o, 0), in(h.o, 1)
	n := qt.Rank()
	g, ok := qt.Shape[n-3].Div(kt.Shape[n-3])
	h.failed = h.failed || !ok
	return h.Reshape(v, append(append([]dim.Dim{}, kt.Shape[:n-2]...), g, qt.Shape[n-2], last)...)
}

// contract is an einsum of letters for what is of the heads ("gqk") or of the
// key heads ("kd").
func (h *heads) contract(x, y, to string, a, b *ir.Value) *ir.Value {
	letters := func(s string) string { return h.batch + strings.Replace(s, "g", h.group, 1) }
	return h.Value("einsum", []*ir.Value{a, b}, append(named("equation", types.Str(letters(x)+","+letters(y)+"->"+letters(to))), inherited(h.o)...))
}

// scores are the scaled and masked products.
func (h *heads) scores() *ir.Value {
	depth := in(h.o, 0).Shape[in(h.o, 0).Rank()-1]
	s := h.contract("gqd", "kd", "gqk", h.split(h.q, depth), h.k)
	s = h.Builder.scale(h.Reshape(s, h.shape...), h.scale)
	if mask := OperandNumber(h.o, "mask"); mask >= 0 {
		s = h.add(s, h.wide(h.o.Operands[mask]))
	}
	if Bool(h.o, "causal") {
		s = h.causal(s, h.shape)
	}
	return s
}

// drop is the attention's dropout; v itself where it has none.
func (h *heads) drop(v *ir.Value) *ir.Value {
	if Float(h.o, "dropout") <= 0 {
		return v
	}
	return h.dropoutAs(h.o, "dropout", v)
}

func expandAttention(b *ir.Builder, o *ir.Op) []*ir.Value {
	h := newHeads(b, o)
	if h == nil {
		return nil
	}
	qt, vt := in(o, 0), in(o, 2)
	n := qt.Rank()
	s := h.scores()
	p := h.drop(h.Value("softmax", []*ir.Value{s}, nil))
	y := h.contract("gqk", "kd", "gqd", h.split(p, h.shape[n-1]), h.v)
	y = h.Reshape(y, append(append([]dim.Dim{}, qt.Shape[:n-1]...), vt.Shape[n-1])...)
	vs := []*ir.Value{h.Convert(y, qt.Elem)}
	if len(o.Results) > 1 {
		most := h.reduce("max", s, n-1)
		sum := h.reduce("add", h.Unary("exp", h.sub(s, most)), n-1)
		vs = append(vs, h.Reshape(h.add(h.Unary("log", sum), most), h.shape[:n-1]...))
	}
	return h.done(vs...)
}

func (w *Builder) einsum(equation string, operands ...*ir.Value) *ir.Value {
	return w.Value("einsum", operands, named("equation", types.Str(equation)))
}

// causal makes the scores of keys behind their query minus infinity.
func (w *Builder) causal(s *ir.Value, shape []dim.Dim) *ir.Value {
	queries, keys := shape[len(shape)-2], shape[len(shape)-1]
	shift, ok := keys.Sub(queries).Int()
	if w.failed || !ok {
		w.failed = true
		return s
	}
	t := tensor(asTensor(s.Type), types.I64, queries, keys)
	row := w.Op("dm.iota", nil, named("dim", intAttr(0)), t).Results[0]
	column := w.Op("dm.iota", nil, named("dim", intAttr(1)), t).Results[0]
	seen := w.Value("compare", []*ir.Value{column, w.plus(row, float64(shift))}, named("direction", types.Keyword("le")))
	return w.Value("select", []*ir.Value{seen, s, w.number(s, math.Inf(-1))}, nil)
}
