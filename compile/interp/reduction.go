package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func reductionExecutors() map[string]executor {
	return map[string]executor{
		"dm.reduce":             runReduce,
		"dm.reduce_window":      runReduceWindow,
		"dm.select_and_scatter": runSelectAndScatter,
		"dm.cumsum":             runCumsum,
		"dm.cumprod":            runCumprod,
		"dm.cummax":             runCummax,
		"dm.mean":               runMean,
		"dm.variance":           runVariance,
		"dm.logsumexp":          runLogSumExp,
	}
}

// dims is the dimensions in attribute name for a tensor of the given rank.
func (c *call) dims(name string, rank int) ([]int, *Error) {
	d, ok := op.Dims(c.op, name, rank)
	if !ok {
		return nil, c.errorf("DM704", "%s = %v are not dimensions of a tensor of rank %d", name, op.Ints(c.op, name), rank)
	}
	return d, nil
}

// dim is the dimension in attribute dim.
func (c *call) dim(rank int) (int, *Error) {
	d, ok := op.Dim(c.op, "dim", rank)
	if !ok {
		return 0, c.errorf("DM704", "dim = %d is not a dimension of a tensor of rank %d", op.Int(c.op, "dim"), rank)
	}
	return d, nil
}

func runReduce(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	slices.Sort(dims)
	shape := []int{}
	for d, n := range x.Shape {
		switch {
		case !slices.Contains(dims, d):
			shape = append(shape, n)
		case op.Bool(c.op, "keep_dims"):
			shape = append(shape, 1)
		}
	}
	named := op.Str(c.op, "kind") != ""
	outer, n, inner := 1, 1, 1
	if named && adjacent(dims) {
		first := dims[0]
		outer, n, inner = product(x.Shape[:first]), product(x.Shape[first:first+len(dims)]), product(x.Shape[first+len(dims):])
	} else {
		perm, _ := lastly(x.Rank(), dims...)
		for _, d := range dims {
			n *= x.Shape[d]
		}
		x = permuted(c.pool, x, perm)
		outer = product(shape)
	}
	if named {
		half := op.Str(c.op, "accumulate") == "f16"
		return one(reduceTensor(c.pool, op.Str(c.op, "kind"), x, outer, n, inner, half, c.outElem(0), shape)), nil
	}
	if len(c.in) < 2 || c.in[1].Elem != x.Elem || c.in[1].Len() != 1 {
		return nil, c.errorf("DM704", "a reduction with a region needs an initial value of %s", x.Elem)
	}
	y, e := c.reduceRegion(x.Reshape(outer*n), outer, n, c.in[1])
	if e != nil {
		return nil, e
	}
	return one(y.Reshape(shape...)), nil
}

// adjacent reports whether sorted dimensions follow each other without gaps.
func adjacent(dims []int) bool {
	return len(dims) > 0 && dims[len(dims)-1]-dims[0] == len(dims)-1
}

// runReduceWindow copies the elements of every window to a row and reduces it.
// Leading and trailing dimensions over which the window does not move are not
// part of it.
func runReduceWindow(c *call) ([]*tensor.Tensor, error) {
	x, kind := c.in[0], op.Str(c.op, "kind")
	sizes := op.Ints(c.op, "window_dimensions")
	if len(sizes) != x.Rank() {
		return nil, c.errorf("DM704", "a window of %d dimensions over %s", len(sizes), x.Type())
	}
	size := make([]int, len(sizes))
	for i, n := range sizes {
		size[i] = int(n)
	}
	w := c.window(x.Shape, size, "window_strides", "window_dilations")
	to := tensor.New(c.outElem(0), w.out...)
	from, until := w.moving()
	outer, inner := product(x.Shape[:from]), product(x.Shape[until:])
	w = w.part(from, until).clipped()
	switch x.Kind() {
	case tensor.KindF32:
		f := newReducer[float32, float64](kind, x.Elem)
		reduceWindows(c.pool, x.F32, w, outer, inner, f, func(i int, v float64) { to.SetFloat(i, v) })
	case tensor.KindF64:
		f := newReducer[float64, float64](kind, x.Elem)
		reduceWindows(c.pool, x.F64, w, outer, inner, f, func(i int, v float64) { to.SetFloat(i, v) })
	case tensor.KindInt:
		data, flip := signedOrder(x, kind)
		elem := x.Elem
		if flip != 0 {
			elem = types.I64
		}
		f := newReducer[int64, int64](kind, elem)
		reduceWindows(c.pool, data, w, outer, inner, f, func(i int, v int64) { to.SetInt(i, v^flip) })
	default:
		return nil, c.errorf("DM703", "%s is not defined on %s", c.op.Name, x.Elem)
	}
	return one(to), nil
}

func reduceWindows[T number, A float64 | int64](p *pool, x []T, w window, outer, inner int, f reducer[T, A], set func(i int, v A)) {
	taps := w.taps()
	n, plane, positions := product(w.size), product(w.in), product(w.out)
	p.parallel(outer*positions, max(1, elements/(1+n*inner)), func(lo, hi int) {
		acc := make([]A, inner)
		for i := lo; i < hi && !p.stopped(); i++ {
			for j := range acc {
				acc[j] = f.init
			}
			for _, at := range taps[i%positions*n:][:n] {
				if at >= 0 {
					f.cols(acc, x[(i/positions*plane+at)*inner:][:inner])
				}
			}
			for j, v := range acc {
				set(i*inner+j, v)
			}
		}
	})
}

// rowwise computes a tensor of x's type and shape along attribute dim: start is
// called with both tensors, in which that dimension is last and of size n, and
// returns the function that computes row r.
func (c *call) rowwise(start func(to, x *tensor.Tensor, n int) func(r int)) ([]*tensor.Tensor, error) {
	x := c.in[0]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	perm, inverse := lastly(x.Rank(), d)
	x = permuted(c.pool, x, perm)
	to := tensor.New(x.Elem, x.Shape...)
	c.eachRow(to.Len(), x.Shape[x.Rank()-1], start(to, x, x.Shape[x.Rank()-1]))
	return one(permuted(c.pool, to, inverse)), nil
}

// eachRow calls f for every row of n of the total number of elements.
func (c *call) eachRow(total, n int, f func(r int)) {
	if n == 0 {
		return
	}
	c.parallel(total/n, max(1, elements/n), func(lo, hi int) {
		for r := lo; r < hi && !c.stopped(); r++ {
			f(r)
		}
	})
}
