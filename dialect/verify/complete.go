package verify

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Complete gives results that were written with "?" the sizes that follow from
// their operands by infer, in the order of the text.
func Complete(ops []*ir.Op, infer func(*ir.Op) ([]types.Type, bool)) {
	for _, o := range ops {
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				Complete(b.Ops, infer)
			}
		}
		if !slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return open(v) }) {
			continue
		}
		ts, ok := infer(o)
		for i, v := range o.Results {
			if !ok || i >= len(ts) || !open(v) {
				continue
			}
			have := v.Tensor()
			t, is := ts[i].(*types.Tensor)
			if !is || t.Rank() != have.Rank() {
				continue
			}
			r := *have
			r.Shape = slices.Clone(have.Shape)
			for d := range r.Shape {
				if !r.Shape[d].IsConst() {
					r.Shape[d] = t.Shape[d]
				}
			}
			v.Type = completed(&r, o)
		}
	}
}

// completed finds the one open size of a reshape's result by counting elements.
func completed(t *types.Tensor, o *ir.Op) types.Type {
	if o.Name != "dm.reshape" || o.In(0) == nil {
		return t
	}
	at, rest := -1, dim.Const(1)
	for i, d := range t.Shape {
		switch {
		case d.IsConst():
			rest = rest.Mul(d)
		case at >= 0:
			return t
		default:
			at = i
		}
	}
	if at < 0 {
		return t
	}
	if n, ok := o.In(0).Elements().Div(rest); ok {
		t.Shape[at] = n
	}
	return t
}

// open reports whether v has a dimension that is no number.
func open(v *ir.Value) bool {
	t := v.Tensor()
	return t != nil && slices.ContainsFunc(t.Shape, func(d dim.Dim) bool { return !d.IsConst() })
}
