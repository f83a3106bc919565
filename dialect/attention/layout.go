package attention

import (
	"slices"

	"dmir/dialect/dim"
)

func dimEqual(a, b dim.Dim) bool { return a.Equal(b) }

// layout is what the indices of an attention are. Values are put in the order
// [batch…, heads, rows, depth], where heads are those that share keys and values;
// without such there are none.
type layout struct {
	batch        []*atom // of queries, keys and values
	heads        []*atom // of the queries alone
	query        []*atom
	keys         []*atom
	depth, value []*atom
}

// front are the axes before the last two.
func (l *layout) front(heads []*atom) axes {
	x := each(l.batch)
	if len(l.heads) > 0 {
		x = append(x, heads)
	}
	return x
}

func (l *layout) queries(last []*atom) axes { return append(l.front(l.heads), l.query, last) }
func (l *layout) shared(last []*atom) axes  { return append(l.front(nil), l.keys, last) }
func (l *layout) matrix() axes              { return l.queries(l.keys) }

// size is the number of elements along the atoms.
func (f *finder) size(list []*atom) dim.Dim {
	n := dim.Const(1)
	for _, a := range f.leaves(list) {
		n = n.Mul(a.size)
	}
	return n
}

// layout finds out what the indices are from where they stand: in q, k and v as
// far as these are followed, in the softmax and in the result.
func (f *finder) layout(q, k, v axes, c *causal) (*layout, bool) {
	order := f.flat(f.rows)
	if f.dropout != nil {
		order = f.flat(f.drawn)
	}
	qs, ks, vs, ys := f.flat(q), f.flat(k), f.flat(v), f.flat(f.y)
	in := func(list []*atom, a *atom) bool { return slices.Contains(list, a) }
	l := &layout{}
	var rows []*atom
	for _, a := range order {
		inQ, inK, inV := in(qs, a), in(ks, a), in(vs, a)
		switch {
		case f.isKey(a) && inK && inV && !inQ:
			l.keys = append(l.keys, a)
		case f.isKey(a):
			return nil, f.no("the softmax is not over what both contractions share")
		case !in(ys, a):
			return nil, f.no("the result lacks an index of the scores")
		case inQ && inK && inV:
			l.batch = append(l.batch, a)
		case inQ && !inK && !inV:
			rows = append(rows, a)
		default:
			return nil, f.no("keys and values are not shared by the same heads")
		}
	}
	for _, a := range qs {
		switch {
		case in(order, a):
		case in(ks, a):
			l.depth = append(l.depth, a)
		default:
			return nil, f.no("queries and keys do not share a depth")
		}
	}
	for _, a := range vs {
		switch {
		case in(order, a):
		case in(ys, a):
			l.value = append(l.value, a)
		default:
			return nil, f.no("the values have an index that the result lacks")
		}
	}
	for _, a := range ys {
		if !in(order, a) && !in(vs, a) {
			return nil, f.no("the result has an index that the values lack")
		}
	}
	if n := len(rows); n > 0 {
		at := n - 1
		if c != nil {
			at = slices.Index(rows, c.query)
		}
		if at < 0 {
			return nil, f.no("the causal mask is not over the queries")
		}
		l.query = rows[at : at+1 : at+1]
		l.heads = slices.Concat(rows[:at], rows[at+1:])
	}
	if c != nil {
		queries, keys := f.size(l.query), f.size(l.keys)
		n, ok := keys.Sub(queries).Int()
		if len(l.query) == 0 || len(l.keys) != 1 || l.keys[0] != c.key || !ok || n != c.shift || n < 0 {
			return nil, f.no("the mask is not that the last query sees all keys and each before it one less")
		}
	}
	return l, len(l.keys) > 0
}
