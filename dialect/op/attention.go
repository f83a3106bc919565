package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func attentions() []*Def { return []*Def{attentionDef} }

var attentionDef = &Def{
	Name: "attention", Family: Attention, Class: ClassContraction,
	Summary: "scaled dot-product attention with grouped heads",
	Doc: "`y = dropout(softmax(scale · q kᵀ + mask)) v` for every head. q is `[…, heads, queries, depth]`, k `[…, key heads, keys, depth]`, v `[…, key heads, keys, value depth]`; " +
		"the key heads divide the heads, and each serves as many neighbouring heads (grouped-query attention; one key head is multi-query attention). With two dimensions there are no heads.\n\n" +
		"`scale` is `1/√depth` unless given. The mask is added to the scores and broadcasts to `[…, heads, queries, keys]`. With `causal`, query i sees the keys up to `i + keys - queries`, " +
		"so that the last query sees all. Dropout acts on the probabilities as `dm.dropout` with the same seed does, numbered in row-major order of `[…, heads, queries, keys]`. " +
		"Half precision is computed in f32 throughout and rounded once.\n\n" +
		"Counts the two contractions, 2·scores·depth + 2·scores·value depth, and for each of the heads·queries·keys scores 1 for the scale, 4 for the softmax, 1 for a mask and 1 for dropout; " +
		"masked scores are counted like all others. " +
		"Moves q, k, v, the mask and y only. Sources: Vaswani et al., arXiv 1706.03762; Ainslie et al., arXiv 2305.13245; Dao et al., arXiv 2205.14135.",
	Example: `func.func @example(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32> {
  %y = dm.attention %q, %k, %v, causal = true : (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}`,
	Operands: []Param{
		{Name: "q", Elems: floats, Doc: "queries, `[…, heads, queries, depth]`"},
		{Name: "k", Elems: floats, Doc: "keys, `[…, key heads, keys, depth]`"},
		{Name: "v", Elems: floats, Doc: "values, `[…, key heads, keys, value depth]`"},
		{Name: "mask", Elems: floats, Optional: true, Doc: "added to the scores; broadcasts to `[…, heads, queries, keys]`"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "`[…, heads, queries, value depth]`"}},
	Attrs: []AttrDef{
		{Name: "scale", Kind: KindFloat, Optional: true, Doc: "factor of the scores; `1/√depth` where absent"},
		{Name: "causal", Kind: KindBool, Default: types.Bool(false), Doc: "a query does not see later keys"},
		{Name: "dropout", Kind: KindFloat, Default: types.Float{}, Doc: "probability that a probability becomes 0"},
		{Name: "seed", Kind: KindInt, Default: types.Int{}, Doc: "start of dropout's random sequence"},
	},
	Traits: Pure,
	Infer:  inferAttention,
	Verify: func(o *ir.Op) *Problem { return rateProblem(o, "dropout") },
	FLOP: func(o *ir.Op) dim.Dim {
		q, k, v := in(o, 0), in(o, 1), in(o, 2)
		if q.Rank() < 2 || k.Rank() < 2 || v.Rank() < 2 {
			return dim.Dim{}
		}
		each := dim.Const(5)
		if len(o.Operands) > 3 {
			each = each.Add(dim.Const(1))
		}
		if Float(o, "dropout") > 0 {
			each = each.Add(dim.Const(1))
		}
		each = dim.Sum(each, q.Shape[q.Rank()-1].Scale(2), v.Shape[v.Rank()-1].Scale(2))
		return dim.Prod(scoreShape(q, k)...).Mul(each)
	},
	Expand: expandAttention,
}

// scoreShape is [batch…, heads, queries, keys].
func scoreShape(q, k *types.Tensor) []dim.Dim {
	n := q.Rank()
	return append(append([]dim.Dim{}, q.Shape[:n-1]...), k.Shape[k.Rank()-2])
}

func inferAttention(o *ir.Op) ([]types.Type, *Problem) {
	if p := sameElems(o, 0); p != nil {
		return nil, p
	}
	q, k, v := in(o, 0), in(o, 1), in(o, 2)
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
			return nil, problem("DM123", 1, "the %s heads of q %s do not fall evenly to the %s of k %s", dimText(h), shapeText(q.Shape), dimText(kh), shapeText(k.Shape)).
				help("the number of key heads divides the number of heads")
		}
	}
	if len(o.Operands) > 3 {
		want := scoreShape(q, k)
		m := in(o, 3).Shape
		if s, ok := broadcastTwo(want, m); !ok || !sameShape(s, want) {
			return nil, problem("DM110", 3, "mask %s does not broadcast to the scores %s", shapeText(m), shapeText(want)).
				help("a mask is […, heads, queries, keys]; sizes may be 1")
		}
	}
	shape := append(append([]dim.Dim{}, q.Shape[:n-1]...), v.Shape[n-1])
	return one(tensor(q, q.Elem, shape...)), nil
}

func expandAttention(b *ir.Builder, o *ir.Op) []*ir.Value {
	qt, kt, vt := in(o, 0), in(o, 1), in(o, 2)
	n := qt.Rank()
	elem := wide(qt.Elem)
	depth, known := qt.Shape[n-1].Int()
	if Attr(o, "scale") == nil && (!known || depth == 0) {
		return nil
	}
	factor := 1 / math.Sqrt(float64(depth))
	if Attr(o, "scale") != nil {
		factor = Float(o, "scale")
	}
	w := newWriter(b)
	q, k, v := w.to(o.Operands[0], elem), w.to(o.Operands[1], elem), w.to(o.Operands[2], elem)

	// Heads that share a key head become a dimension of their own, g.
	batch := ""
	for i := range max(n-2, 0) {
		batch += string(rune('A' + i))
	}
	group, split := "", func(v *ir.Value, _ dim.Dim) *ir.Value { return v }
	if n > 2 && !sameDim(qt.Shape[n-3], kt.Shape[n-3]) {
		g, ok := qt.Shape[n-3].Div(kt.Shape[n-3])
		w.failed = w.failed || !ok
		group = "g"
		split = func(v *ir.Value, last dim.Dim) *ir.Value {
			return w.reshape(v, append(append([]dim.Dim{}, kt.Shape[:n-2]...), g, qt.Shape[n-2], last)...)
		}
	}
	scores := scoreShape(qt, kt)
	s := w.einsum(batch+group+"qd,"+batch+"kd->"+batch+group+"qk", split(q, qt.Shape[n-1]), k)
	s = w.scale(w.reshape(s, scores...), factor)
	if len(o.Operands) > 3 {
		s = w.binary("add", s, w.to(o.Operands[3], elem))
	}
	if Bool(o, "causal") {
		s = w.causal(s, scores)
	}
	p := w.op("softmax", []*ir.Value{s})
	if Float(o, "dropout") > 0 {
		p = w.op("dropout", []*ir.Value{p}, types.Named{Name: "rate", Value: types.Float{V: Float(o, "dropout")}},
			types.Named{Name: "seed", Value: types.Int{V: Int(o, "seed")}})
	}
	y := w.einsum(batch+group+"qk,"+batch+"kd->"+batch+group+"qd", split(p, kt.Shape[n-2]), v)
	y = w.reshape(y, append(append([]dim.Dim{}, qt.Shape[:n-1]...), vt.Shape[n-1])...)
	return w.done(w.to(y, qt.Elem))
}

func (w *writer) einsum(equation string, operands ...*ir.Value) *ir.Value {
	return w.op("einsum", operands, named("equation", types.Str(equation))...)
}

// causal makes the scores of keys behind their query minus infinity.
func (w *writer) causal(s *ir.Value, shape []dim.Dim) *ir.Value {
	queries, keys := shape[len(shape)-2], shape[len(shape)-1]
	shift, ok := keys.Sub(queries).Int()
	if w.failed || !ok {
		w.failed = true
		return s
	}
	t := tensor(asTensor(s.Type), types.I64, queries, keys)
	row := w.b.Op("dm.iota", nil, named("dim", intAttr(0)), t).Results[0]
	column := w.b.Op("dm.iota", nil, named("dim", intAttr(1)), t).Results[0]
	seen := w.op("compare", []*ir.Value{column, w.plus(row, float64(shift))}, named("direction", types.Keyword("le"))...)
	return w.op("select", []*ir.Value{seen, s, w.number(s, math.Inf(-1))})
}
