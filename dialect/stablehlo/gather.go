package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// indexed are the dimension numbers of gather and scatter, in the names of gather.
type indexed struct {
	window    []int // dimensions of the result (gather) or the updates (scatter) that are a window's
	collapsed []int // dimensions of the operand that a window has not
	batching  []int // dimensions of the operand that run along with
	along     []int // these dimensions of the indices
	starts    []int // dimension of the operand that each component of an index vector is for
	vector    int   // dimension of the indices that has the vectors; their rank where they are scalars
}

func (c *call) gatherNumbers() (n indexed, size []int, err error) {
	f := c.attrs
	if text := c.attrs["dimension_numbers"]; text != "" {
		f = fields(text)
	}
	var e [8]error
	n.window, e[0] = c.list(f, "offset_dims")
	n.collapsed, e[1] = c.list(f, "collapsed_slice_dims")
	n.batching, e[2] = c.list(f, "operand_batching_dims")
	n.along, e[3] = c.list(f, "start_indices_batching_dims")
	n.starts, e[4] = c.list(f, "start_index_map")
	var v []int
	if v, e[5] = c.list(f, "index_vector_dim"); len(v) == 1 {
		n.vector = v[0]
	}
	size, e[6] = c.ints("slice_sizes", nil)
	return n, size, join(e[:]...)
}

// check reports numbers that do not fit: shape is the operand's, idx that of the
// indices, out that of the result or the updates.
func (n indexed) check(shape, idx, out []int) error {
	if n.vector < 0 || n.vector > len(idx) || len(n.batching) != len(n.along) {
		return invalid("the dimension numbers do not fit the indices")
	}
	vector := 1
	if n.vector < len(idx) {
		vector = idx[n.vector]
	}
	if vector != len(n.starts) {
		return invalid("%d dimensions for index vectors of %d numbers", len(n.starts), vector)
	}
	for _, d := range slices.Concat(n.collapsed, n.batching, n.starts) {
		if d < 0 || d >= len(shape) {
			return invalid("dimension %d of %d", d, len(shape))
		}
	}
	for _, d := range n.along {
		if d < 0 || d >= len(idx) || d == n.vector {
			return invalid("dimension %d of the indices", d)
		}
	}
	seen := map[int]bool{}
	for _, d := range n.window {
		if d < 0 || d >= len(out) || seen[d] {
			return invalid("dimension %d of the window", d)
		}
		seen[d] = true
	}
	if len(n.free(len(shape))) != len(n.window) {
		return invalid("the window has not the dimensions of the operand")
	}
	batch, other := outside(len(out), n.window), outside(len(idx), []int{n.vector})
	if len(batch) != len(other) {
		return invalid("the indices have %d dimensions, not %d", len(other), len(batch))
	}
	for i, d := range batch {
		if out[d] != idx[other[i]] {
			return invalid("size %d for %d indices", out[d], idx[other[i]])
		}
	}
	return nil
}

// free are the dimensions of the operand that a window has, in order.
func (n indexed) free(rank int) (out []int) {
	for d := range rank {
		if !slices.Contains(n.collapsed, d) && !slices.Contains(n.batching, d) {
			out = append(out, d)
		}
	}
	return out
}

// outside are the dimensions up to rank that are not in list.
func outside(rank int, list []int) (out []int) {
	for d := range rank {
		if !slices.Contains(list, d) {
			out = append(out, d)
		}
	}
	return out
}

// simple reports whether the indices take or replace whole slices across one
// dimension, which is what dm.gather and dm.scatter do.
func (n indexed) simple(shape, size []int) bool {
	if len(n.starts) != 1 || len(n.batching) > 0 || !slices.Equal(n.collapsed, n.starts) {
		return false
	}
	for d := range shape {
		if want := shape[d]; d != n.starts[0] && size[d] != want || d == n.starts[0] && size[d] != 1 {
			return false
		}
	}
	return true
}

// scalars are the indices of vectors of one number, as numbers.
func (c *call) scalars(idx *ir.Value, n indexed) *ir.Value {
	shape, _ := shapeOf(idx)
	if n.vector < len(shape) {
		shape = slices.Delete(slices.Clone(shape), n.vector, n.vector+1)
		idx = c.b.Reshape(idx, dims(shape)...)
	}
	return c.index(idx)
}

// natural is the order of a gather's result where dimension d of the operand is
// replaced by those of the indices: entry i is the dimension of the general form's
// result that is dimension i of it.
func (n indexed) natural(rank, result int) []int {
	batch := outside(result, n.window)
	var order []int
	w := 0
	for d := range rank {
		if d == n.starts[0] {
			order = append(order, batch...)
			continue
		}
		order = append(order, n.window[w])
		w++
	}
	return order
}

// inverse is the permutation that undoes p.
func inverse(p []int) []int {
	out := make([]int, len(p))
	for i, d := range p {
		out[d] = i
	}
	return out
}

func convertGather(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	n, size, err := c.gatherNumbers()
	x, idx := c.in(0), c.in(1)
	shape, err1 := shapeOf(x)
	ishape, err2 := shapeOf(idx)
	t := c.out(0)
	if err := join(err, err1, err2); err != nil {
		return nil, err
	}
	if t == nil || len(size) != len(shape) {
		return nil, invalid("slice_sizes has not an entry for each dimension")
	}
	out, err := sizes(t)
	if err == nil {
		err = n.check(shape, ishape, out)
	}
	if err != nil {
		return nil, err
	}
	for d := range shape {
		if size[d] < 0 || size[d] > shape[d] {
			return nil, invalid("slice size %d of dimension %d", size[d], d)
		}
	}
	for k, d := range n.free(len(shape)) {
		if out[n.window[k]] != size[d] {
			return nil, invalid("size %d of the result for slices of %d", out[n.window[k]], size[d])
		}
	}
	if n.simple(shape, size) {
		v := c.make("gather", []*ir.Value{x, c.scalars(idx, n)}, named("dim", n.starts[0]))
		return one(c.b.Transpose(v, inverse(n.natural(len(shape), len(out)))...))
	}
	flat, err := c.positionsOf(n, shape, size, idx, out, true)
	if err != nil {
		return nil, err
	}
	return one(c.make("gather", []*ir.Value{c.b.Reshape(x, dims([]int{product(shape)})...), flat}, named("dim", 0)))
}

func product(ns []int) int {
	p := 1
	for _, n := range ns {
		p *= n
	}
	return p
}

// positionsOf is the row-major position in the operand of each element of a gather's
// result, or of a scatter's updates, which has the shape out. Starts are clamped such
// that the window lies inside (gather), or a position outside is one past the last
// element (scatter).
func (c *call) positionsOf(n indexed, shape, size []int, idx *ir.Value, out []int, clamp bool) (*ir.Value, error) {
	e := types.I64
	ishape, _ := shapeOf(idx)
	if n.vector == len(ishape) { // scalars are vectors of one number
		ishape = append(slices.Clone(ishape), 1)
		idx = c.b.Reshape(idx, dims(ishape)...)
	}
	idx = c.b.Convert(idx, e)
	batch := outside(len(out), n.window) // dimensions of out that the indices' other dimensions become
	other := outside(len(ishape), []int{n.vector})
	free := n.free(len(shape))
	var flat, off *ir.Value
	stride := product(shape)
	for d, have := range shape {
		if have > 0 {
			stride /= have
		}
		var p *ir.Value
		add := func(v *ir.Value) {
			if p == nil {
				p = v
			} else {
				p = c.b.Binary("add", p, v)
			}
		}
		if k := slices.Index(n.starts, d); k >= 0 {
			start, limit := make([]int, len(ishape)), slices.Clone(ishape)
			start[n.vector], limit[n.vector] = k, k+1
			v := c.slice(idx, start, limit, nil)
			v = c.b.Reshape(v, dims(pick(ishape, other))...)
			if clamp {
				v = c.make("clamp", []*ir.Value{c.scalar(e, 0), v, c.scalar(e, float64(have-size[d]))}, nil)
			}
			add(c.broadcast(v, batch, out))
		}
		if k := slices.Index(n.batching, d); k >= 0 {
			add(c.iota(e, out, batch[slices.Index(other, n.along[k])]))
		}
		if k := slices.Index(free, d); k >= 0 && out[n.window[k]] > 1 {
			add(c.iota(e, out, n.window[k]))
		}
		if p == nil {
			continue
		}
		if !clamp && slices.Contains(n.starts, d) {
			beyond := c.b.Binary("or", c.compare("lt", p, c.scalar(e, 0)), c.compare("ge", p, c.scalar(e, float64(have))))
			if off == nil {
				off = beyond
			} else {
				off = c.b.Binary("or", off, beyond)
			}
		}
		if stride != 1 {
			p = c.b.Binary("mul", p, c.scalar(e, float64(stride)))
		}
		if flat == nil {
			flat = p
		} else {
			flat = c.b.Binary("add", flat, p)
		}
	}
	if flat == nil {
		flat = c.splat(e, 0, out)
	}
	if off != nil {
		flat = c.make("select", []*ir.Value{off, c.scalar(e, float64(product(shape))), flat}, nil)
	}
	return flat, nil
}

func pick(ns, at []int) []int {
	out := make([]int, len(at))
	for i, d := range at {
		out[i] = ns[d]
	}
	return out
}

// iota counts along dimension d of a shape.
func (c *call) iota(e types.Elem, shape []int, d int) *ir.Value {
	return c.make("iota", nil, named("dim", d), &types.Tensor{Elem: e, Shape: dims(shape)})
}

func convertScatter(c *call) ([]*ir.Value, error) {
	count := (len(c.o.Operands) - 1) / 2
	if count < 1 || len(c.o.Operands) != 2*count+1 {
		return nil, invalid("scatter needs inputs, indices and as many updates")
	}
	f := c.attrs
	if text := c.attrs["scatter_dimension_numbers"]; text != "" {
		f = fields(text)
	}
	var n indexed
	var e [6]error
	n.window, e[0] = c.list(f, "update_window_dims")
	n.collapsed, e[1] = c.list(f, "inserted_window_dims")
	n.batching, e[2] = c.list(f, "input_batching_dims")
	n.along, e[3] = c.list(f, "scatter_indices_batching_dims")
	n.starts, e[4] = c.list(f, "scatter_dims_to_operand_dims")
	var v []int
	if v, e[5] = c.list(f, "index_vector_dim"); len(v) == 1 {
		n.vector = v[0]
	}
	if err := join(e[:]...); err != nil {
		return nil, err
	}
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	kinds, ok := combiners(b, count)
	if !ok {
		return nil, unsupported("a scatter whose region combines in another way than add, max, min, mul or the update")
	}
	var results []*ir.Value
	idx := c.in(count)
	for i := range count {
		r, err := c.scatter(n, c.in(i), idx, c.in(count+1+i), kinds[i])
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// combiners are the named functions by which a region combines each of several inputs
// with its update.
func combiners(b *ir.Block, count int) ([]string, bool) {
	if count == 1 {
		kind := combiner(b)
		return []string{kind}, kind != ""
	}
	last := b.Terminator()
	if last == nil || len(last.Operands) != count || len(b.Args) != 2*count {
		return nil, false
	}
	var kinds []string
	for i, v := range last.Operands {
		x, u := b.Args[i], b.Args[count+i]
		switch {
		case v == u:
			kinds = append(kinds, "set")
		case v.Op != nil && len(v.Op.Operands) == 2 && slices.Contains(v.Op.Operands, x) && slices.Contains(v.Op.Operands, u):
			kind := binary[foreign(v.Op)]
			if to := logical[kind]; x.Elem() == types.I1 && to != "" {
				kind = to
			}
			kinds = append(kinds, kind)
		default:
			return nil, false
		}
	}
	return kinds, true
}

func (c *call) scatter(n indexed, x, idx, updates *ir.Value, kind string) (*ir.Value, error) {
	shape, err1 := shapeOf(x)
	ishape, err2 := shapeOf(idx)
	ushape, err3 := shapeOf(updates)
	if err := join(err1, err2, err3, n.check(shape, ishape, ushape)); err != nil {
		return nil, err
	}
	size := make([]int, len(shape))
	for i := range size {
		size[i] = 1
	}
	for k, d := range n.free(len(shape)) {
		if n.window[k] < 0 || n.window[k] >= len(ushape) {
			return nil, invalid("dimension %d of the updates", n.window[k])
		}
		size[d] = ushape[n.window[k]]
	}
	e := x.Elem()
	named1 := kind
	if to := boolean[kind]; to != "" {
		if e != types.I1 {
			return nil, unsupported("a scatter by %s of %s", kind, e)
		}
		named1 = to
		x, updates = c.b.Convert(x, types.I8), c.b.Convert(updates, types.I8)
	}
	if !slices.Contains([]string{"set", "add", "mul", "max", "min"}, named1) {
		return nil, unsupported("a scatter by %s", kind)
	}
	var v *ir.Value
	if n.simple(shape, size) {
		updates = c.b.Transpose(updates, n.natural(len(shape), len(ushape))...)
		v = c.make("scatter", []*ir.Value{x, c.scalars(idx, n), updates}, named("kind", named1, "dim", n.starts[0]))
	} else {
		flat, err := c.positionsOf(n, shape, size, idx, ushape, false)
		if err != nil {
			return nil, err
		}
		all := dims([]int{product(ushape)})
		v = c.make("scatter", []*ir.Value{c.b.Reshape(x, dims([]int{product(shape)})...), c.b.Reshape(flat, all...), c.b.Reshape(updates, all...)}, named("kind", named1, "dim", 0))
		v = c.b.Reshape(v, dims(shape)...)
	}
	return c.b.Convert(v, e), nil
}
