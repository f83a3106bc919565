package cost

import (
	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// gradient is the joint function that a dm.grad stands for, nil where it has
// none. What it came from is noted as called: its changes change this cost.
func (s *scope) gradient(o *ir.Op) *ir.Func {
	s.leads(s.m.Func(o.Str("callee")))
	fn, err := autodiff.Of(s.m, o, nil)
	if err != nil {
		return nil
	}
	return fn
}

// leads notes fn and the functions that it calls.
func (s *scope) leads(fn *ir.Func) {
	if fn == nil || s.called[fn] {
		return
	}
	s.called[fn] = true
	ir.Walk([]*ir.Op{fn.Op}, func(o *ir.Op) bool {
		if o.Name == op.Call || o.Name == op.Grad {
			s.leads(s.m.Func(o.Str("callee")))
		}
		return true
	})
}
