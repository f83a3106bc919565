package interp

import (
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func indexingExecutors() map[string]executor {
	return map[string]executor{
		"dm.gather":               runGather,
		"dm.embedding":            runEmbedding,
		"dm.scatter":              runScatter,
		"dm.dynamic_slice":        runDynamicSlice,
		"dm.dynamic_update_slice": runDynamicUpdateSlice,
	}
}

// position is index v of type elem as a number; a ui64 beyond int64 is the largest.
func position(elem types.Elem, v int64) int64 {
	if v < 0 && elem == types.UI64 {
		return math.MaxInt64
	}
	return v
}

// clamped is the indices in t clamped to [0, n).
func (c *call) clamped(t *tensor.Tensor, n int) ([]int64, *Error) {
	if n == 0 && t.Len() > 0 {
		return nil, c.errorf("DM707", "a dimension of size 0 cannot be indexed")
	}
	idx := make([]int64, len(t.Int))
	for i, v := range t.Int {
		idx[i] = min(max(position(t.Elem, v), 0), int64(n-1))
	}
	return idx, nil
}

// picking is the geometry of gather and scatter: x is [batch, outer, n, inner],
// the indices [batch, count], the slices [batch, outer, count, inner].
type picking struct {
	batch, outer, n, inner, count int
	shape                         []int // of the slices
}

func (c *call) picking(x, idx *tensor.Tensor, d, batch int) (picking, *Error) {
	if batch < 0 || batch > d || batch > idx.Rank() || !slices.Equal(x.Shape[:batch], idx.Shape[:batch]) {
		return picking{}, c.errorf("DM704", "%s and indices %s do not share %d batch dimensions", x.Type(), idx.Type(), batch)
	}
	g := picking{
		batch: product(x.Shape[:batch]), outer: product(x.Shape[batch:d]), n: x.Shape[d], inner: product(x.Shape[d+1:]),
		count: product(idx.Shape[batch:]),
	}
	g.shape = slices.Concat(x.Shape[:d], idx.Shape[batch:], x.Shape[d+1:])
	return g, nil
}

func runGather(c *call) ([]*tensor.Tensor, error) {
	d, err := c.dim(c.in[0].Rank())
	if err != nil {
		return nil, err
	}
	return c.gather(d, int(op.Int(c.op, "batch_dims")))
}

func runEmbedding(c *call) ([]*tensor.Tensor, error) {
	if c.in[0].Rank() != 2 {
		return nil, c.errorf("DM704", "a table must have two dimensions, not those of %s", c.in[0].Type())
	}
	return c.gather(0, 0)
}

func (c *call) gather(d, batch int) ([]*tensor.Tensor, error) {
	x, idx := c.in[0], c.in[1]
	g, err := c.picking(x, idx, d, batch)
	if err != nil {
		return nil, err
	}
	to := tensor.New(x.Elem, g.shape...)
	if g.n == 0 {
		return one(to), nil
	}
	at, err := c.clamped(idx, g.n)
	if err != nil {
		return nil, err
	}
	switch x.Kind() {
	case tensor.KindF32:
		pick(c.pool, to.F32, x.F32, at, g)
	case tensor.KindF64:
		pick(c.pool, to.F64, x.F64, at, g)
	case tensor.KindInt:
		pick(c.pool, to.Int, x.Int, at, g)
	case tensor.KindBool:
		pick(c.pool, to.Bool, x.Bool, at, g)
	}
	return one(to), nil
}

func pick[T any](p *pool, to, x []T, idx []int64, g picking) {
	p.parallel(g.batch*g.outer*g.count, max(1, elements/(1+g.inner)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			bo, at := i/g.count, i%g.count
			row := bo*g.n + int(idx[bo/g.outer*g.count+at])
			copy(to[i*g.inner:][:g.inner], x[row*g.inner:])
		}
	})
}

// runScatter drops updates whose index is out of range.
func runScatter(c *call) ([]*tensor.Tensor, error) {
	x, idx, upd := c.in[0], c.in[1], c.in[2]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	g, err := c.picking(x, idx, d, int(op.Int(c.op, "batch_dims")))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(g.shape, upd.Shape) || x.Elem != upd.Elem {
		return nil, c.errorf("DM704", "updates %s do not fit %s at indices %s", upd.Type(), x.Type(), idx.Type())
	}
	to := tensor.New(x.Elem, x.Shape...)
	move(c.pool, viewOf(to), viewOf(x), x.Shape)
	at := make([]int64, idx.Len())
	for i, v := range idx.Int {
		at[i] = position(idx.Elem, v)
	}
	b, set := binaries[op.Str(c.op, "kind")], op.Str(c.op, "kind") == "set"
	ints := b.ints
	if x.Elem == types.UI64 && b.uints != nil {
		ints = b.uints
	}
	switch x.Kind() {
	case tensor.KindF32:
		place(c.pool, to.F32, upd.F32, at, g, combine(set, b.f32))
		c.parallel(to.Len(), elements, func(lo, hi int) { narrow(to.Elem, to.F32[lo:hi]) })
	case tensor.KindF64:
		place(c.pool, to.F64, upd.F64, at, g, combine(set, b.f64))
	case tensor.KindInt:
		place(c.pool, to.Int, upd.Int, at, g, combine(set, ints))
		c.parallel(to.Len(), elements, func(lo, hi int) { narrow(to.Elem, to.Int[lo:hi]) })
	case tensor.KindBool:
		place(c.pool, to.Bool, upd.Bool, at, g, combine(set, b.bools))
	}
	return one(to), nil
}

func combine[T any](set bool, f func(to, x, y []T)) func(to, u []T) {
	if set {
		return func(to, u []T) { copy(to, u) }
	}
	return func(to, u []T) { f(to, to, u) }
}

// place applies the updates in row-major order. Threads split the dimensions
// other than the indexed one, so that updates of one element keep their order.
func place[T any](p *pool, to, upd []T, idx []int64, g picking, f func(to, u []T)) {
	blocks := max(1, (g.inner+lanes-1)/lanes)
	p.parallel(g.batch*g.outer*blocks, max(1, elements/(1+g.count*min(g.inner, lanes))), func(lo, hi int) {
		for i := lo; i < hi && !p.stopped(); i++ {
			bo, j0 := i/blocks, i%blocks*lanes
			j1 := min(j0+lanes, g.inner)
			for at := range g.count {
				k := idx[bo/g.outer*g.count+at]
				if k < 0 || k >= int64(g.n) {
					continue
				}
				row := bo*g.n + int(k)
				f(to[row*g.inner+j0:row*g.inner+j1], upd[(bo*g.count+at)*g.inner+j0:(bo*g.count+at)*g.inner+j1])
			}
		}
	})
}

// starts reads the scalar start indices, operands first and up, clamped so that
// a part of the given sizes lies inside shape.
func (c *call) starts(first int, shape, sizes []int) ([]int, *Error) {
	if len(c.in)-first != len(shape) {
		return nil, c.errorf("DM704", "%d start positions given for %d dimensions", len(c.in)-first, len(shape))
	}
	at := make([]int, len(shape))
	for d := range shape {
		t := c.in[first+d]
		if t.Len() != 1 {
			return nil, c.errorf("DM704", "a start position must be a scalar, not %s", t.Type())
		}
		if sizes[d] > shape[d] {
			return nil, c.errorf("DM704", "a slice of %v does not fit into %v", sizes, shape)
		}
		v := position(t.Elem, t.Integer(0))
		at[d] = int(min(max(v, 0), int64(shape[d]-sizes[d])))
	}
	return at, nil
}

func runDynamicSlice(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	sizes := slices.Clone(x.Shape)
	for d, n := range op.Ints(c.op, "slice_sizes") {
		if n >= 0 && d < len(sizes) {
			sizes[d] = int(n)
		}
	}
	at, err := c.starts(1, x.Shape, sizes)
	if err != nil {
		return nil, err
	}
	from := viewOf(x)
	for d, n := range at {
		from.at += n * from.strides[d]
	}
	to := tensor.New(x.Elem, sizes...)
	move(c.pool, viewOf(to), from, sizes)
	return one(to), nil
}

func runDynamicUpdateSlice(c *call) ([]*tensor.Tensor, error) {
	x, upd := c.in[0], c.in[1]
	if upd.Rank() != x.Rank() || upd.Elem != x.Elem {
		return nil, c.errorf("DM704", "update %s of %s", upd.Type(), x.Type())
	}
	at, err := c.starts(2, x.Shape, upd.Shape)
	if err != nil {
		return nil, err
	}
	to := tensor.New(x.Elem, x.Shape...)
	move(c.pool, viewOf(to), viewOf(x), x.Shape)
	part := viewOf(to)
	for d, n := range at {
		part.at += n * part.strides[d]
	}
	move(c.pool, part, viewOf(upd), upd.Shape)
	return one(to), nil
}
