package cost

import (
	"slices"

	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// fewChannels is the most channels of a group that a sum over windows makes as fast as tensor cores whose operand is gathered, which
// take about 32 instructions for each element of it.
const fewChannels = 8

// Gathers reports whether o is a convolution on m's tensor cores, whose kernels read
// elements one by one where the order of an operand asks for it: neighbours along the
// image shift with the window, so that eight of them are not one aligned access.
// Neighbouring channels are, and images and features.
func Gathers(m *machine.Machine, o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || d.Family != op.Contraction || !d.Is(op.Windowed) || m.SMs == 0 || o.In(0) == nil || o.In(1) == nil {
		return false
	}
	elem := o.In(0).Elem
	if elem != o.In(1).Elem || !elem.IsFloat() || elem.Bytes() != 2 || m.TensorCore[elem] == 0 {
		return false
	}
	if p, ok := op.ProductOf(o); ok {
		depth, known := p.Depth.Int()
		channels, fixed := p.Cols.Int()
		if p.Turned {
			channels, fixed = p.Rows.Int()
		}
		if known && fixed && depth <= op.WindowProducts && channels <= fewChannels { // threads add them up
			return false
		}
	}
	// A window of one tap that visits each element is a product of matrices.
	moves := func(n int64) bool { return n != 1 }
	taps := slices.ContainsFunc(o.In(1).Shape[min(2, o.In(1).Rank()):], func(n dim.Dim) bool { return !n.Equal(dim.Const(1)) })
	return taps || slices.ContainsFunc(op.Ints(o, "window_strides"), moves) || slices.ContainsFunc(op.Ints(o, "lhs_dilation"), moves) ||
		slices.ContainsFunc(op.Pairs(o, "padding"), func(p [2]int64) bool { return p != [2]int64{} })
}

// Apart is the time in seconds that o takes longer on m for loads of single elements of operand i, whose channels and features are not
// side by side: of a convolution that gathers, and of a filter of which a phase reads every so many-th tap. It is 0 of other operands,
// and where sizes are not known.
func Apart(m *machine.Machine, o *ir.Op, i int) float64 {
	gathers := Gathers(m, o)
	if !gathers && (i != 1 || m.CPU || m.SMs == 0 || m.L2Bandwidth == 0 || o.In(1) == nil) {
		return 0
	}
	p, ok := op.ProductOf(o)
	if !gathers && (!ok || p.Divided == nil || p.Cols.Equal(dim.Const(1))) {
		return 0
	}
	if p.Divided != nil {
		p = *p.Divided
	}
	var n [4]int64
	for j, x := range []dim.Dim{p.Batch, p.Rows, p.Cols, p.Depth} {
		var known bool
		n[j], known = x.Int()
		ok = ok && known
	}
	if !ok {
		return 0
	}
	x := machine.Product{Batch: n[0], Rows: n[1], Cols: n[2], Depth: n[3], Turned: p.Turned, Phases: p.Phases}
	if !gathers {
		return m.Sectors(x, i, o.In(1).Elem)
	}
	return m.Gather(x, i)
}

// Innermost is the dimension of t, of those with more than one element, whose neighbours
// lie side by side; -1 where there is none.
func Innermost(t *types.Tensor) int {
	for _, d := range slices.Backward(op.OrderOf(t)) {
		if !t.Shape[d].Equal(dim.Const(1)) {
			return d
		}
	}
	return -1
}
