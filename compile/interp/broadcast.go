package interp

import (
	"slices"

	"dmir/compile/tensor"
)

// broadcastShape is NumPy's common shape; ok is false where there is none.
func broadcastShape(shapes ...[]int) (shape []int, ok bool) {
	for _, s := range shapes {
		if len(s) > len(shape) {
			shape = append(slices.Repeat([]int{1}, len(s)-len(shape)), shape...)
		}
		off := len(shape) - len(s)
		for i, d := range s {
			switch {
			case shape[off+i] == 1:
				shape[off+i] = d
			case d != 1 && d != shape[off+i]:
				return nil, false
			}
		}
	}
	if shape == nil {
		shape = []int{}
	}
	return shape, true
}

// common is the broadcast shape of the call's operands from number first on.
func (c *call) common(first int) ([]int, *Error) {
	shapes := make([][]int, 0, len(c.in))
	for _, t := range c.in[first:] {
		shapes = append(shapes, t.Shape)
	}
	shape, ok := broadcastShape(shapes...)
	if !ok {
		return nil, c.errorf("DM704", "shapes %v do not broadcast", shapes)
	}
	return shape, nil
}

// broadcastStrides is the strides with which a row-major tensor of shape from
// is read as one of shape to: 0 where it is repeated.
func broadcastStrides(from, to []int) []int {
	s := make([]int, len(to))
	own := tensor.Strides(from)
	off := len(to) - len(from)
	for i, d := range from {
		if d != 1 || to[off+i] == 1 {
			s[off+i] = own[i]
		}
	}
	return s
}

// lanes is the length of the pieces of element-wise loops, short enough that a
// piece of every operand stays in the level-1 cache.
const lanes = 1024

// pieces splits the elements of shape into pieces of at most lanes that each
// operand reads with step 1 or 0. Every goroutine calls start once, and then
// the function it returns for each of its pieces: n elements from number at of
// the result, from[k] and step[k] of operand k.
func (p *pool) pieces(shape []int, operands [][]int, start func() func(at, n int, from, step []int)) {
	dims, strides := collapse(shape, operands)
	inner := dims[len(dims)-1]
	outer := 1
	for _, d := range dims[:len(dims)-1] {
		outer *= d
	}
	parts := (inner + lanes - 1) / lanes // of each row
	p.parallel(outer*parts, max(1, elements/max(1, min(inner, lanes))), func(lo, hi int) {
		f := start()
		from := make([]int, len(strides))
		base := make([]int, len(strides))
		step := make([]int, len(strides))
		for k, s := range strides {
			step[k] = s[len(dims)-1]
		}
		idx := make([]int, len(dims)-1)
		row := lo / max(1, parts)
		for d, r := len(idx)-1, row; d >= 0; d-- {
			idx[d] = r % dims[d]
			r /= dims[d]
			for k := range strides {
				base[k] += idx[d] * strides[k][d]
			}
		}
		for i := lo; i < hi; i++ {
			part := i % parts
			j := part * lanes
			for k := range from {
				from[k] = base[k] + j*step[k]
			}
			f(i/parts*inner+j, min(lanes, inner-j), from, step)
			if part < parts-1 {
				continue
			}
			for d := len(idx) - 1; d >= 0; d-- {
				idx[d]++
				for k := range base {
					base[k] += strides[k][d]
				}
				if idx[d] < dims[d] {
					break
				}
				for k := range base {
					base[k] -= dims[d] * strides[k][d]
				}
				idx[d] = 0
			}
		}
	})
}

// collapse merges neighbouring dimensions that are contiguous in every operand,
// drops those of size 1, and makes the step of the last dimension 0 or 1.
func collapse(shape []int, operands [][]int) (dims []int, strides [][]int) {
	strides = make([][]int, len(operands))
	full := make([][]int, len(operands))
	for k, s := range operands {
		full[k] = broadcastStrides(s, shape)
	}
	for d, n := range shape {
		if n == 1 {
			continue
		}
		last := len(dims) - 1
		merge := last >= 0
		for k := range full {
			merge = merge && strides[k][last] == n*full[k][d]
		}
		if merge {
			dims[last] *= n
			for k := range full {
				strides[k][last] = full[k][d]
			}
			continue
		}
		dims = append(dims, n)
		for k := range full {
			strides[k] = append(strides[k], full[k][d])
		}
	}
	if len(dims) == 0 {
		dims = []int{1}
		for k := range strides {
			strides[k] = []int{1}
		}
	}
	return dims, strides
}

// lane is n elements of x from number from on, or n copies of one where step is 0.
func lane[T any](x []T, from, step, n int, scratch []T) []T {
	if step == 1 {
		return x[from : from+n]
	}
	s := scratch[:n]
	v := x[from]
	for i := range s {
		s[i] = v
	}
	return s
}

type number interface {
	float32 | float64 | int64 | uint8
}

// map1 applies f to every element of x.
func map1[T, U number](p *pool, to, x *tensor.Tensor, f func(to []U, x []T)) {
	dst, src := storage[U](to), storage[T](x)
	p.parallel(len(dst), elements, func(lo, hi int) {
		for ; lo < hi; lo += lanes {
			end := min(lo+lanes, hi)
			f(dst[lo:end], src[lo:end])
			narrow(to.Elem, dst[lo:end])
		}
	})
}

// map2 applies f to the elements of two broadcast operands.
func map2[T, U number](p *pool, to, x, y *tensor.Tensor, f func(to []U, x, y []T)) {
	dst, xs, ys := storage[U](to), storage[T](x), storage[T](y)
	p.pieces(to.Shape, [][]int{x.Shape, y.Shape}, func() func(at, n int, from, step []int) {
		var bx, by [lanes]T
		return func(at, n int, from, step []int) {
			d := dst[at : at+n]
			f(d, lane(xs, from[0], step[0], n, bx[:]), lane(ys, from[1], step[1], n, by[:]))
			narrow(to.Elem, d)
		}
	})
}

// map3 applies f to the elements of three broadcast operands, the first of
// which may be of another kind.
func map3[S, T number](p *pool, to, s, x, y *tensor.Tensor, f func(to []T, s []S, x, y []T)) {
	dst, ss, xs, ys := storage[T](to), storage[S](s), storage[T](x), storage[T](y)
	p.pieces(to.Shape, [][]int{s.Shape, x.Shape, y.Shape}, func() func(at, n int, from, step []int) {
		var bs [lanes]S
		var bx, by [lanes]T
		return func(at, n int, from, step []int) {
			d := dst[at : at+n]
			f(d, lane(ss, from[0], step[0], n, bs[:]), lane(xs, from[1], step[1], n, bx[:]), lane(ys, from[2], step[2], n, by[:]))
			narrow(to.Elem, d)
		}
	})
}
