package cost

import (
	"errors"
	"maps"
	"slices"

	"dmir/dialect/autodiff"
	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// gradient is the joint function that a dm.grad stands for, nil where it has
// none. What it came from is noted as called: its changes change this cost.
func (s *scope) gradient(o *ir.Op) *ir.Func {
	s.leads(s.m.Func(o.Str("callee")))
	spent := 0
	for p, n := range s.derived {
		if p != o {
			spent += n
		}
	}
	fn, err := autodiff.Costed(s.m, o, budget.New(s.m, spent))
	delete(s.refused, o)
	var e *autodiff.Error
	if errors.As(err, &e) && !e.Open && o.Origin != nil {
		s.refused[o] = e
	}
	if err != nil {
		return nil
	}
	s.derived[o] = len(fn.Body.Ops)
	return fn
}

// Refused is the ops that take the gradient of a function which has none, whatever
// the sizes, and why.
func (t *Costs) Refused() map[*ir.Op]*autodiff.Error { return t.c.refused }

// forget drops what is known of ops that are gone.
func (c *coster) forget(gone []*ir.Op) {
	lost := func(o *ir.Op) bool {
		return slices.ContainsFunc(gone, func(g *ir.Op) bool { return o == g || o.Inside(g) })
	}
	maps.DeleteFunc(c.refused, func(o *ir.Op, _ *autodiff.Error) bool { return lost(o) })
	maps.DeleteFunc(c.derived, func(o *ir.Op, _ int) bool { return lost(o) })
}

// leads notes fn and the functions that it calls.
func (s *scope) leads(fn *ir.Func) {
	if fn == nil || s.joint[fn] {
		return
	}
	s.called[fn], s.joint[fn] = true, true
	ir.Walk([]*ir.Op{fn.Op}, func(o *ir.Op) bool {
		if o.Name == op.Call || o.Name == op.Grad {
			s.leads(s.m.Func(o.Str("callee")))
		}
		return true
	})
}
