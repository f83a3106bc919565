package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// still reports whether the window does not leave its element along dimension i: what a
// device has of x there is all that it needs for its piece of the result.
func (w *window) still(i int) bool {
	return w.Size[i] == 1 && w.Stride[i] == 1 && w.spread(i) == 1 && w.Padding[i] == [2]int64{}
}

// covers reports whether the window, that of a convolution, is the whole of dimension d of x and nothing else: it is summed
// over, as a channel is.
func (w *window) covers(x *types.Tensor, d int) bool {
	i := d - 2
	n, ok := x.Shape[d].Int()
	return ok && n > 1 && n == w.Size[i] && w.Dilation[i] == 1 && w.spread(i) == 1 && w.Padding[i] == [2]int64{}
}

// Covers reports whether dimension d of the image of o, a dm.convolution, is one that its window covers.
func Covers(o *ir.Op, d int) bool {
	w, p := convolutionWindow(o)
	return p == nil && d >= 2 && w.covers(in(o, 0), d)
}

// convolutionFactors are the samples, the channels and the dimensions along which no window moves, or that it covers.
func convolutionFactors(o *ir.Op) *Factors {
	x, w := in(o, 0), in(o, 1)
	groups := dim.Const(Int(o, "feature_group_count"))
	per, ok := w.Shape[0].Div(groups)
	win, p := convolutionWindow(o)
	if p != nil {
		return nil
	}
	f := newFactors(o)
	xs, ws, ys := f.Operands[0], f.Operands[1], f.Results[0]
	n := f.factor(x.Shape[0], Parallel)
	xs[0], ys[0] = []int{n}, []int{n}
	if ok {
		g, out, sum := f.factor(groups, Parallel), f.factor(per, Parallel), f.factor(w.Shape[1], Reduced)
		xs[1], ws[0], ws[1], ys[1] = []int{g, sum}, []int{g, out}, []int{sum}, []int{g, out}
	}
	for i := range win.Size {
		switch {
		case win.still(i):
			n := f.factor(x.Shape[2+i], Parallel)
			xs[2+i], ys[2+i] = []int{n}, []int{n}
		case win.covers(x, 2+i):
			n := f.factor(x.Shape[2+i], Reduced)
			xs[2+i], ws[2+i] = []int{n}, []int{n}
		}
	}
	return f
}

// convolutionPiece has as many groups as its channels fill.
func convolutionPiece(piece, whole *ir.Op) {
	groups, ok := in(piece, 0).Shape[1].Div(in(piece, 1).Shape[1])
	if n, known := groups.Int(); ok && known && whole.Attr("feature_group_count") != nil {
		piece.SetAttr("feature_group_count", types.Int{V: n})
	}
}

// windowFactors is the rule of ops with the window of a dm.reduce_window.
func windowFactors(o *ir.Op) *Factors {
	w, p := reduceWindow(o)
	if p != nil {
		return nil
	}
	return alike(o, func(d int) bool { return !w.still(d) })
}
