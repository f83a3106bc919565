package simplify

import (
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
			Name: "of-nothing", Doc: "A contraction over no elements is 0, and so is a sum of them; an argument without elements is a constant without elements where it is read, so that its largest element and the like are computed now.",
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
	if len(o.Operands) == 0 || len(o.Results) != 1 || o.Out(0) == nil || op.HasEffect(o) {
		return false
	}
	any := false
	for _, v := range o.Operands {
		any = any || empty(v)
	}
	if !any {
		return false
	}
	b := pass.Before(o)
	switch o.Name {
	case "dm.einsum", "dm.matmul":
		return built(b, o, b.Splat(o.Out(0), 0))
	case "dm.reduce":
		if op.Str(o, "kind") == "add" {
			return built(b, o, b.Splat(o.Out(0), 0))
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
