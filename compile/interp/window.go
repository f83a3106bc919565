package interp

import (
	"slices"

	"dmir/dialect/op"
)

// window is how a window moves over the dimensions in; every list has one entry
// for each of them.
type window struct {
	in, size, out         []int
	stride, dilation, low []int
	spread                []int // distance of the elements, with zeros between
}

// window reads the attributes of a window op: how a window of the given size
// moves over dimensions of the given sizes.
func (c *call) window(in, size []int, strides, dilations string) window {
	ones := func(name string) []int {
		l := op.Ints(c.op, name)
		s := make([]int, len(in))
		for i := range s {
			s[i] = 1
			if i < len(l) {
				s[i] = int(l[i])
			}
		}
		return s
	}
	w := window{in: in, size: size, stride: ones(strides), dilation: ones(dilations), spread: ones("lhs_dilation")}
	w.low, w.out = make([]int, len(in)), make([]int, len(in))
	padding := op.Pairs(c.op, "padding")
	for i := range in {
		high := 0
		if i < len(padding) {
			w.low[i], high = int(padding[i][0]), int(padding[i][1])
		}
		free := max((in[i]-1)*w.spread[i]+1, 0) + w.low[i] + high - (size[i]-1)*w.dilation[i] - 1
		if free >= 0 {
			w.out[i] = free/w.stride[i] + 1
		}
	}
	return w
}

// clipped is w without the taps that lie in the padding at every position.
func (w window) clipped() window {
	c := w.part(0, len(w.in))
	c.size, c.low = slices.Clone(w.size), slices.Clone(w.low)
	for d, n := range w.in {
		last := (n - 1) * w.spread[d]
		from := max(0, ceilDiv(w.low[d]-(w.out[d]-1)*w.stride[d], w.dilation[d]))
		until := min(w.size[d], floorDiv(w.low[d]+last, w.dilation[d])+1)
		c.size[d], c.low[d] = max(0, until-from), w.low[d]-from*w.dilation[d]
	}
	return c
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

func ceilDiv(a, b int) int { return -floorDiv(-a, b) }

// taps is, for every position of the window in row-major order and every tap of
// it, the element of a plane that it reads; -1 in the padding.
func (w window) taps() []int {
	positions, taps := product(w.out), product(w.size)
	all := make([]int, positions*taps)
	rank := len(w.in)
	pos, tap := make([]int, rank), make([]int, rank)
	for i := range all {
		at := 0
		for d := range rank {
			x := pos[d]*w.stride[d] + tap[d]*w.dilation[d] - w.low[d]
			if x < 0 || x%w.spread[d] != 0 || x/w.spread[d] >= w.in[d] {
				at = -1
				break
			}
			at = at*w.in[d] + x/w.spread[d]
		}
		all[i] = at
		if !next(tap, w.size) {
			next(pos, w.out)
		}
	}
	return all
}

// next increments idx in row-major order; false when it wraps to zero.
func next(idx, shape []int) bool {
	for d := len(idx) - 1; d >= 0; d-- {
		idx[d]++
		if idx[d] < shape[d] {
			return true
		}
		idx[d] = 0
	}
	return false
}

// moving is the range of dimensions outside of which the window has size 1 and
// moves everywhere.
func (w window) moving() (from, until int) {
	still := func(d int) bool {
		return w.size[d] == 1 && w.stride[d] == 1 && w.low[d] == 0 && w.out[d] == w.in[d]
	}
	until = len(w.in)
	for from < until && still(from) {
		from++
	}
	for until > from && still(until-1) {
		until--
	}
	return from, until
}

// part is the window over dimensions [from, until) only.
func (w window) part(from, until int) window {
	return window{
		in: w.in[from:until], size: w.size[from:until], out: w.out[from:until],
		stride: w.stride[from:until], dilation: w.dilation[from:until], low: w.low[from:until],
		spread: w.spread[from:until],
	}
}
