package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// scatter has tensors, the indices and an update for each tensor.
func scatter(n *node) []*ir.Value {
	k := len(n.in) / 2
	n.must(len(n.in) == 2*k+1 && k > 0, "DM142", "%s takes tensors, indices and as many updates, but has %d operands", n.name, len(n.in))
	xs, indices, updates := n.in[:k], n.in[k], n.in[k+1:]
	a := n.accessOf(xs[0], indices, "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims")
	a.window = ones(len(a.shape))
	for i, x := range xs {
		n.must(slices.Equal(n.shape(x), a.shape) && x.Elem() == updates[i].Elem(), "DM142", "%s: updates of %s do not fit %s", n.name, updates[i].Type, x.Type)
		n.must(slices.Equal(n.shape(updates[i]), n.shape(updates[0])) && len(n.shape(updates[i])) == a.rank(), "DM142", "%s: updates of %s have not the %d dimensions of the indices and the windows", n.name, updates[i].Type, a.rank())
	}
	shape := n.shape(updates[0])
	for i, d := range a.kept() {
		a.window[d] = shape[a.offsets[i]]
		n.must(a.window[d] <= a.shape[d], "DM142", "%s: windows of %s are larger than %s", n.name, updates[0].Type, xs[0].Type)
	}
	n.must(slices.Equal(pick(shape, others(a.rank(), a.offsets)), a.batch()), "DM142", "%s: updates of %s do not have the sizes of the indices %s", n.name, updates[0].Type, indices.Type)
	if product(shape) == 0 {
		return xs
	}
	if k == 1 {
		if y := n.namedScatter(a, xs[0], indices, updates[0]); y != nil {
			return []*ir.Value{y}
		}
	}
	return n.scatterInOrder(a, xs, indices, updates)
}

// namedScatter is a scatter whose region has a name; nil for others.
func (n *node) namedScatter(a *access, x, indices, update *ir.Value) *ir.Value {
	e := x.Elem()
	kind := n.combiner(0, e)
	if kind != "set" {
		kind = reduction(kind, e)
	}
	if kind == "" || n.rounded(kind, e) && product(n.shape(update)) <= maxInOrder {
		return nil
	}
	var attrs []types.Named
	if kind != "set" {
		attrs = []types.Named{named("kind", types.Keyword(kind))}
	}
	wide := e
	if kind != "set" {
		wide = either(e == types.I1, types.UI8, widened(e))
	}
	x, update = n.convert(x, wide), n.convert(update, wide)
	if d, shared, ok := a.simple(); ok {
		at := n.positions([]*ir.Value{n.reshape(indices, a.batch()...)})[0]
		if d != 0 {
			attrs = append(attrs, intAttr("dim", d))
		}
		if shared != 0 {
			attrs = append(attrs, intAttr("batch_dims", shared))
		}
		update = n.transpose(update, a.simpleOrder(d, shared))
		return n.convert(n.op("scatter", []*ir.Value{x, at, update}, attrs...), e)
	}
	at, rows := n.targets(a, indices)
	update = n.reshape(n.transpose(update, a.order()), slices.Concat(n.shape(at), a.shape[rows:])...)
	y := n.op("scatter", []*ir.Value{n.flat(x, rows), at, update}, attrs...)
	return n.convert(n.reshape(y, a.shape...), e)
}

// targets is the address of the updated elements, -1 for those outside, which
// dm.scatter drops.
func (n *node) targets(a *access, indices *ir.Value) (at *ir.Value, rows int) {
	at, rows, inside := n.address(a, indices, false)
	if inside != nil {
		at = n.choose(inside, at, n.whole(at.Elem(), -1))
	}
	return at, rows
}

// scatterInOrder applies the updates one after the other, by any function of the old
// elements and the updates of all tensors.
func (n *node) scatterInOrder(a *access, xs []*ir.Value, indices *ir.Value, updates []*ir.Value) []*ir.Value {
	at, rows := n.targets(a, indices)
	steps := product(n.shape(at))
	row := a.shape[rows:]
	var carried []*ir.Value
	stacks := []*ir.Value{n.reshape(at, steps)}
	for i, x := range xs {
		carried = append(carried, n.flat(x, rows))
		stacks = append(stacks, n.reshape(n.transpose(updates[i], a.order()), append([]int{steps}, row...)...))
	}
	ys := n.scan(row, carried, stacks, func(now, next []*ir.Value) []*ir.Value {
		var values []*ir.Value
		for _, x := range now {
			values = append(values, n.gather(x, next[0], 0, 0))
		}
		values = n.runFor(0, row, append(values, next[1:]...))
		n.must(len(values) == len(now), "DM142", "the region of %s passes on %d values; expected %d", n.name, len(values), len(now))
		var out []*ir.Value
		for i, x := range now {
			out = append(out, n.op("scatter", []*ir.Value{x, next[0], values[i]}))
		}
		return out
	})
	out := make([]*ir.Value, len(xs))
	for i, y := range ys {
		out[i] = n.reshape(y, a.shape...)
	}
	return out
}
