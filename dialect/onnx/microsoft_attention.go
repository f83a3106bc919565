package onnx

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Attention of ONNX Runtime.

func init() {
	register(map[string]conversion{
		microsoft + "Attention": convertPackedAttention, microsoft + "GroupQueryAttention": convertGroupQueryAttention,
		microsoft + "MultiHeadAttention": convertMultiHeadAttention, microsoft + "RotaryEmbedding": convertPositionedRotary,
	})
}

// keyMask is what a mask of keys, of as many rows as there are batches or of the number of
// keys of each, adds to the scores.
func (n *node) keyMask(m *ir.Value, batch, keys int, e types.Elem) *ir.Value {
	least, zero := n.scalar(e, n.float("mask_filter_value", -10000)), n.scalar(e, 0)
	switch s := n.shape(m); {
	case len(s) == 1 && s[0] == batch:
		see := n.compare("lt", n.iota(types.I64, 0, keys), n.reshape(n.convertTo(m, types.I64), batch, 1, 1, 1))
		return n.choose(see, zero, least)
	case len(s) == 2 && s[1] == keys:
		see := n.compare("ne", n.convertTo(m, types.I64), n.scalar(types.I64, 0))
		return n.choose(n.reshape(see, s[0], 1, 1, keys), zero, least)
	case len(s) == 3 && s[2] == keys:
		see := n.compare("ne", n.convertTo(m, types.I64), n.scalar(types.I64, 0))
		return n.choose(n.reshape(see, s[0], 1, s[1], keys), zero, least)
	default:
		unsupported("a mask of keys of shape %v for %d batches of %d keys", s, batch, keys)
	}
	return nil
}

// scaled is the node's scale, or what the depth of heads makes it.
func (n *node) scaled(depth int) float64 {
	if s := n.float("scale", 0); s != 0 {
		return s
	}
	return 1 / math.Sqrt(float64(depth))
}

// fused is attention with a mask of keys and an added bias, either of which may be nil, of
// which a query sees the keys up to its own where it is causal.
func (n *node) fused(q, k, v, mask, bias *ir.Value, causal bool) (y, scores *ir.Value) {
	s, keys := n.shape(q), n.shape(k)[2]
	scale := n.scaled(s[3])
	if mask != nil {
		mask = n.keyMask(mask, s[0], keys, q.Elem())
		if bias != nil {
			mask = n.binary("add", mask, bias)
		}
		bias = mask
	}
	if bias == nil {
		attrs := named("scale", scale)
		if causal {
			attrs = append(attrs, named("causal", true)...)
		}
		return n.make("attention", []*ir.Value{q, k, v}, attrs), nil
	}
	if causal {
		later, _ := n.bias(nil, nil, q.Elem(), s[2], keys, keys-s[2], true, -1, -1)
		bias = n.binary("add", bias, later)
	}
	y, stages := n.attend(q, k, v, scale, 0, bias, nil)
	return y, stages[2]
}

// convertMultiHeadAttention takes queries, keys and values of all heads, keys and values
// from before, a bias of the projections, a mask of keys and a bias of the scores.
func convertMultiHeadAttention(n *node) []*ir.Value {
	count := n.int("num_heads", 0)
	q, k, v := n.in(0), n.opt(1), n.opt(2)
	if n.rank(q) != 3 || k == nil || v == nil || n.rank(k) == 5 {
		unsupported("queries, keys and values in one tensor")
	}
	if b := n.opt(3); b != nil {
		at := 0
		project := func(x *ir.Value) *ir.Value {
			size := n.shape(x)[2]
			x = n.binary("add", x, n.part(b, 0, at, at+size))
			at += size
			return x
		}
		if n.rank(k) != 3 || n.rank(v) != 3 {
			unsupported("a bias of keys that are split into heads")
		}
		q, k, v = project(q), project(k), project(v)
	}
	q, k, v = n.heads(q, count), n.heads(k, count), n.heads(v, count)
	if past := n.opt(6); past != nil {
		k, v = n.concatenate(2, past, k), n.concatenate(2, n.in(7), v)
	}
	y, scores := n.fused(q, k, v, n.opt(4), n.opt(5), n.int("unidirectional", 0) != 0)
	return []*ir.Value{n.flatten(y, 3), k, v, scores}
}

// convertPackedAttention projects its input to queries, keys and values first.
func convertPackedAttention(n *node) []*ir.Value {
	count := n.int("num_heads", 0)
	if n.int("do_rotary", 0) != 0 || n.int("past_present_share_buffer", 0) != 0 {
		unsupported("rotary embeddings or a buffer of keys and values in com.microsoft.Attention")
	}
	all := n.matmul(n.in(0), n.in(1))
	if b := n.opt(2); b != nil {
		all = n.binary("add", all, b)
	}
	size := n.shape(all)[2]
	sizes := n.ints("qkv_hidden_sizes")
	if sizes == nil {
		sizes = []int{size / 3, size / 3, size / 3}
	}
	if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != size {
		fail("projections of sizes %v in %d", sizes, size)
	}
	q := n.heads(n.part(all, 2, 0, sizes[0]), count)
	k := n.heads(n.part(all, 2, sizes[0], sizes[0]+sizes[1]), count)
	v := n.heads(n.part(all, 2, sizes[0]+sizes[1], size), count)
	if past := n.opt(4); past != nil {
		s := n.shape(past)
		if len(s) != 5 || s[0] != 2 {
			fail("past keys and values of shape %v", s)
		}
		k = n.concatenate(2, n.reshape(n.part(past, 0, 0, 1), s[1:]...), k)
		v = n.concatenate(2, n.reshape(n.part(past, 0, 1, 2), s[1:]...), v)
	}
	y, _ := n.fused(q, k, v, n.opt(3), n.opt(5), n.int("unidirectional", 0) != 0)
	s := append([]int{1}, n.shape(k)...)
	out := one(n.flatten(y, 3))
	if n.has(1) {
		out = append(out, n.concatenate(0, n.reshape(k, s...), n.reshape(v, s...)))
	}
	return out
}

// angles are the rows of a table of angles at positions [batch, length], for all heads.
func (n *node) angles(table, positions *ir.Value) *ir.Value {
	s := n.shape(positions)
	return n.reshape(n.gather(table, positions, 0), s[0], 1, s[1], n.shape(table)[1])
}

// convertPositionedRotary has the positions of each batch, or that of the first element.
func convertPositionedRotary(n *node) []*ir.Value {
	x, at := n.in(0), n.index(n.in(1))
	if n.int("is_packed_batching", 0) != 0 || n.float("scale", 1) != 1 {
		unsupported("packed batches or a scale")
	}
	cos, sin := n.in(2), n.in(3)
	count := n.int("num_heads", 0)
	if count == 0 && n.rank(x) == 3 {
		depth := n.int("rotary_embedding_dim", 0)
		if depth == 0 {
			depth = 2 * n.shape(cos)[1]
		}
		count = n.shape(x)[2] / max(depth, 1)
	} else {
		n.int("rotary_embedding_dim", 0)
	}
	h := n.heads(x, count)
	if n.rank(at) == 1 || product(n.shape(at)) == 1 {
		at = n.binary("add", n.iota(at.Elem(), 1, 1, n.shape(h)[2]), n.single(at))
	}
	return one(n.flatten(n.rotate(h, n.angles(cos, at), n.angles(sin, at), n.int("interleaved", 0) != 0), n.rank(x)))
}

// convertGroupQueryAttention is causal attention of groups of heads with a cache of keys
// and values: each batch has a length, of which the last elements are new.
func convertGroupQueryAttention(n *node) []*ir.Value {
	count, groups := n.int("num_heads", 0), n.int("kv_num_heads", 0)
	if count < 1 || groups < 1 || count%groups != 0 {
		fail("%d heads in %d groups", count, groups)
	}
	q, k, v := n.in(0), n.opt(1), n.opt(2)
	if k == nil { // all in one
		size := n.shape(q)[2] / (count + 2*groups)
		all := q
		q, k = n.part(all, 2, 0, count*size), n.part(all, 2, count*size, (count+groups)*size)
		v = n.part(all, 2, (count+groups)*size, (count+2*groups)*size)
	}
	if v == nil {
		fail("keys without values")
	}
	q, k, v = n.heads(q, count), n.heads(k, groups), n.heads(v, groups)
	s := n.shape(q)
	batch, length := s[0], s[2]
	pastKey, pastValue := n.opt(3), n.opt(4)
	past := 0
	if pastKey != nil {
		past = n.shape(pastKey)[2]
	}
	total := past + length
	if in := n.opt(6); in != nil {
		if d := n.constant(in); d != nil && d.Len() == 1 {
			total = int(d.Int(0))
			n.note(total)
		}
	}
	fresh := total == length // nothing is from before, and rows may end in padding
	keys := max(past, total)
	lengths := n.with("add", n.reshape(n.convertTo(n.in(5), types.I64), batch, 1), 1)
	before := n.with("sub", lengths, float64(length))
	if fresh {
		before = n.splat(types.I64, 0, batch, 1)
	}
	positions := n.binary("add", n.iota(types.I64, 1, 1, length), before) // of the queries
	if at := n.opt(9); at != nil && n.int("do_rotary", 0) != 0 {
		positions = n.convertTo(at, types.I64)
	}
	if n.int("do_rotary", 0) != 0 {
		cos, sin := n.angles(n.in(7), positions), n.angles(n.in(8), positions)
		interleaved := n.int("rotary_interleaved", 0) != 0
		q, k = n.rotate(q, cos, sin, interleaved), n.rotate(k, cos, sin, interleaved)
	} else {
		n.opt(7)
		n.opt(8)
	}
	if past > 0 || keys > length { // the new ones follow those of each batch from before
		place := n.iota(types.I64, 1, batch, keys)
		from := n.choose(n.compare("lt", place, before), place, n.with("add", n.binary("sub", place, before), float64(past)))
		from = n.with("min", from, float64(past+length-1))
		joined := func(old, new *ir.Value) *ir.Value {
			if old != nil && past > 0 {
				new = n.concatenate(2, old, new)
			}
			new = n.transpose(new, 0, 2, 1, 3)
			return n.transpose(n.make("gather", []*ir.Value{new, from}, named("dim", 1, "batch_dims", 1)), 0, 2, 1, 3)
		}
		k, v = joined(pastKey, k), joined(pastValue, v)
	}
	last := n.reshape(n.binary("add", n.iota(types.I64, 1, 1, length), before), batch, 1, length, 1)
	column := n.iota(types.I64, 0, keys)
	hidden := n.compare("gt", column, last)
	if n.int("causal", 1) == 0 {
		hidden = n.compare("ge", column, n.reshape(lengths, batch, 1, 1, 1))
	}
	if w := n.int("local_window_size", -1); w > 0 {
		hidden = n.binary("or", hidden, n.compare("le", column, n.with("sub", last, float64(w))))
	}
	if n.int("smooth_softmax", 0) > 0 {
		unsupported("a smooth softmax")
	}
	for _, name := range []string{"qk_output", "kv_cache_bit_width", "sliding_window_cache"} {
		if n.int(name, 0) != 0 {
			unsupported("the attribute %s of GroupQueryAttention", name)
		}
	}
	for _, name := range []string{"k_quant_type", "v_quant_type"} {
		if t := n.str(name, "NONE"); t != "NONE" && t != "" {
			unsupported("quantized keys and values")
		}
	}
	bias := n.choose(hidden, n.scalar(q.Elem(), math.Inf(-1)), n.scalar(q.Elem(), 0))
	if b := n.opt(10); b != nil {
		bias = n.binary("add", bias, b)
	}
	y, _ := n.attend(q, k, v, n.scaled(s[3]), n.float("softcap", 0), bias, nil)
	return []*ir.Value{n.flatten(y, 3), k, v}
}
