package program

import (
	"sync"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// instances are the functions with symbols that a module's calls give sizes, and what is wrong with them.
type instances struct {
	*verify.Instances
	reading sync.Mutex                 // of those who read a program and ask for an instance
	users   map[string]map[*ir.Op]bool // calls by the names of the functions that they lead to
	wrong   map[*ir.Op]*verify.Instance
}

func newInstances(m *ir.Module, bind map[string]int64) *instances {
	return &instances{Instances: verify.NewInstances(m, bind), users: map[string]map[*ir.Op]bool{}, wrong: map[*ir.Op]*verify.Instance{}}
}

// add follows the calls in ops.
func (x *instances) add(ops []*ir.Op) {
	ir.Walk(ops, func(o *ir.Op) bool {
		x.call(o)
		return true
	})
}

func (x *instances) call(o *ir.Op) {
	i := x.Of(o)
	if i == nil {
		return
	}
	for name := range i.Uses {
		if x.users[name] == nil {
			x.users[name] = map[*ir.Op]bool{}
		}
		x.users[name][o] = true
	}
	if i.Failure != nil || x.Problem(o, i) != nil {
		x.wrong[o] = i
	}
}

// drop forgets the calls in ops, which are gone.
func (x *instances) drop(ops []*ir.Op) {
	ir.Walk(ops, func(o *ir.Op) bool {
		if o.Name == op.Call || o.Name == op.Grad {
			delete(x.wrong, o)
			for _, users := range x.users {
				delete(users, o)
			}
		}
		return true
	})
}

// changed follows a change within the function called name: what leads to it is checked again.
func (x *instances) changed(name string) {
	users := x.users[name]
	if len(users) == 0 {
		return
	}
	x.Forget(name)
	delete(x.users, name)
	for o := range users {
		delete(x.wrong, o)
		x.call(o)
	}
}

// diags are the diagnostics of the calls.
func (x *instances) diags() (out []diag.Diagnostic) {
	for o, i := range x.wrong {
		if d := x.Problem(o, i); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

// Instance is what o, a call of the program, makes of a function with symbols; nil for other ops.
func (p *Program) Instance(m *ir.Module, o *ir.Op) *verify.Instance {
	for i, own := range p.Modules {
		if own == m {
			x := p.instances[i]
			x.reading.Lock()
			defer x.reading.Unlock()
			return x.Of(o)
		}
	}
	return nil
}
