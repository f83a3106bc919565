package interp

import (
	"slices"

	"dmir/compile/tensor"
)

// view is a box of a tensor's elements: its offset and the stride of each of
// its dimensions, which may be 0 or negative.
type view struct {
	t       *tensor.Tensor
	at      int
	strides []int
}

// viewOf is the view of all of t.
func viewOf(t *tensor.Tensor) view { return view{t, 0, tensor.Strides(t.Shape)} }

// move copies a box of the given shape; both views are of the same kind of
// storage. Every op that only rearranges elements is one or a few moves.
func move(p *pool, to, from view, shape []int) {
	switch to.t.Kind() {
	case tensor.KindF32:
		moveOn(p, to.t.F32, from.t.F32, to, from, shape)
	case tensor.KindF64:
		moveOn(p, to.t.F64, from.t.F64, to, from, shape)
	case tensor.KindInt:
		moveOn(p, to.t.Int, from.t.Int, to, from, shape)
	case tensor.KindBool:
		moveOn(p, to.t.Bool, from.t.Bool, to, from, shape)
	}
}

func moveOn[T any](p *pool, dst, src []T, to, from view, shape []int) {
	if product(shape) == 0 {
		return
	}
	shape, ds, ss := merge(shape, to.strides, from.strides)
	// The two innermost loops are tiled: one along the destination's densest
	// dimension, one along the source's, so that both use whole cache lines.
	rank := len(shape)
	cols := rank - 1
	rows := rank - 2
	for d := range rank - 1 {
		if ss[d] == 1 || ss[d] == -1 {
			rows = d
		}
	}
	if ss[cols] == 1 || ss[cols] == 0 {
		rows = rank - 2
	}
	var outer, od, os []int
	for d := range rank {
		if d != rows && d != cols {
			outer, od, os = append(outer, shape[d]), append(od, ds[d]), append(os, ss[d])
		}
	}
	n, m := shape[rows], shape[cols]
	const tile = 32
	strips := (n + tile - 1) / tile
	p.parallel(product(outer)*strips, max(1, elements/(tile*m)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			d, s := to.at, from.at
			for k, r := len(outer)-1, i/strips; k >= 0; k-- {
				d += r % outer[k] * od[k]
				s += r % outer[k] * os[k]
				r /= outer[k]
			}
			r0 := i % strips * tile
			r1 := min(r0+tile, n)
			copyStrip(dst, src, d, s, r0, r1, m, ds[rows], ss[rows], ds[cols], ss[cols])
		}
	})
}

func copyStrip[T any](dst, src []T, d, s, r0, r1, m, dr, sr, dc, sc int) {
	if dc == 1 && sc == 1 {
		for r := r0; r < r1; r++ {
			copy(dst[d+r*dr:][:m], src[s+r*sr:])
		}
		return
	}
	const tile = 32
	for c0 := 0; c0 < m; c0 += tile {
		c1 := min(c0+tile, m)
		for r := r0; r < r1; r++ {
			a, b := d+r*dr+c0*dc, s+r*sr+c0*sc
			for range c1 - c0 {
				dst[a] = src[b]
				a += dc
				b += sc
			}
		}
	}
}

// merge drops dimensions of size 1 and merges neighbours that are contiguous on
// both sides; at least two dimensions are left.
func merge(shape, a, b []int) (dims, as, bs []int) {
	for d, n := range shape {
		if n == 1 {
			continue
		}
		last := len(dims) - 1
		if last >= 0 && as[last] == n*a[d] && bs[last] == n*b[d] {
			dims[last] *= n
			as[last], bs[last] = a[d], b[d]
			continue
		}
		dims, as, bs = append(dims, n), append(as, a[d]), append(bs, b[d])
	}
	for len(dims) < 2 {
		dims, as, bs = slices.Insert(dims, 0, 1), slices.Insert(as, 0, 1), slices.Insert(bs, 0, 1)
	}
	return dims, as, bs
}

// permuted is a copy of x with its dimensions in the order perm; x itself where
// that changes nothing.
func permuted(p *pool, x *tensor.Tensor, perm []int) *tensor.Tensor {
	shape, strides, own := make([]int, len(perm)), make([]int, len(perm)), tensor.Strides(x.Shape)
	same := true
	for i, d := range perm {
		shape[i], strides[i] = x.Shape[d], own[d]
		same = same && i == d
	}
	if same {
		return x
	}
	to := tensor.New(x.Elem, shape...)
	move(p, viewOf(to), view{x, 0, strides}, shape)
	return to
}

// lastly is the permutation that moves the dimensions dims, in their order,
// after the others, and its inverse.
func lastly(rank int, dims ...int) (perm, inverse []int) {
	for d := range rank {
		if !slices.Contains(dims, d) {
			perm = append(perm, d)
		}
	}
	perm = append(perm, dims...)
	inverse = make([]int, rank)
	for i, d := range perm {
		inverse[d] = i
	}
	return perm, inverse
}
