// Package pipeline is the one ordered list of passes, from the function as it
// is written to the plan that kernels are made from.
package pipeline

import (
	"slices"

	"dmir/compile/bind"
	"dmir/compile/cuda"
	"dmir/compile/fuse"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/layout"
	"dmir/compile/pass"
	"dmir/compile/regions"
	"dmir/compile/schedule"
	"dmir/compile/simplify"
	"dmir/compile/unfuse"
	"dmir/dialect/ir"
)

// Passes are all passes in their order. The slice is the caller's. Passes are
// about straight lines of ops: to those that are not about single ops anyway
// each region of a while or an if is a function of its own (pass.Regions).
func Passes() []pass.Pass {
	return []pass.Pass{
		inline.Pass(),
		bind.Pass(),
		simplify.Attention(func(u *pass.Unit, o *ir.Op) bool { return cuda.Attends(o, u.Machine) }),
		gradient.Pass(),
		simplify.Pass(),
		pass.InRegions(layout.Pass()),
		pass.InRegions(unfuse.Pass()),
		regions.Pass(),
		pass.InRegions(fuse.Pass(cuda.Handed)),
		schedule.Order(),
		pass.InRegions(cuda.Kernels()),
		schedule.Plan(),
	}
}

// Names are those of the passes, in their order.
func Names() []string {
	var names []string
	for _, p := range Passes() {
		names = append(names, p.Name)
	}
	return names
}

// Until is the passes up to and with the last of the one named; all where none
// is called so.
func Until(name string) []pass.Pass {
	ps := Passes()
	if i := slices.IndexFunc(ps, func(p pass.Pass) bool { return p.Name == name }); i >= 0 {
		return ps[:i+1]
	}
	return ps
}
