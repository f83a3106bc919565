package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func controlRules() []Rule {
	return []Rule{
		{
			Name: "if-constant", Doc: "A branch on a constant is the region that is taken.",
			Ops: []string{"if"}, apply: ifConstant,
		},
		{
			Name: "yield-unused", Doc: "A kernel or a branch yields only what is used, each value once, and no value that comes from outside unchanged.",
			Ops: []string{"kernel", "if"}, apply: yieldUnused,
		},
		{
			Name: "kernel-empty", Doc: "A kernel that computes nothing is no kernel.",
			Ops: []string{"kernel"}, apply: kernelEmpty,
		},
		{
			Name: "result-unused", Doc: "The mask of a dropout without uses is not written.",
			Ops: []string{"dropout"}, apply: resultUnused,
		},
	}
}

func ifConstant(_ *rewriter, o *ir.Op) bool {
	n, ok := numberOf(o.Operands[0])
	if !ok {
		return false
	}
	region := 1 - int(n.i&1)
	b := o.Body(region)
	switch {
	case b != nil && b.Terminator() != nil:
		pass.Replace(o, ir.InlineBlock(b, o, nil)...)
	case len(o.Results) == 0:
		ir.EraseAll(o)
	default:
		return false
	}
	return true
}

func yieldUnused(_ *rewriter, o *ir.Op) bool {
	var yields []*ir.Op
	for i := range o.Regions {
		if t := o.Body(i).Terminator(); t != nil && t.Name == op.Yield && len(t.Operands) == len(o.Results) {
			yields = append(yields, t)
		}
	}
	if len(yields) != len(o.Regions) || len(yields) == 0 {
		return false
	}
	changed := false
	for i := len(o.Results) - 1; i >= 0; i-- {
		r := o.Results[i]
		if v := yields[0].Operands[i]; agree(yields, i, i) && !v.Inside(o) && types.Equal(v.Type, r.Type) {
			ir.ReplaceUses(r, v)
		}
		if v := yields[0].Operands[i]; o.Name == op.Kernel && v.Op != nil && v.Op.Name == op.Constant && len(r.Uses) > 0 && types.Equal(v.Type, r.Type) {
			if v.Inside(o) { // nothing computes it
				b := v.Op.Parent
				b.Ops = slices.Delete(b.Ops, slices.Index(b.Ops, v.Op), slices.Index(b.Ops, v.Op)+1)
				at := slices.Index(o.Parent.Ops, o)
				o.Parent.Ops, v.Op.Parent = slices.Insert(o.Parent.Ops, at, v.Op), o.Parent
			}
			ir.ReplaceUses(r, v)
			changed = true
		}
		for j := range i {
			if agree(yields, i, j) && types.Equal(r.Type, o.Results[j].Type) {
				ir.ReplaceUses(r, o.Results[j])
				break
			}
		}
		if len(r.Uses) > 0 || o.Name == op.Kernel && len(o.Results) == 1 {
			continue
		}
		for _, y := range yields {
			y.SetOperands(slices.Delete(slices.Clone(y.Operands), i, i+1)...)
		}
		o.Results = slices.Delete(slices.Clone(o.Results), i, i+1)
		changed = true
	}
	if changed {
		for i, r := range o.Results {
			r.Index = i
		}
	}
	return changed
}

// agree reports whether every region yields the same as its values number i and
// j; for i = j, whether all regions yield one value.
func agree(yields []*ir.Op, i, j int) bool {
	for _, y := range yields {
		if y.Operands[i] != y.Operands[j] || i == j && y.Operands[i] != yields[0].Operands[i] {
			return false
		}
	}
	return true
}

func kernelEmpty(_ *rewriter, o *ir.Op) bool {
	b := o.Body(0)
	if b == nil || len(b.Ops) != 1 || b.Ops[0].Name != op.Yield {
		return false
	}
	for i, v := range b.Ops[0].Operands {
		if !types.Equal(v.Type, o.Results[i].Type) {
			return false
		}
	}
	pass.Replace(o, ir.InlineBlock(b, o, nil)...)
	return true
}

func resultUnused(_ *rewriter, o *ir.Op) bool {
	if d := op.Of(o); len(o.Results) != 2 || !d.Results[1].Optional || len(o.Results[1].Uses) > 0 {
		return false
	}
	o.Results = o.Results[:1:1]
	return true
}
