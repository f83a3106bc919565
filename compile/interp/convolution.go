package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runConvolution copies the windows to columns (im2col), one image and group at
// a time, and multiplies the filters with them.
func runConvolution(c *call) ([]*tensor.Tensor, error) {
	acc := c.accumulator()
	x, w := c.widened(c.in[0], acc), c.widened(c.in[1], acc)
	if x.Rank() < 3 || w.Rank() != x.Rank() {
		return nil, c.errorf("DM704", "convolution of %s and %s", x.Type(), w.Type())
	}
	win := c.window(x.Shape[2:], w.Shape[2:], "window_strides", "rhs_dilation")
	groups := int(op.Int(c.op, "feature_group_count"))
	outC, inC := w.Shape[0]/max(groups, 1), w.Shape[1]
	if outC*groups != w.Shape[0] || inC*groups != x.Shape[1] {
		return nil, c.errorf("DM704", "%d groups do not fit %s and %s", groups, x.Type(), w.Type())
	}
	space, window := product(win.out), product(win.size)
	to := tensor.New(c.outElem(0), append([]int{x.Shape[0], w.Shape[0]}, win.out...)...)
	plane := product(win.in)
	taps := win.taps()
	depth := inC * window
	// A block of output positions at a time keeps the columns small.
	const most = 1 << 22
	block := max(1, min(space, most/max(1, depth)))
	for n := range x.Shape[0] {
		for g := range groups {
			base := (n*x.Shape[1] + g*inC) * plane
			for lo := 0; lo < space && !c.stopped(); lo += block {
				hi := min(lo+block, space)
				cols := tensor.New(acc.elem, depth, hi-lo)
				c.im2col(cols, x, base, plane, inC, taps[lo*window:hi*window], window)
				c.multiply(to, w, cols, layout{
					aB: []int{g * outC * depth}, aM: offsets([]int{outC}, []int{depth}), aK: offsets([]int{depth}, []int{1}),
					bB: []int{0}, bK: offsets([]int{depth}, []int{hi - lo}), bN: offsets([]int{hi - lo}, []int{1}),
					cB: []int{(n*w.Shape[0]+g*outC)*space + lo}, cM: offsets([]int{outC}, []int{space}), cN: offsets([]int{hi - lo}, []int{1}),
				}, acc)
			}
		}
	}
	return one(to), nil
}

func (c *call) im2col(cols, x *tensor.Tensor, base, plane, channels int, taps []int, window int) {
	n := len(taps) / window
	c.parallel(channels*window, 1+elements/max(1, n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			from, tap := base+r/window*plane, r%window
			for p := range n {
				at := taps[p*window+tap]
				if at < 0 {
					continue // padding: zero already
				}
				switch {
				case cols.F32 != nil:
					cols.F32[r*n+p] = x.F32[from+at]
				case cols.F64 != nil:
					cols.F64[r*n+p] = x.F64[from+at]
				default:
					cols.Int[r*n+p] = x.Int[from+at]
				}
			}
		}
	})
}
