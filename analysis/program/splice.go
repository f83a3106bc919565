package program

import (
	"slices"
	"sync"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Splice makes p the program of src, the text that change c led to, at a cost
// that does not grow with the text but for what must move. No other code may use
// p meanwhile. ok is false where the change reaches too far for that: then p is
// of no use any more, and src is to be loaded.
func (p *Program) Splice(src *source.File, c parse.Change) (ok bool) {
	if p.Imported {
		return false
	}
	s, ok := parse.Replan(p.Tree, src, c)
	if !ok {
		return false
	}
	from := s.Start
	if len(s.Old) > 0 {
		from = min(from, s.Old[0].Off)
	}
	names := p.Names()
	s.Apply(p.Tree)
	if !names.Splice(s, src) {
		return false
	}
	p.names = sync.OnceValue(func() *scope.Index { return names })
	change, ok := p.unit.Splice(s, src)
	if !ok {
		return false
	}
	p.Src = src
	if change == nil {
		p.follow(s, nil)
		p.sum()
		return true
	}
	if change.Whole {
		for _, o := range change.Gone {
			delete(p.ends, o)
		}
	}
	p.follow(s, change.Func)
	ir.Walk(change.Gone, func(o *ir.Op) bool {
		if p.bad[o] {
			o.Bad = false
			delete(p.bad, o)
		}
		return true
	})
	for _, o := range change.New {
		p.rules = slices.DeleteFunc(p.rules, func(d diag.Diagnostic) bool { return o.Span.Start <= d.Span.Start && d.Span.Start < o.Span.End })
	}
	p.precise(change.New)
	p.check(change.Module, change.New)
	of := slices.Index(p.Modules, change.Module)
	calls := p.instances[of]
	calls.drop(change.Gone)
	if !change.Whole {
		calls.changed(change.Func.Str("sym_name"))
	}
	calls.add(change.New)
	costs := p.costs[of]
	if costs.Splice(change, from) {
		p.list()
	}
	if !change.Whole { // else check has seen to it
		p.end(costs, change)
	}
	p.sum()
	return true
}

// end checks the function of a change as a whole.
func (p *Program) end(costs *cost.Costs, c *lower.Change) {
	delete(p.ends, c.Func)
	var ds []diag.Diagnostic
	if f := costs.Of(c.Func); f != nil {
		ds = verify.FunctionOf(c.Module, c.Func, f.Marked(), f.MeshOf)
	} else { // the second of its name
		ds = verify.Function(c.Module, c.Func)
	}
	if len(ds) > 0 {
		p.ends[c.Func] = ds
	}
}

// follow moves the diagnostics of the text, and drops those of ops
// that are gone.
func (p *Program) follow(s *parse.Splice, fn *ir.Op) {
	p.rules = s.Follow(p.rules)
	for f, ds := range p.ends {
		if f != fn {
			p.ends[f] = s.Follow(ds)
		}
	}
}
