package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// No kernel runs for nothing: with these rules what has no elements is gone
// before there are kernels.
func emptyRules() []Rule {
	return []Rule{
		{
			Name: "nothing", Doc: "An op whose results have no elements is a constant without elements.",
			apply: nothing,
		},
		{
			Name: "of-nothing", Doc: "A contraction over no elements is 0, a reduction of them its neutral element, an update with them what it was, what is taken of them 0, a scan over them what it began with, and another op its expansion; an argument without elements is a constant without elements where it is read, so that its largest element and the like are computed now.",
			apply: ofNothing,
		},
	}
}

func empty(v *ir.Value) bool {
	t := v.Tensor()
	if t == nil {
		return false
	}
	for _, d := range t.Shape {
		if d.IsZero() {
			return true
		}
	}
	return false
}

func nothing(r *rewriter, o *ir.Op) bool {
	if o.Name == op.Constant || len(o.Results) == 0 || op.HasEffect(o) {
		return false
	}
	var ts []*types.Tensor
	for _, v := range o.Results {
		if !empty(v) {
			return false
		}
		ts = append(ts, v.Tensor())
	}
	b := pass.Before(o)
	var vs []*ir.Value
	for _, t := range ts {
		vs = append(vs, b.Splat(t, 0))
	}
	if b.Err() != nil {
		b.Undo()
		return false
	}
	pass.Replace(o, vs...)
	return true
}

func ofNothing(r *rewriter, o *ir.Op) bool {
	if len(o.Operands) == 0 || len(o.Results) == 0 || op.HasEffect(o) || !slices.ContainsFunc(o.Operands, empty) {
		return false
	}
	b := pass.Before(o)
	if len(o.Results) == 1 && o.Out(0) != nil {
		if v := leftOf(b, o); v != nil {
			return built(b, o, v)
		}
	}
	d := op.Of(o)
	if n, ok := op.Trips(o); ok && o.Name == op.Scan && n.IsZero() {
		vs := slices.Clone(o.Operands[:op.Carries(o)])
		for _, v := range o.Results[len(vs):] {
			vs = append(vs, b.Splat(v.Tensor(), 0))
		}
		pass.Replace(o, vs...)
		return true
	}
	if d.Expand != nil && op.Valid(o) {
		if vs := d.Expand(b.Builder, o); vs != nil {
			pass.Replace(o, vs...)
			return true
		}
	}
	changed := false
	for i, v := range o.Operands {
		if v.Op == nil && empty(v) {
			o.SetOperand(i, b.Splat(v.Tensor(), 0))
			changed = true
		}
	}
	return changed
}

// leftOf is what the one result of o, an op with an operand without elements, has the
// elements of; nil where that is not known.
func leftOf(b *op.Builder, o *ir.Op) *ir.Value {
	t := o.Out(0)
	last := o.Operands[len(o.Operands)-1]
	if d := op.Of(o); d != nil && d.Family == op.Contraction {
		return b.Splat(t, 0)
	}
	switch o.Name {
	case "dm.select_and_scatter":
		return b.Splat(t, 0)
	case "dm.reduce", "dm.reduce_window":
		if len(o.Operands) > 1 { // of a region, with its initial value
			return b.Value("broadcast", []*ir.Value{last}, []types.Named{{Name: "dims", Value: op.IntList()}}, t)
		}
		if kind, ok := types.ReductionOf(op.Str(o, "kind")); ok {
			return b.Value("constant", nil, []types.Named{{Name: "value", Value: op.Neutral(kind, t)}}, t)
		}
	case "dm.segment_reduce":
		if kind, ok := types.ReductionOf(op.Str(o, "kind")); ok {
			return b.Value("constant", nil, []types.Named{{Name: "value", Value: op.Neutral(kind, t)}}, t)
		}
	case "dm.searchsorted", "dm.gather", "dm.embedding":
		return b.Splat(t, 0)
	case "dm.pad":
		return b.Value("broadcast", []*ir.Value{last}, []types.Named{{Name: "dims", Value: op.IntList()}}, t)
	case "dm.scatter":
		if empty(last) {
			return o.Operands[0]
		}
	case "dm.dynamic_update_slice":
		if empty(o.Operands[1]) {
			return o.Operands[0]
		}
	}
	return nil
}
