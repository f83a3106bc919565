package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runSelectAndScatter adds in float64 and rounds once.
func runSelectAndScatter(c *call) ([]*tensor.Tensor, error) {
	x, source := c.in[0], c.in[1]
	sizes := op.Ints(c.op, "window_dimensions")
	if len(sizes) != x.Rank() {
		return nil, c.errorf("DM704", "a window of %d dimensions over %s", len(sizes), x.Type())
	}
	size := make([]int, len(sizes))
	for i, n := range sizes {
		size[i] = int(n)
	}
	w := c.window(x.Shape, size, "window_strides", "window_dilations")
	if !slices.Equal(w.out, source.Shape) {
		return nil, c.errorf("DM704", "source %s where the window has %v positions", source.Type(), w.out)
	}
	from, until := w.moving()
	outer, inner := product(x.Shape[:from]), product(x.Shape[until:])
	w = w.part(from, until)
	taps, n := w.taps(), product(w.size)
	plane, positions := product(w.in), product(w.out)
	sign := 1.0
	if op.Str(c.op, "kind") == "min" {
		sign = -1
	}
	to := tensor.New(x.Elem, x.Shape...)
	c.parallel(outer*inner, max(1, elements/(1+n*positions)), func(lo, hi int) {
		sums := make([]float64, plane)
		for i := lo; i < hi && !c.stopped(); i++ {
			at := func(k int) int { return (i/inner*plane+k)*inner + i%inner }
			clear(sums)
			for p := range positions {
				best, most := -1, 0.0
				for _, k := range taps[p*n : (p+1)*n] {
					if k < 0 {
						continue
					}
					v := sign * x.Float(at(k))
					if best < 0 || v > most || v != v && most == most {
						best, most = k, v
					}
				}
				if best >= 0 {
					sums[best] += source.Float((i/inner*positions+p)*inner + i%inner)
				}
			}
			for k, v := range sums {
				to.SetFloat(at(k), v)
			}
		}
	})
	return one(to), nil
}
