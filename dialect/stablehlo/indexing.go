package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func indexing() map[string]conversion {
	return map[string]conversion{
		"gather": gather, "dynamic_gather": dynamicGather, "scatter": scatter, "torch_index_select": indexSelect,
	}
}

// dynamicGather has the sizes of the windows as an operand, which is a constant.
func dynamicGather(n *node) []*ir.Value {
	n.takes(3)
	sizes := constantOf(n.in[2])
	n.must(sizes != nil, Unsupported, "%s with computed sizes of slices has no equivalent", n.name)
	n.in = n.in[:2]
	window := make([]int, sizes.Len())
	for i := range window {
		window[i] = int(sizes.Int(i))
	}
	n.must(len(window) == len(n.shape(n.in[0])), "DM142", "%s has %d sizes of slices for %s", n.name, len(window), n.in[0].Type)
	return n.gatherWindows(window)
}

// access is how gather and scatter address windows of a tensor: the general form of
// both. The indices have dimensions of which one, vector, holds the parts of a start;
// the others, the batch, number the windows.
type access struct {
	shape    []int // of the tensor
	indices  []int // shape of the indices, with the vector's dimension
	vector   int
	window   []int // sizes of the windows, one for each dimension of the tensor
	dropped  []int // dimensions of the tensor that windows do not have: of size 1 there
	batching []int // dimensions of the tensor that a dimension of the batch runs through
	along    []int // that dimension of the batch, for each of batching
	starts   []int // dimension of the tensor that each part of a start is for
	offsets  []int // dimensions of the result that hold a window
}

// batch is the shape of the indices without the vector.
func (a *access) batch() []int { return pick(a.indices, others(len(a.indices), []int{a.vector})) }

// kept are the dimensions of the tensor that windows have.
func (a *access) kept() []int { return others(len(a.shape), a.dropped, a.batching) }

// rank is the number of dimensions of the result.
func (a *access) rank() int { return len(a.indices) - 1 + len(a.kept()) }

// order is where the dimensions of the batch and then of the windows are in the result.
func (a *access) order() []int {
	return slices.Concat(others(a.rank(), a.offsets), a.offsets)
}

// accessOf reads what gather and scatter have in common, under names of their own.
func (n *node) accessOf(x, indices *ir.Value, offsets, dropped, batching, along, starts string) *access {
	a := &access{shape: n.shape(x), indices: slices.Clone(n.shape(indices))}
	rank := len(a.shape)
	a.vector = n.intOr("index_vector_dim", 0)
	n.must(a.vector >= 0 && a.vector <= len(a.indices), "DM141", "index_vector_dim = %d of %s is no dimension of %s", a.vector, n.name, indices.Type)
	if a.vector == len(a.indices) {
		a.indices = append(a.indices, 1)
	}
	a.dropped, a.batching, a.starts = n.dims(dropped, rank), n.dims(batching, rank), n.dims(starts, rank)
	for _, d := range n.dims(along, len(a.indices)) {
		n.must(d != a.vector, "DM141", "%s of %s contains index_vector_dim", along, n.name)
		a.along = append(a.along, either(d > a.vector, d-1, d))
	}
	for _, d := range a.batching {
		n.must(!slices.Contains(a.dropped, d) && !slices.Contains(a.starts, d), "DM141", "%s of %s contains %d, which other attributes name as well", batching, n.name, d)
	}
	n.must(len(a.along) == len(a.batching), "DM141", "%s and %s of %s have different lengths", batching, along, n.name)
	n.must(len(a.starts) == a.indices[a.vector], "DM141", "%s of %s has %d entries, but the vectors of the indices have %d", starts, n.name, len(a.starts), a.indices[a.vector])
	a.offsets = n.dims(offsets, a.rank())
	n.must(len(a.offsets) == len(a.kept()), "DM141", "%s of %s has %d entries for the %d dimensions of a window", offsets, n.name, len(a.offsets), len(a.kept()))
	n.must(slices.IsSorted(a.offsets), "DM141", "%s of %s is not sorted", offsets, n.name)
	for i, d := range a.batching {
		n.must(a.shape[d] == a.batch()[a.along[i]], "DM142", "%s pairs dimension %d of %s with a dimension of another size of %s", n.name, d, x.Type, indices.Type)
	}
	return a
}

// simple is the dimension that the access takes single positions of whole, and the
// number of leading dimensions that the tensor and the batch share, if it is of the
// form of dm.gather: the indices are then those of one dimension.
func (a *access) simple() (d, shared int, ok bool) {
	if len(a.starts) != 1 || len(a.dropped) != 1 || a.dropped[0] != a.starts[0] || a.window[a.starts[0]] != 1 {
		return 0, 0, false
	}
	d, shared = a.starts[0], len(a.batching)
	for i := range a.shape {
		if i != d && !slices.Contains(a.batching, i) && a.window[i] != a.shape[i] {
			return 0, 0, false
		}
	}
	for i := range shared {
		if a.batching[i] != i || a.along[i] != i {
			return 0, 0, false
		}
	}
	return d, shared, d >= shared
}

// simpleOrder is where the dimensions of the result are that dm.gather has: shared and
// kept ones before d, the batch, and those behind d.
func (a *access) simpleOrder(d, shared int) []int {
	batch, window := others(a.rank(), a.offsets), a.offsets
	before := d - shared
	return slices.Concat(batch[:shared], window[:before], batch[shared:], window[before:])
}

func gather(n *node) []*ir.Value {
	n.takes(2)
	return n.gatherWindows(n.intsOr("slice_sizes", len(n.shape(n.in[0])), 1))
}

func (n *node) gatherWindows(window []int) []*ir.Value {
	x, indices := n.in[0], n.in[1]
	a := n.accessOf(x, indices, "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map")
	a.window = window
	for i, s := range a.window {
		n.must(s >= 0 && s <= a.shape[i], "DM141", "slice_sizes of %s takes %d of dimension %d, which has the size %d", n.name, s, i, a.shape[i])
	}
	for _, d := range slices.Concat(a.dropped, a.batching) {
		n.must(a.window[d] <= 1, "DM141", "slice_sizes of %s takes %d of dimension %d, which the result has not", n.name, a.window[d], d)
	}
	if product(a.indices) == 0 || product(a.window) == 0 || product(a.shape) == 0 {
		shape := make([]int, a.rank())
		for i, p := range a.order() {
			shape[p] = slices.Concat(a.batch(), pick(a.window, a.kept()))[i]
		}
		return []*ir.Value{n.trailing(n.fill(x.Elem(), 0), shape)}
	}
	if d, shared, ok := a.simple(); ok {
		i := n.positions([]*ir.Value{n.reshape(indices, a.batch()...)})[0]
		var y *ir.Value
		if d == 0 && len(a.shape) == 2 {
			y = n.op("embedding", []*ir.Value{x, i})
		} else {
			y = n.gather(x, i, d, shared)
		}
		return []*ir.Value{n.transpose(y, op.Inverse(a.simpleOrder(d, shared)))}
	}
	at, rows, _ := n.address(a, indices, true)
	y := n.gather(n.flat(x, rows), at, 0, 0)
	return []*ir.Value{n.fromWindows(a, y)}
}

// flat is x with all dimensions but the last, of whole rows, as one.
func (n *node) flat(x *ir.Value, rows int) *ir.Value {
	shape := n.shape(x)
	return n.reshape(x, append([]int{product(shape[:rows])}, shape[rows:]...)...)
}

// fromWindows brings gathered windows into the order of the result: they have the
// dimensions of the batch, then all of the tensor.
func (n *node) fromWindows(a *access, y *ir.Value) *ir.Value {
	y = n.reshape(y, slices.Concat(a.batch(), pick(a.window, a.kept()))...)
	return n.transpose(y, op.Inverse(a.order()))
}

// address is the place of each window's elements among the rows of the tensor, which
// are its dimensions from number rows on: with the dimensions of the batch, then those
// of windows in front of rows, unless these have one element. Where gathering, starts are moved so that the window
// lies inside; otherwise inside is false for elements outside, nil where there can be
// none.
func (n *node) address(a *access, indices *ir.Value, gathering bool) (at *ir.Value, rows int, inside *ir.Value) {
	for d := range a.shape {
		if slices.Contains(a.starts, d) || slices.Contains(a.batching, d) || a.window[d] != a.shape[d] {
			rows = d + 1
		}
	}
	batch := a.batch()
	elem := types.I32
	if indices.Elem().Bytes() > 4 || indices.Elem() == types.UI32 || product(a.shape[:rows]) >= 1<<31 {
		elem = types.I64
	}
	lead := a.window[:rows]
	if product(lead) == 1 {
		lead = nil
	}
	full := slices.Concat(batch, lead)
	rank := len(full)
	place := func(v *ir.Value, d int) *ir.Value { // v numbers dimension d of full
		shape := ones(rank - d)
		shape[0] = full[d]
		return n.reshape(v, shape...)
	}
	stride := 1
	for d := rows - 1; d >= 0; d-- {
		var part *ir.Value
		bounded := false
		if k := slices.Index(a.starts, d); k >= 0 {
			part = n.component(a, indices, k, elem)
			part = n.reshape(part, append(slices.Clone(batch), ones(len(lead))...)...)
			if gathering {
				part = n.op("clamp", []*ir.Value{n.whole(elem, 0), part, n.whole(elem, a.shape[d]-a.window[d])})
			}
			bounded = !gathering
		} else if k := slices.Index(a.batching, d); k >= 0 {
			part = place(n.iota(elem, 0, batch[a.along[k]]), a.along[k])
		}
		if a.window[d] > 1 {
			part = n.plus(part, place(n.iota(elem, 0, a.window[d]), len(batch)+d))
		}
		if bounded {
			ok := n.binary("and", n.compare("ge", part, n.whole(elem, 0)), n.compare("lt", part, n.whole(elem, a.shape[d])))
			if inside != nil {
				ok = n.binary("and", inside, ok)
			}
			inside = ok
		}
		if part != nil {
			if stride > 1 {
				part = n.binary("mul", part, n.whole(elem, stride))
			}
			at = n.plus(at, part)
		}
		stride *= a.shape[d]
	}
	if at == nil {
		at = n.whole(elem, 0)
	}
	return n.trailing(at, full), rows, inside
}

// component is part k of the starts, with the shape of the batch.
func (n *node) component(a *access, indices *ir.Value, k int, elem types.Elem) *ir.Value {
	v := n.reshape(indices, a.indices...)
	v = n.slice(v, a.vector, k, k+1)
	return n.convert(n.reshape(v, a.batch()...), elem)
}

// indexSelect takes positions along one dimension.
func indexSelect(n *node) []*ir.Value {
	n.takes(2)
	return []*ir.Value{n.gather(n.in[0], n.positions(n.in[1:])[0], n.int("dim"), n.intOr("batch_dims", 0))}
}
