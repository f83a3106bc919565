package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var attentionGradDef = &Def{
	Name: "attention_grad", Family: Attention, Class: ClassContraction,
	Summary: "gradient of scaled dot-product attention",
	Doc: "The cotangents of q, k and v, and as fourth result, which may be left out, of the mask, from y and lse, the results of `dm.attention`, and dy, the cotangent of y. " +
		"Attributes, mask, step and first are those of the attention. With the scores s, computed again, and `p = e^(s - lse)`:\n\n" +
		"`dv = dropout(p)ᵀ dy`, `ds = p · (dropout(dy vᵀ) - Σ dy · y)`, `dq = scale · ds k`, `dk = scale · dsᵀ q`, `dmask = ds` summed over what broadcasting repeats; " +
		"heads that share a key head add up in dk and dv. Half precision is computed in f32 throughout and rounded once.\n\n" +
		"Counts five contractions, 6·scores·depth + 4·scores·value depth, 2 for each element of y, and for each score 6 (scale, subtraction and exponential, subtraction, product, scale), 1 for a mask and 2 for dropout; under `causal` those scores that `dm.attention` counts. " +
		"Moves operands and results only. Source: Dao et al., arXiv 2205.14135, §B.4.",
	Example: `func.func @example(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %dy: tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) {
  %y, %lse = dm.attention %q, %k, %v, causal = true : (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  %dq, %dk, %dv = dm.attention_grad %q, %k, %v, %y, %lse, %dy, causal = true : (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return %dq, %dk, %dv : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
}`,
	Operands: []Param{
		{Name: "q", Elems: floats, Doc: "queries, `[…, heads, queries, depth]`", Strided: true},
		{Name: "k", Elems: floats, Doc: "keys, `[…, key heads, keys, depth]`", Strided: true},
		{Name: "v", Elems: floats, Doc: "values, `[…, key heads, keys, value depth]`", Strided: true},
		{Name: "y", Elems: floats, Doc: "the attention's result, `[…, heads, queries, value depth]`"},
		{Name: "lse", Elems: []types.Elem{types.F64, types.F32}, Doc: "its second result, `[…, heads, queries]`"},
		{Name: "dy", Elems: floats, Doc: "cotangent of y, of its type"},
		maskParam, stepParam, firstRowParam,
	},
	Results: []Param{
		{Name: "dq", Elems: floats, Doc: "q's type", Strided: true},
		{Name: "dk", Elems: floats, Doc: "k's type", Strided: true},
		{Name: "dv", Elems: floats, Doc: "v's type", Strided: true},
		{Name: "dmask", Elems: floats, Optional: true, Doc: "the mask's type; only with a mask"},
	},
	Attrs:   attentionAttrs,
	Traits:  Pure,
	Factors: attentionFactors, Linear: linearIn([]int{5}),
	Divides:  "The batch, the key heads, the heads of each and, without `causal`, the queries; results that lack a dimension, as dk and dv the queries, are parts of a sum. With dropout each piece draws what the whole would.",
	Exchange: exchangedScores, Exchanges: "The queries with `causal`, and without dmask the keys: where the queries are divided alike, keys and values are passed round a ring, and their gradients come back.",
	Infer:  inferAttentionGrad,
	Verify: drawnProblem("dropout"),
	FLOP: func(o *ir.Op) dim.Dim {
		depth, value, each, ok := scoreCost(o)
		if !ok {
			return dim.Dim{}
		}
		each = each.Add(dim.Const(1))
		if Float(o, "dropout") > 0 {
			each = each.Add(dim.Const(1))
		}
		return Scores(o).Mul(dim.Sum(each, depth.Scale(6), value.Scale(4))).Add(in(o, 3).Elements().Scale(2))
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) { return attentionTraffic(o) },
	Expand:  expandAttentionGrad,
	Kernel:  Library,
}

func inferAttentionGrad(o *ir.Op) ([]types.Type, *Problem) {
	ys, p := inferAttention(o)
	if p != nil {
		return nil, p
	}
	y, q := asTensor(ys[0]), in(o, 0)
	for _, i := range []int{3, 5} {
		if t := in(o, i); t.Elem != y.Elem || !sameShape(t.Shape, y.Shape) {
			return nil, problem("DM122", i, "the attention gives %s, but this operand is %s", y, o.Operands[i].Type).help("y and dy have the type of the attention's result")
		}
	}
	if t := in(o, 4); t.Elem != wide(q.Elem) || !sameShape(t.Shape, q.Shape[:q.Rank()-1]) {
		return nil, problem("DM122", 4, "the attention's second result is %s of %s, but this operand is %s", shapeText(q.Shape[:q.Rank()-1]), wide(q.Elem), o.Operands[4].Type).
			help("take the second result of dm.attention")
	}
	var ts []types.Type
	for i := range 3 {
		ts = append(ts, tensor(in(o, i), in(o, i).Elem, in(o, i).Shape...))
	}
	if len(o.Results) > 3 {
		mask := OperandNumber(o, "mask")
		if mask < 0 {
			return nil, problem("DM125", -1, "attention_grad without a mask has no fourth result").help("give the mask behind dy, or write three results")
		}
		ts = append(ts, tensor(in(o, mask), in(o, mask).Elem, in(o, mask).Shape...))
	}
	return ts, nil
}

func expandAttentionGrad(b *ir.Builder, o *ir.Op) []*ir.Value {
	h := newHeads(b, o)
	if h == nil {
		return nil
	}
	qt, kt, vt := in(o, 0), in(o, 1), in(o, 2)
	n := qt.Rank()
	keys, depth, value := h.shape[n-1], qt.Shape[n-1], vt.Shape[n-1]
	rows := append(append([]dim.Dim{}, h.shape[:n-1]...), dim.Const(1))
	dy := h.wide(o.Operands[5])
	dyHeads := h.split(dy, value)

	p := h.Unary("exp", h.sub(h.scores(), h.Reshape(o.Operands[4], rows...)))
	dv := h.contract("gqk", "gqd", "kd", h.split(h.drop(p), keys), dyHeads)
	dp := h.drop(h.Reshape(h.contract("gqd", "kd", "gqk", dyHeads, h.v), h.shape...))
	delta := h.reduce("add", h.mul(dy, h.wide(o.Operands[3])), n-1)
	ds := h.mul(p, h.sub(dp, delta))
	scaled := h.split(h.Builder.scale(ds, h.scale), keys)
	dq := h.Reshape(h.contract("gqk", "kd", "gqd", scaled, h.k), qt.Shape...)
	dk := h.contract("gqk", "gqd", "kd", scaled, h.split(h.q, depth))
	vs := []*ir.Value{h.Convert(dq, qt.Elem), h.Convert(dk, kt.Elem), h.Convert(dv, vt.Elem)}
	if len(o.Results) > 3 {
		mask := in(o, OperandNumber(o, "mask"))
		vs = append(vs, h.Convert(h.sumTo(ds, mask.Shape), mask.Elem))
	}
	return h.done(vs...)
}

var attentionDerivative = &Derivative{
	Doc:  "`dm.attention_grad`, for which the attention gives its second result; a cotangent of the second result itself flows to each score in proportion to its probability.",
	rule: attentionRule,
}

func attentionRule(g *backward) {
	q := in(g.o, 0)
	if len(g.o.Results) == 1 {
		g.addResult(tensor(q, wide(q.Elem), q.Shape[:q.Rank()-1]...))
	}
	if len(g.dy) > 1 && g.dy[1] != nil {
		g.throughSums(g.dy[1])
	}
	if g.dy[0] == nil {
		return
	}
	operands := []*ir.Value{g.x(0), g.x(1), g.x(2), g.y(0), g.y(1), g.dy[0]}
	ts := []types.Type{}
	for i := range 3 {
		ts = append(ts, tensor(in(g.o, i), q.Elem, in(g.o, i).Shape...))
	}
	if mask := OperandNumber(g.o, "mask"); mask >= 0 {
		operands = append(operands, g.x(mask))
		if g.want[mask] {
			ts = append(ts, tensor(in(g.o, mask), q.Elem, in(g.o, mask).Shape...))
		}
	}
	operands = withDrawn(g.o, operands...)
	var attrs []types.Named
	for _, a := range attentionAttrs {
		if v := g.o.Attr(a.Name); v != nil {
			attrs = append(attrs, types.Named{Name: a.Name, Value: v})
		}
	}
	for i, v := range g.Op("dm.attention_grad", operands, attrs, ts...).Results {
		g.give(i, v)
	}
}

// throughSums carries the cotangent of lse back: a score's share of it is its
// probability.
func (g *backward) throughSums(dlse *ir.Value) {
	h := newHeads(g.Builder.Builder, g.o)
	if h == nil {
		g.failed = true
		return
	}
	n := len(h.shape)
	rows := append(append([]dim.Dim{}, h.shape[:n-1]...), dim.Const(1))
	p := h.Unary("exp", h.sub(h.scores(), h.Reshape(g.y(1), rows...)))
	ds := h.mul(p, h.Reshape(dlse, rows...))
	scaled := h.split(h.Builder.scale(ds, h.scale), h.shape[n-1])
	if g.want[0] {
		g.give(0, h.Reshape(h.contract("gqk", "kd", "gqd", scaled, h.k), in(g.o, 0).Shape...))
	}
	if g.want[1] {
		g.give(1, h.contract("gqk", "gqd", "kd", scaled, h.split(h.q, in(g.o, 0).Shape[n-1])))
	}
	if mask := OperandNumber(g.o, "mask"); mask >= 0 {
		g.give(mask, ds)
	}
	g.failed = g.failed || h.failed
}
