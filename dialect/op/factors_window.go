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

// convolutionFactors are the samples, the channels and the dimensions along which no window moves.
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
		if win.still(i) {
			n := f.factor(x.Shape[2+i], Parallel)
			xs[2+i], ys[2+i] = []int{n}, []int{n}
		}
	}
	return f
}

// convolutionPiece has as many groups as its channels fill.
func convolutionPiece(piece, _ *ir.Op) {
	groups, ok := in(piece, 0).Shape[1].Div(in(piece, 1).Shape[1])
	if n, known := groups.Int(); ok && known {
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

// attentionFactors are the batch, the heads and, where no score depends on its query's
// place, the queries.
func attentionFactors(o *ir.Op) *Factors {
	if Float(o, "dropout") > 0 {
		return nil // drawn by the place of the score
	}
	q, k := in(o, 0), in(o, 1)
	n := q.Rank()
	f := newFactors(o)
	keyed := func(i int) bool { return i == 1 || i == 2 } // operands and results: k, v, dk, dv
	grad := o.Name == "dm.attention_grad"
	mask := OperandNumber(o, "mask")
	scores := scoreShape(q, k)
	// set makes factors those of dimension d of the scores, in tensor i with the given dims.
	set := func(dims [][]int, d int, factors []int) {
		if d < len(dims) {
			dims[d] = factors
		}
	}
	masks := func(tensors [][][]int, i, d int, factors []int) {
		if i < 0 || i >= len(tensors) {
			return
		}
		m := in(o, mask)
		if at := d - (len(scores) - m.Rank()); at >= 0 && !isOne(m.Shape[at]) {
			tensors[i][at] = factors
		}
	}
	each := func(d int, own, keys []int) {
		for i, dims := range f.Operands {
			switch {
			case i == mask:
				masks(f.Operands, i, d, own)
			case keyed(i):
				set(dims, d, keys)
			case OperandParam(o, i).Name != "step":
				set(dims, d, own)
			}
		}
		for i, dims := range f.Results {
			switch {
			case grad && i == 3:
				masks(f.Results, i, d, own)
			case grad && keyed(i):
				set(dims, d, keys)
			default:
				set(dims, d, own)
			}
		}
	}
	for d := range max(n-3, 0) {
		b := f.factor(q.Shape[d], Reduced)
		each(d, []int{b}, []int{b})
	}
	if n > 2 {
		heads := f.factor(k.Shape[n-3], Reduced)
		own := []int{heads}
		if group, ok := q.Shape[n-3].Div(k.Shape[n-3]); ok {
			own = append(own, f.factor(group, Reduced))
		}
		each(n-3, own, own[:1])
	}
	if !Bool(o, "causal") {
		each(n-2, []int{f.factor(q.Shape[n-2], Reduced)}, nil)
	}
	return f
}
