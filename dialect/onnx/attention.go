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
	out := []*ir.Value{nil, k, v, nil}
	if n.opt(3) == nil && n.opt(6) == nil && !n.has(3) && n.float("softcap", 0) == 0 && (!causal || keys-s[2] == past) {
		attrs := named("scale", scale)
		if causal {
			attrs = append(attrs, named("causal", true)...)
		}
		out[0] = n.flatten(n.make("attention", []*ir.Value{q, k, v}, attrs), rank)
		return out
	}
	bias, masked := n.bias(q.Elem(), s[2], keys, past, causal)
	root := math.Sqrt(scale)
	q, k = n.with("mul", q, root), n.with("mul", n.repeat(k, s[1]), root)
	scores := n.make("matmul", []*ir.Value{q, k}, named("transpose_b", true))
	stages := []*ir.Value{scores}
	if c := n.float("softcap", 0); c != 0 {
		scores = n.with("mul", n.unary("tanh", n.with("div", scores, c)), c)
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
	stages = append(stages, p)
	out[0] = n.flatten(n.binary("matmul", p, n.repeat(v, s[1])), rank)
	mode := n.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode >= len(stages) {
		fail("qk_matmul_output_mode is %d", mode)
	}
	out[3] = stages[mode]
	return out
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
// where nothing is.
func (n *node) bias(e types.Elem, queries, keys, past int, causal bool) (bias, masked *ir.Value) {
	least, zero := n.scalar(e, math.Inf(-1)), n.scalar(e, 0)
	add := func(v *ir.Value) {
		if bias == nil {
			bias = v
		} else {
			bias = n.binary("add", bias, v)
		}
	}
	if m := n.opt(3); m != nil {
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
	length := n.opt(6)
	if causal {
		row := n.with("add", n.iota(types.I64, 0, queries, 1), float64(past))
		if length != nil {
			first := n.with("sub", n.convertTo(length, types.I64), float64(queries))
			row = n.binary("add", n.iota(types.I64, 0, queries, 1), n.reshape(first, product(n.shape(length)), 1, 1, 1))
		}
		add(n.choose(n.compare("lt", row, n.iota(types.I64, 0, keys)), least, zero))
	}
	if length != nil {
		size := n.reshape(n.convertTo(length, types.I64), product(n.shape(length)), 1, 1, 1)
		add(n.choose(n.compare("lt", n.iota(types.I64, 0, keys), size), zero, least))
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
	moved := n.part(h, 3, 0, size)
	pairs := n.reshape(moved, s[0], s[1], s[2], 2, half)
	d := 3
	if n.int("interleaved", 0) != 0 {
		pairs, d = n.reshape(moved, s[0], s[1], s[2], half, 2), 4
	}
	part := func(i int) *ir.Value { return n.reshape(n.part(pairs, d, i, i+1), s[0], s[1], s[2], half) }
	a, b := part(0), part(1)
	re := n.binary("sub", n.binary("mul", cos, a), n.binary("mul", sin, b))
	im := n.binary("add", n.binary("mul", sin, a), n.binary("mul", cos, b))
	single := []int{s[0], s[1], s[2], half, half}
	single[d] = 1
	v := n.reshape(n.concatenate(d, n.reshape(re, single...), n.reshape(im, single...)), s[0], s[1], s[2], size)
	if size < s[3] {
		v = n.concatenate(3, v, n.part(h, 3, size, s[3]))
	}
	return one(n.flatten(v, len(shape)))
}
