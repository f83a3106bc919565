package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// Product is a contraction of two operands as a batch of products of matrices: Rows × Depth by Depth × Cols.
type Product struct{ Batch, Rows, Cols, Depth dim.Dim }

// ProductOf is o as products of matrices; ok is false of what is no contraction of two operands.
func ProductOf(o *ir.Op) (p Product, ok bool) {
	d := Of(o)
	if d == nil || d.Class != ClassContraction || len(o.Operands) != 2 || len(o.Results) != 1 || !Valid(o) {
		return p, false
	}
	if d == convolutionDef {
		return convolutionProduct(o)
	}
	if d.Maps == nil {
		return p, false
	}
	it := d.Maps(o)
	if it == nil {
		return p, false
	}
	p = Product{dim.Const(1), dim.Const(1), dim.Const(1), dim.Const(1)}
	var used [3]uint64 // the loops of both operands and of the result
	for k, maps := range [3][][]int{it.Operands[:1], it.Operands[1:], it.Results} {
		for _, loop := range maps[0] {
			if loop >= 0 && loop < 64 {
				used[k] |= 1 << loop
			}
		}
	}
	for i, n := range it.Loops {
		bit := uint64(1) << min(i, 63)
		a, b := used[0]&bit != 0, used[1]&bit != 0
		switch out := used[2]&bit != 0; {
		case !out:
			p.Depth = p.Depth.Mul(n)
		case a && b:
			p.Batch = p.Batch.Mul(n)
		case b:
			p.Cols = p.Cols.Mul(n)
		default:
			p.Rows = p.Rows.Mul(n)
		}
	}
	return p, true
}

// convolutionProduct is a convolution as the product of the windows of its images and its filters, group by group.
func convolutionProduct(o *ir.Op) (p Product, ok bool) {
	x, w, y := in(o, 0), in(o, 1), out(o, 0)
	groups := Int(o, "feature_group_count")
	if x.Rank() < 3 || w.Rank() != x.Rank() || groups < 1 {
		return p, false
	}
	return Product{
		Batch: dim.Const(groups),
		Rows:  dim.Prod(append([]dim.Dim{y.Shape[0]}, y.Shape[2:]...)...),
		Cols:  dim.Quotient(w.Shape[0], groups),
		Depth: dim.Prod(w.Shape[1:]...),
	}, true
}
