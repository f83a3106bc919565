package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The Exchanged factors of ops; package partition has the algorithms.

// Moves is how a window moves along a dimension: element p of the result is computed of the
// elements (p·Stride - Low + q·Dilation) / Spread of the first operand, for q < Size, where that is a
// whole number and there is such an element.
type Moves struct{ Size, Stride, Dilation, Spread, Low int64 }

// MovesOf is how the window of o moves along dimension d of its first operand; false where o has no
// window there, or it covers the dimension.
func MovesOf(o *ir.Op, d int) (Moves, bool) {
	switch o.Name {
	case "dm.convolution":
		return convolutionMoves(o, d)
	case "dm.reduce_window", "dm.select_and_scatter":
		return reduceWindowMoves(o, d)
	case "dm.slice":
		return sliceMoves(o, d)
	case "dm.pad":
		return padMoves(o, d)
	}
	return Moves{}, false
}

func (w *window) moves(i int) Moves {
	return Moves{w.Size[i], w.Stride[i], w.Dilation[i], w.spread(i), w.Padding[i][0]}
}

func convolutionMoves(o *ir.Op, d int) (Moves, bool) {
	w, p := convolutionWindow(o)
	if p != nil || d < 2 || w.still(d-2) || w.covers(in(o, 0), d) {
		return Moves{}, false
	}
	return w.moves(d - 2), true
}

func reduceWindowMoves(o *ir.Op, d int) (Moves, bool) {
	w, p := reduceWindow(o)
	if p != nil || w.still(d) {
		return Moves{}, false
	}
	return w.moves(d), true
}

func sliceMoves(o *ir.Op, d int) (Moves, bool) {
	s, p := sliceOf(o)
	if p != nil || takenWhole(o, s, d) {
		return Moves{}, false
	}
	return Moves{Size: 1, Stride: s.Stride[d], Dilation: 1, Spread: 1, Low: -s.Start[d]}, true
}

func padMoves(o *ir.Op, d int) (Moves, bool) {
	w := Moves{Size: 1, Stride: 1, Dilation: 1, Spread: 1}
	grows := false
	for _, name := range []string{"low", "high", "interior"} {
		list, p := listOf(o, name, in(o, 0).Rank(), 0, 0)
		if p != nil {
			return w, false
		}
		grows = grows || list[d] > 0
		switch name {
		case "low":
			w.Low = list[d]
		case "interior":
			w.Spread += list[d]
		}
	}
	return w, grows
}

// numbered reports whether sizes are numbers above 0.
func numbered(sizes ...dim.Dim) bool {
	return !slices.ContainsFunc(sizes, func(d dim.Dim) bool { n, ok := d.Int(); return !ok || n < 1 })
}

// moving adds the dimensions along which a window moves, which the first operand and the result,
// and another operand of its shape, have together.
func moving(moves func(o *ir.Op, d int) (Moves, bool)) func(o *ir.Op, f *Factors) {
	return func(o *ir.Op, f *Factors) {
		x, y := in(o, 0), out(o, 0)
		for d := range x.Shape {
			if _, ok := moves(o, d); !ok || !numbered(x.Shape[d], y.Shape[d]) {
				continue
			}
			n := []int{f.factor(x.Shape[d], Exchanged)}
			f.Operands[0][d], f.Results[0][d] = n, n
			if o.Name == "dm.select_and_scatter" {
				f.Operands[1][d] = n
			}
		}
	}
}

// exchangedSpace are the spatial dimensions of a convolution: x's with the result's or, where the
// window is larger than the result, with the window's.
func exchangedSpace(o *ir.Op, f *Factors) {
	x, w, y := in(o, 0), in(o, 1), out(o, 0)
	for d := 2; d < x.Rank(); d++ {
		m, ok := convolutionMoves(o, d)
		if !ok || !numbered(x.Shape[d], y.Shape[d]) {
			continue
		}
		n := []int{f.factor(x.Shape[d], Exchanged)}
		f.Operands[0][d] = n
		switch places, _ := y.Shape[d].Int(); {
		case m.Size <= places:
			f.Results[0][d] = n
		case m.Spread == 1 && slices.Contains(numeric, y.Elem):
			f.Operands[1][d] = slices.Clone(n)
			f.Sizes[n[0]] = w.Shape[d]
		default:
			f.drop(n[0])
		}
	}
}

// indexed is the dimension that indices of o, a gather, scatter or embedding, name, and how many
// leading dimensions are shared.
func indexed(o *ir.Op) (d, batch int, ok bool) {
	if o.Name == "dm.embedding" {
		return 0, 0, true
	}
	d, ok = Dim(o, "dim", in(o, 0).Rank())
	return d, int(Int(o, "batch_dims")), ok
}

// Indexed is what indexed is.
func Indexed(o *ir.Op) (d, batch int) {
	d, batch, _ = indexed(o)
	return d, batch
}

// sum makes a piece's share of a result one to be added up; false where elements of type e cannot be.
func (f *Factors) sum(e types.Elem) bool {
	if e == types.I1 {
		f.Combine = types.Or
	}
	return e == types.I1 || slices.Contains(numeric, e)
}

// indexedGather: what is not in the piece of a device is 0 there.
func indexedGather(o *ir.Op, f *Factors) {
	d, _, ok := indexed(o)
	x := in(o, 0)
	if !ok || !numbered(x.Shape[d]) || !f.sum(x.Elem) {
		return
	}
	f.Operands[0][d] = []int{f.factor(x.Shape[d], Exchanged)}
}

// indexedScatter: the dimension that is indexed and, where updates are combined, the dimensions
// of the indices.
func indexedScatter(o *ir.Op, f *Factors) {
	d, batch, ok := indexed(o)
	x, idx := in(o, 0), in(o, 1)
	if !ok {
		return
	}
	if numbered(x.Shape[d]) {
		n := []int{f.factor(x.Shape[d], Exchanged)}
		f.Operands[0][d], f.Results[0][d] = n, slices.Clone(n)
	}
	by, ok := types.ReductionOf(Str(o, "kind"))
	if !ok || !slices.Contains(combined(by), x.Elem) {
		return
	}
	f.Combine = by
	for i := batch; i < idx.Rank(); i++ {
		n := []int{f.factor(idx.Shape[i], Exchanged)}
		f.Operands[1][i], f.Operands[2][d+i-batch] = n, slices.Clone(n)
	}
}

func exchangedClasses(o *ir.Op, f *Factors) {
	if d, ok := Dim(o, "dim", out(o, 0).Rank()); ok {
		f.Results[0][d] = []int{f.factor(out(o, 0).Shape[d], Exchanged)}
	}
}

// exchangedRuns is the dimension of a running sum, product or maximum.
func exchangedRuns(o *ir.Op, f *Factors) {
	x := in(o, 0)
	if d, ok := Dim(o, "dim", x.Rank()); ok && numbered(x.Shape[d]) && Str(o, "accumulate") != "f16" {
		n := []int{f.factor(x.Shape[d], Exchanged)}
		f.Operands[0][d], f.Results[0][d] = n, slices.Clone(n)
	}
}

// exchangedSearch is the dimension in which the largest elements are searched.
func exchangedSearch(o *ir.Op, f *Factors) {
	x := in(o, 0)
	if d, ok := Dim(o, "dim", x.Rank()); ok && numbered(x.Shape[d]) {
		f.Operands[0][d] = []int{f.factor(x.Shape[d], Exchanged)}
		f.Complete = identity(len(f.Results))
	}
}

// exchangedScores are the keys, and the queries where the score depends on their places.
func exchangedScores(o *ir.Op, f *Factors) {
	q, k := in(o, 0), in(o, 1)
	n := q.Rank()
	grad, mask := o.Name == "dm.attention_grad", OperandNumber(o, "mask")
	masked := grad && len(o.Results) > 3
	if Float(o, "dropout") > 0 || masked || !numbered(q.Shape[n-2], k.Shape[n-2]) {
		return
	}
	if Bool(o, "causal") {
		m := f.factor(q.Shape[n-2], Exchanged)
		for i, dims := range f.Operands {
			switch t := in(o, i); {
			case i == mask:
				if at := t.Rank() - 2; at >= 0 && !isOne(t.Shape[at]) {
					dims[at] = []int{m}
				}
			case i != 1 && i != 2 && len(dims) > n-2:
				dims[n-2] = []int{m}
			}
		}
		for i, dims := range f.Results {
			if !grad || i == 0 {
				dims[n-2] = []int{m}
			}
		}
	}
	keys := f.factor(k.Shape[n-2], Exchanged)
	for i := 1; i <= 2; i++ {
		f.Operands[i][n-2] = []int{keys}
		if grad {
			f.Results[i][n-2] = []int{keys}
		}
	}
	if own := f.Operands[0][n-2]; len(own) == 1 {
		f.Together = [2]int{own[0], keys}
	}
	if !grad {
		f.Complete = []int{1}
	}
}

// exchangedDims are the dimensions that attribute dims names, which operand and result have.
func exchangedDims(o *ir.Op, f *Factors) {
	x := in(o, 0)
	dims, ok := Dims(o, "dims", x.Rank())
	for _, d := range dims {
		if ok && numbered(x.Shape[d]) {
			n := []int{f.factor(x.Shape[d], Exchanged)}
			f.Operands[0][d], f.Results[0][d] = n, slices.Clone(n)
		}
	}
}

// exchangedJoint is the dimension along which operands are concatenated.
func exchangedJoint(o *ir.Op, f *Factors) {
	d, ok := Dim(o, "dim", in(o, 0).Rank())
	if !ok || !numbered(out(o, 0).Shape[d]) {
		return
	}
	n := f.factor(out(o, 0).Shape[d], Exchanged)
	f.Results[0][d] = []int{n}
	for i := range o.Operands {
		if !numbered(in(o, i).Shape[d]) {
			f.drop(n)
			return
		}
		f.Operands[i][d] = []int{n}
	}
}

// exchangedPart are the dimensions of which a dm.dynamic_slice takes a part.
func exchangedPart(o *ir.Op, f *Factors) {
	x, y := in(o, 0), out(o, 0)
	for d := range x.Shape {
		if !x.Shape[d].Equal(y.Shape[d]) && numbered(x.Shape[d], y.Shape[d]) && f.sum(x.Elem) {
			f.Operands[0][d] = []int{f.factor(x.Shape[d], Exchanged)}
		}
	}
}

// exchangedUpdate are the dimensions of which a dm.dynamic_update_slice replaces a part.
func exchangedUpdate(o *ir.Op, f *Factors) {
	x, u := in(o, 0), in(o, 1)
	for d := range x.Shape {
		if !x.Shape[d].Equal(u.Shape[d]) && numbered(x.Shape[d], u.Shape[d]) {
			n := []int{f.factor(x.Shape[d], Exchanged)}
			f.Operands[0][d], f.Results[0][d] = n, slices.Clone(n)
		}
	}
}
