package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// ReducedResult is a result that reduces values computed from a contraction's
// elements over all rows or all columns.
type ReducedResult struct {
	Value *ir.Value
	Kind  string // add, mul, max, min
	X     *Expr  // the reduced value, at z, m and n
	Rows  bool   // over m: one value for each n; else over n: one for each m
	Batch bool   // over z too
	At    Index  // offset of a value, at the variables Kept
	Kept  Flat
}

// reductionOf is the dm.reduce that computes v, up to conversions, if its
// operand's elements correspond one to one to those of a product.
func reductionOf(v *ir.Value, places map[*ir.Value]place) (*ir.Op, bool) {
	o := v.Op
	for o != nil && op.Of(o).Is(op.Pointwise|op.Cast) {
		o = o.Operands[0].Op
	}
	if o == nil || !op.Reduces(o) || len(o.Operands) != 1 {
		return nil, false
	}
	p, ok := places[o.Operands[0]]
	if !ok || len(p.in) > 0 {
		return nil, false
	}
	switch ReduceKind(o) {
	case "add", "mul", "max", "min":
		return o, true
	}
	return nil, false
}

// kept finds the indices that the reduction o keeps.
func (t *Tiled) kept(f *ReducedResult, o *ir.Op) error {
	_, places, _, flat := t.results(1)
	x := o.Operands[0]
	if elem := x.Elem(); !elem.IsFloat() || elem == types.F64 || !f.Value.Elem().IsFloat() {
		return reason(o, "a reduction of %s beside a contraction", elem)
	}
	shape, dims := shapeOf(x), reducedDims(o)
	keep := op.Bool(o, "keep_dims")
	var idx []Index
	n := int64(1)
	for d, i := range places[x].idx {
		if slices.Contains(dims, d) {
			if keep {
				idx = append(idx, Index{})
			}
			continue
		}
		idx = append(idx, i)
		n *= shape[d]
	}
	f.At, f.Kept = Place(f.Value, idx), flat
	has := func(a *Atom) bool {
		found := false
		f.At.Atoms(func(b *Atom) { found = found || a != nil && a == b })
		return found
	}
	switch {
	case n == t.Cols*t.Batch && !has(flat.M):
		f.Rows = true
	case n == t.Cols && !has(flat.M) && !has(flat.Z):
		f.Rows, f.Batch = true, true
	case n == t.Rows*t.Batch && !has(flat.N):
	case n == t.Rows && t.c.phases != nil && !has(flat.N) && !has(flat.Z):
		f.Batch = true
	default:
		return reason(o, "%s reduces neither all rows nor all columns of the contraction", f.Value.Name)
	}
	return nil
}
