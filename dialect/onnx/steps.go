package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Algorithms that go step by step, each a dm.scan: linear attention over the tokens, determinants over the
// columns, the suppression of boxes over the boxes that are selected.

func init() {
	register(map[string]conversion{
		"Det": convertDet, "LinearAttention": convertLinearAttention, "NonMaxSuppression": convertNonMaxSuppression,
	})
}

// scan is a dm.scan: each step makes the next carried values and outputs from the carried values and the
// elements of scanned, which lie along their first dimension. The outputs are stacked so.
func (n *node) scan(carried, scanned []*ir.Value, attrs []types.Named, step func(m *node, carried, in []*ir.Value) (next, out []*ir.Value)) (end, stacked []*ir.Value) {
	k := len(carried)
	o := n.b.Op(op.Prefix+"scan", slices.Concat(carried, scanned), append(named("carries", k), attrs...))
	ts := ir.Types(carried)
	length := n.shape(scanned[0])[0]
	for _, v := range scanned {
		ts = append(ts, tensorOf(v.Elem(), n.shape(v)[1:]))
	}
	block, b := n.region(o, ts...)
	inner := *n
	inner.scope = &scope{importer: n.importer, outer: n.scope, values: map[string]*ir.Value{}, opsets: n.opsets, attrs: n.attrs, b: b}
	next, out := step(&inner, block.Args[:k:k], block.Args[k:])
	b.Op(op.Yield, slices.Concat(next, out), nil)
	rs := results(o, append(ir.Types(carried), stackedTypes(out, length)...))
	return rs[:k:k], rs[k:]
}

// packed is x, [batch, tokens, heads · size], as [tokens, batch, heads, size], in f32 or wider.
func (n *node) packed(x *ir.Value, count int) *ir.Value {
	s := n.shape(x)
	if len(s) != 3 || count < 1 || s[2]%count != 0 {
		fail("an input of shape %v for %d heads", s, count)
	}
	return n.wide(n.transpose(n.reshape(x, s[0], s[1], count, s[2]/count), 1, 0, 2, 3))
}

// convertLinearAttention computes in f32 or wider. With S the state of a head, [depth, value depth], a token makes
// of it S' = e^decay · S, then S' + beta · k ⊗ (v - S'ᵀ k), without the parts that its rule lacks, and gives
// scale · qᵀ S.
func convertLinearAttention(n *node) []*ir.Value {
	q, k, v, past, decay, beta := n.in(0), n.in(1), n.in(2), n.opt(3), n.opt(4), n.opt(5)
	n.int("chunk_size", 64)
	rule := n.str("update_rule", "gated_delta")
	parts, ok := map[string]struct{ decay, beta bool }{"linear": {}, "gated": {decay: true}, "delta": {beta: true}, "gated_delta": {true, true}}[rule]
	switch {
	case !ok:
		fail("update_rule %q", rule)
	case parts.decay != (decay != nil):
		fail("the update rule %s with or without decay", rule)
	case parts.beta != (beta != nil):
		fail("the update rule %s with or without beta", rule)
	}
	e, heads, shared := q.Elem(), n.int("q_num_heads", 0), n.int("kv_num_heads", 0)
	if shared < 1 || heads%shared != 0 {
		fail("%d heads of queries for %d of keys", heads, shared)
	}
	qs, ks, vs := n.packed(q, heads), n.packed(k, shared), n.packed(v, shared)
	s, wide := n.shape(qs), qs.Elem()
	tokens, batch, depth, values := s[0], s[1], s[3], n.shape(vs)[3]
	if n.shape(ks)[3] != depth || !slices.Equal(n.shape(ks)[:3], n.shape(vs)[:3]) || tokens != n.shape(ks)[0] || batch != n.shape(ks)[1] {
		fail("queries, keys and values of shapes %v, %v and %v", n.shape(q), n.shape(k), n.shape(v))
	}
	qs = n.reshape(qs, tokens, batch, shared, heads/shared, depth)
	scanned := []*ir.Value{qs, ks, vs}
	if decay != nil {
		d := n.packed(decay, shared) // of each head, or of each row of its state
		scanned = append(scanned, n.unary("exp", n.reshape(d, append(n.shape(d), 1)...)))
	}
	if beta != nil {
		b := n.packed(beta, n.shape(beta)[max(0, n.rank(beta)-1)]) // of each head, or of all
		scanned = append(scanned, b)
	}
	state, stateElem := n.splat(wide, 0, batch, shared, depth, values), e
	if past != nil {
		stateElem = past.Elem()
		state = n.reshape(n.convertTo(past, wide), batch, shared, depth, values)
	}
	scale := n.float("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(depth))
	}
	end, out := n.scan(one(state), scanned, nil, func(m *node, carried, in []*ir.Value) (next, out []*ir.Value) {
		state, q, k, v := carried[0], in[0], in[1], in[2]
		if decay != nil {
			state = m.binary("mul", state, in[3])
		}
		if beta != nil {
			seen := m.make("einsum", []*ir.Value{state, k}, named("equation", types.Attr(types.Str("bhkv,bhk->bhv"))))
			v = m.binary("mul", m.binary("sub", v, seen), in[len(in)-1])
		}
		outer := m.binary("mul", m.reshape(k, batch, shared, depth, 1), m.reshape(v, batch, shared, 1, values))
		state = m.binary("add", state, outer)
		y := m.make("einsum", []*ir.Value{q, state}, named("equation", types.Attr(types.Str("bhgk,bhkv->bhgv"))))
		return one(state), one(m.with("mul", y, scale))
	})
	y := n.transpose(out[0], 1, 0, 2, 3, 4)
	return []*ir.Value{n.convertTo(n.reshape(y, batch, tokens, heads*values), e), n.convertTo(end[0], stateElem)}
}

// convertDet eliminates with the largest pivot of each column. In each step the rows above k are done.
func convertDet(n *node) []*ir.Value {
	x := n.in(0)
	s := n.shape(x)
	if len(s) < 2 || s[len(s)-1] != s[len(s)-2] {
		fail("a determinant of shape %v", s)
	}
	size, front := s[len(s)-1], s[:len(s)-2]
	e, count := x.Elem(), product(front)
	if size == 0 {
		return one(n.splat(e, 1, front...))
	}
	rows := n.iota(types.I64, 0, size)
	matrices := n.wide(n.reshape(x, count, size, size))
	wide := matrices.Elem()
	carried := []*ir.Value{matrices, n.splat(wide, 1, count)}
	end, _ := n.scan(carried, one(rows), nil, func(m *node, carried, in []*ir.Value) (next, out []*ir.Value) {
		a, det, k := carried[0], carried[1], in[0]
		zero, minus := m.scalar(wide, 0), m.scalar(wide, -1)
		column := m.gather(a, k, 2) // [count, size]
		left := m.compare("ge", rows, k)
		pivot := m.make("argmax", one(m.choose(left, m.unary("abs", column), minus)), named("dim", 1))
		at := m.compare("eq", rows, m.reshape(pivot, count, 1)) // [count, size]
		of := func(y *ir.Value) *ir.Value { return m.reduce("add", m.choose(at, y, zero), []int{1}, true) }
		p := of(column)
		row := m.reduce("add", m.choose(m.reshape(at, count, size, 1), a, zero), []int{1}, false)
		// Row k goes where the row of the pivot was; only its elements below matter.
		a = m.choose(m.reshape(at, count, size, 1), m.reshape(m.gather(a, k, 1), count, 1, size), a)
		column = m.choose(at, m.gather(column, m.reshape(k, 1), 1), column)
		some := m.compare("ne", p, zero)
		factor := m.choose(m.make("and", []*ir.Value{m.compare("gt", rows, k), some}, nil), m.binary("div", column, m.choose(some, p, m.scalar(wide, 1))), zero)
		a = m.binary("sub", a, m.binary("mul", m.reshape(factor, count, size, 1), m.reshape(row, count, 1, size)))
		sign := m.choose(m.compare("eq", pivot, k), m.scalar(wide, 1), minus)
		return []*ir.Value{a, m.binary("mul", det, m.binary("mul", sign, m.reshape(p, count)))}, nil
	})
	return one(n.convertTo(n.reshape(end[1], front...), e))
}

// convertNonMaxSuppression gives as many rows as the bound on boxes allows: those of the selected boxes first, by
// batch, class and falling score, then rows of -1. The dialect's shapes are static.
func convertNonMaxSuppression(n *node) []*ir.Value {
	boxes, scores := n.in(0), n.in(1)
	bs, ss := n.shape(boxes), n.shape(scores)
	if len(bs) != 3 || bs[2] != 4 || len(ss) != 3 || ss[0] != bs[0] || ss[2] != bs[1] {
		fail("boxes of shape %v and scores of %v", bs, ss)
	}
	batches, classes, count := ss[0], ss[1], ss[2]
	most := 0
	if d := n.value(2); d != nil {
		most = min(int(max(0, first(d))), count)
	}
	pairs := batches * classes
	if most*pairs == 0 {
		return one(n.splat(types.I64, 0, 0, 3))
	}
	number := func(i int) *ir.Value { // an option, whether known at import or not
		if v := n.opt(i); v != nil {
			return n.convertTo(n.single(v), types.F32)
		}
		return nil
	}
	overlap, least := number(3), number(4)
	if overlap == nil {
		overlap = n.scalar(types.F32, 0)
	}
	side := func(d int) *ir.Value { return n.reshape(n.part(boxes, 2, d, d+1), batches, 1, count) }
	y0, x0, y1, x1 := side(0), side(1), side(2), side(3)
	if n.int("center_point_box", 0) != 0 { // x, y, width, height
		x, y, w, h := side(0), side(1), n.with("mul", side(2), 0.5), n.with("mul", side(3), 0.5)
		y0, x0, y1, x1 = n.binary("sub", y, h), n.binary("sub", x, w), n.binary("add", y, h), n.binary("add", x, w)
	} else { // any two corners
		y0, y1 = n.binary("min", y0, y1), n.binary("max", y0, y1)
		x0, x1 = n.binary("min", x0, x1), n.binary("max", x0, x1)
	}
	area := n.binary("mul", n.binary("sub", y1, y0), n.binary("sub", x1, x0))
	none := math.Inf(-1)
	if least != nil {
		scores = n.choose(n.compare("gt", scores, least), scores, n.scalar(scores.Elem(), none))
	}
	places := n.iota(types.I64, 0, count)
	_, out := n.scan(one(scores), one(n.iota(types.I64, 0, most)), nil, func(m *node, carried, _ []*ir.Value) (next, out []*ir.Value) {
		left := carried[0]
		zero := m.scalar(left.Elem(), 0)
		best := m.make("argmax", one(left), named("dim", 2, "keep_dims", true)) // [batches, classes, 1]
		some := m.compare("gt", m.reduce("max", left, []int{2}, true), m.scalar(left.Elem(), none))
		at := m.compare("eq", places, best)
		of := func(v *ir.Value) *ir.Value { return m.reduce("add", m.choose(at, v, zero), []int{2}, true) }
		length := func(low, high *ir.Value) *ir.Value {
			return m.binary("max", m.binary("sub", m.binary("min", high, of(high)), m.binary("max", low, of(low))), zero)
		}
		shared := m.binary("mul", length(y0, y1), length(x0, x1))
		all := m.binary("sub", m.binary("add", area, of(area)), shared)
		near := m.binary("and", m.compare("gt", shared, zero), m.compare("gt", shared, m.binary("mul", overlap, all)))
		gone := m.binary("or", near, at)
		index := m.choose(some, best, m.splat(types.I64, -1, batches, classes, 1))
		return one(m.choose(gone, m.scalar(left.Elem(), none), left)), one(index)
	})
	// The rows, and whether each is of a box: those that are come first.
	all := pairs * most
	index := n.reshape(n.transpose(n.reshape(out[0], most, batches, classes), 1, 2, 0), all, 1)
	along := func(d int) *ir.Value { return n.reshape(n.iota(types.I64, d, batches, classes, most), all, 1) }
	missing := n.compare("lt", index, n.scalar(types.I64, 0))
	row := n.choose(missing, n.scalar(types.I64, -1), n.concatenate(1, along(0), along(1), index))
	order := n.makeAll("sort", one(n.reshape(n.convertTo(missing, types.I32), all)), named("dim", 0), tensorOf(types.I32, []int{all}), tensorOf(types.I64, []int{all}))[1]
	return one(n.gather(row, order, 0))
}
