package cuda

import (
	"math"

	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// structured reports whether mma.sp computes o, a product with a 2:4 operand, and is predicted to be faster than a dense product, before
// which a kernel writes the operand with its zeros.
func (t Target) structured(o *ir.Op) bool {
	p, ok := op.ProductOf(o)
	elem := o.Operands[0].Elem()
	if m := t.Machine; !ok || elem != types.F16 && elem != types.BF16 || o.Attr("accumulate") != nil || m.SMs == 0 || m.L2Bandwidth == 0 {
		return false
	}
	var sizes [4]int64
	for i, d := range []interface{ Int() (int64, bool) }{p.Batch, p.Rows, p.Cols, p.Depth} {
		if sizes[i], ok = d.Int(); !ok || sizes[i] < 1 {
			return false
		}
	}
	x := machine.Product{Batch: sizes[0], Rows: sizes[1], Cols: sizes[2], Depth: sizes[3], Elem: elem, Turned: p.Turned, Structured: true}
	if x.Depth%op.StructuredDepth != 0 {
		return false
	}
	dense := x
	dense.Structured = false
	lines := x.Rows
	if x.Turned {
		lines = x.Cols
	}
	written := float64(x.Batch*lines*x.Depth) * float64(elem.Bytes()) // of the operand with its zeros
	rest := float64(x.Batch*((x.Rows+x.Cols-lines)*x.Depth+x.Rows*x.Cols)) * float64(elem.Bytes())
	stored := written * machine.StructuredBytes
	reach := t.Machine.Reach()
	with := max(t.least(x), (stored+rest)/reach)
	without := max(t.least(dense), (written+rest)/reach) + (stored+written)/reach + t.Machine.Start()
	return with < without
}

// least is the time of the tile that computes p in the least time, s.
func (t Target) least(p machine.Product) float64 {
	s := math.Inf(1)
	t.eachTile(p, t.Machine, func(c Config) { s = min(s, t.Machine.ProductTime(p, c.tile()).Total()) })
	return s
}
