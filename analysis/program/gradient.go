package program

import (
	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

// gradients adds a diagnostic for every op that takes the gradient of a function
// with an op in it that has no derivative, and for the first whose gradient exceeds
// the budget of the text. It costs nothing of its own: the cost of
// a gradient is that of the derived function.
func (p *Program) gradients() {
	var large *diag.Diagnostic
	for i, m := range p.Modules {
		for o, e := range p.costs[i].Refused() {
			if o.Bad || !holds(m, o) {
				continue
			}
			if e.Code == budget.Code && (large == nil || o.Head.Start < large.Span.Start) {
				d := diag.New(e.Code, diag.Error, o.Head, e.Msg)
				large = &d
			}
			if e.Code != "DM811" {
				continue
			}
			d := diag.New(e.Code, diag.Error, o.Head, "@"+o.Str("callee")+" has no gradient: "+e.Msg)
			d.Help = e.Help
			if t := origin.Tree(e.Op); t != nil {
				d.Related = []diag.Related{{Span: t.Head(), Message: "the gradient flows to this op"}}
			}
			p.Diags = append(p.Diags, d)
		}
	}
	if large != nil {
		p.Diags = append(p.Diags, *large)
	}
}

// holds reports whether o lies in a function of m itself, and not in one that was
// derived.
func holds(m *ir.Module, o *ir.Op) bool {
	for b := o.Parent; b != nil && b.Region != nil && b.Region.Op != nil; b = b.Region.Op.Parent {
		if f := b.Region.Op; f.Name == op.Func {
			fn := m.Func(f.Str("sym_name"))
			return fn != nil && fn.Op == f
		}
	}
	return false
}
