package onnx

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Attention and rotary embeddings.

func init() {
	register(map[string]conversion{"Attention": convertAttention, "RotaryEmbedding": convertRotary})
}

// heads is x as [batch, heads, length, depth], of three dimensions with a number of
// heads in the last one.
func (n *node) heads(x *ir.Value, count int) *ir.Value {
	s := n.shape(x)
	switch len(s) {
	case 4:
		return x
	case 3:
		if count < 1 || s[2]%count != 0 {
			fail("%d heads of %d numbers", count, s[2])
		}
		return n.transpose(n.reshape(x, s[0], s[1], count, s[2]/count), 0, 2, 1, 3)
	}
	fail("%d dimensions", len(s))
	return nil
}

// flatten is the reverse of heads for a value of rank dimensions.
func (n *node) flatten(x *ir.Value, rank int) *ir.Value {
	if rank == 4 {
		return x
	}
	s := n.shape(x)
	return n.reshape(n.transpose(x, 0, 2, 1, 3), s[0], s[2], s[1]*s[3])
}

// convertAttention is dm.attention where nothing is masked but what is later;
// otherwise it is written out: the scores, their cap, the masks, and zeros in rows of
// which everything is masked.
func convertAttention(n *node) []*ir.Value {
	rank := n.rank(n.in(0))
	q := n.heads(n.in(0), n.int("q_num_heads", 0))
	k, v := n.heads(n.in(1), n.int("kv_num_heads", 0)), n.heads(n.in(2), n.int("kv_num_heads", 0))
	past := 0
	if p := n.opt(4); p != nil {
		if n.rank(p) != 4 {
			fail("past keys of %d dimensions", n.rank(p))
		}
		past = n.shape(p)[2]
		k, v = n.concatenate(2, p, k), n.concatenate(2, n.in(5), v)
	}
	s := n.shape(q)
	keys, depth := n.shape(k)[2], s[3]
	scale := n.float("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(depth))
	}
	causal := n.int("is_causal", 0) != 0
	left, right := n.int("left_window_size", -1), n.int("right_window_size", -1)
	out := []*ir.Value{nil, k, v, nil}
	if n.opt(3) == nil && n.opt(6) == nil && !n.has(3) && n.float("softcap", 0) == 0 && left < 0 && right < 0 && (!causal || keys-s[2] == past) {
		attrs := named("scale", scale)
		if causal {
			attrs = append(attrs, named("causal", true)...)
		}
		out[0] = n.flatten(n.make("attention", []*ir.Value{q, k, v}, attrs), rank)
		return out
	}
	bias, masked := n.bias(n.opt(3), n.opt(6), q.Elem(), s[2], keys, past, causal, left, right)
	y, stages := n.attend(q, k, v, scale, n.float("softcap", 0), bias, masked)
	out[0] = n.flatten(y, rank)
	mode := n.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode >= len(stages) {
		fail("qk_matmul_output_mode is %d", mode)
	}
	out[3] = stages[mode]
	return out
}

// attend is attention written out, with a cap and a bias of the scores, and zeros in rows
// of which everything is masked; and its stages: the scores, with their cap, with the bias,
// and the weights.
func (n *node) attend(q, k, v *ir.Value, scale, softcap float64, bias, masked *ir.Value) (y *ir.Value, stages []*ir.Value) {
	heads, root := n.shape(q)[1], math.Sqrt(scale)
	q, k = n.with("mul", q, root), n.with("mul", n.repeat(k, heads), root)
	scores := n.make("matmul", []*ir.Value{q, k}, named("transpose_b", true))
	stages = append(stages, scores)
	if softcap != 0 {
		scores = n.with("mul", n.unary("tanh", n.with("div", scores, softcap)), softcap)
	}
	stages = append(stages, scores)
	if bias != nil {
		scores = n.binary("add", scores, bias)
	}
	stages = append(stages, scores)
	p := scores
	if e := n.int("softmax_precision", 0); e != 0 {
		p = n.convertTo(p, elemOf("", int64(e)))
	}
	p = n.convertTo(n.make("softmax", []*ir.Value{p}, named("dim", 3)), scores.Elem())
	if masked != nil {
		p = n.choose(masked, n.scalar(p.Elem(), 0), p)
	}
	return n.binary("matmul", p, n.repeat(v, heads)), append(stages, p)
}

// repeat gives neighbouring heads of queries the same keys or values.
func (n *node) repeat(x *ir.Value, heads int) *ir.Value {
	s := n.shape(x)
	if s[1] == heads {
		return x
	}
	if s[1] == 0 || heads%s[1] != 0 {
		fail("%d heads for %d of keys", heads, s[1])
	}
	x = n.broadcast(n.reshape(x, s[0], s[1], 1, s[2], s[3]), s[0], s[1], heads/s[1], s[2], s[3])
	return n.reshape(x, s[0], heads, s[2], s[3])
}

// bias is what is added to the scores, and masked where all of a row is masked; nil
// where nothing is. length is the number of keys of each batch, of which the last belong
// to the queries; past is the number of keys before those. A query sees as many keys to the
// left and the right of its own as the windows say, all where they are negative.
func (n *node) bias(mask, length *ir.Value, e types.Elem, queries, keys, past int, causal bool, left, right int) (bias, masked *ir.Value) {
	least, zero := n.scalar(e, math.Inf(-1)), n.scalar(e, 0)
	add := func(v *ir.Value) {
		if bias == nil {
			bias = v
		} else {
			bias = n.binary("add", bias, v)
		}
	}
	if m := mask; m != nil {
		if m.Elem() == types.I1 {
			m = n.choose(m, zero, least)
		}
		m = n.convertTo(m, e)
		if s := n.shape(m); len(s) > 0 && s[len(s)-1] < keys && s[len(s)-1] > 1 {
			high := make([]int, len(s))
			high[len(s)-1] = keys - s[len(s)-1]
			m = n.pad(m, least, make([]int, len(s)), high)
		}
		add(m)
	}
	row := n.with("add", n.iota(types.I64, 0, queries, 1), float64(past))
	if length != nil {
		length = n.reshape(n.convertTo(length, types.I64), product(n.shape(length)), 1, 1, 1)
		row = n.binary("add", n.iota(types.I64, 0, queries, 1), n.with("sub", length, float64(queries)))
	}
	column := n.iota(types.I64, 0, keys)
	if causal || right >= 0 {
		last := row
		if right > 0 && !causal {
			last = n.with("add", row, float64(right))
		}
		add(n.choose(n.compare("lt", last, column), least, zero))
	}
	if left >= 0 {
		add(n.choose(n.compare("lt", column, n.with("sub", row, float64(left))), least, zero))
	}
	if length != nil {
		add(n.choose(n.compare("lt", column, length), zero, least))
	}
	if bias != nil {
		masked = n.compare("eq", n.reduce("max", bias, []int{n.rank(bias) - 1}, true), least)
	}
	return bias, masked
}

// convertRotary rotates pairs of numbers of each head by the angles of its position.
func convertRotary(n *node) []*ir.Value {
	x := n.in(0)
	shape := n.shape(x)
	h := n.heads(x, n.int("num_heads", 0))
	s := n.shape(h)
	size := n.int("rotary_embedding_dim", 0)
	if size == 0 {
		size = s[3]
	}
	if size < 0 || size > s[3] || size%2 != 0 {
		fail("%d of %d numbers are rotated", size, s[3])
	}
	half := size / 2
	angle := func(i int) *ir.Value {
		v := n.in(i)
		if at := n.opt(3); at != nil {
			v = n.gather(v, n.index(at), 0)
		}
		w := n.shape(v)
		if len(w) != 3 || w[2] < half {
			fail("angles of shape %v", w)
		}
		v = n.part(v, 2, 0, half)
		return n.reshape(v, w[0], 1, w[1], half)
	}
	cos, sin := angle(1), angle(2)
	return one(n.flatten(n.rotate(h, cos, sin, n.int("interleaved", 0) != 0), len(shape)))
}

// rotate turns pairs of the first numbers of each head by angles, as many as there are.
func (n *node) rotate(h, cos, sin *ir.Value, interleaved bool) *ir.Value {
	s, half := n.shape(h), n.shape(cos)[3]
	size := 2 * half
	moved := n.part(h, 3, 0, size)
	pairs := "halves"
	if interleaved {
		pairs = "interleaved"
	}
	v := n.make("rope", []*ir.Value{moved, cos, sin}, named("pairs", types.Keyword(pairs)), moved.Type)
	if size < s[3] {
		v = n.concatenate(3, v, n.part(h, 3, size, s[3]))
	}
	return v
}
