// Package pipeline is the ordered list of passes from the function in the text
// to the plan that a target generates code from.
package pipeline

import (
	"slices"
	"sync"

	"dmir/compile/bind"
	"dmir/compile/checks"
	"dmir/compile/devices"
	"dmir/compile/fuse"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/layout"
	"dmir/compile/loops"
	"dmir/compile/microbatch"
	"dmir/compile/pass"
	"dmir/compile/regions"
	"dmir/compile/schedule"
	"dmir/compile/simplify"
	"dmir/compile/stages"
	"dmir/compile/target"
	"dmir/compile/unfuse"
	"dmir/dialect/ir"
)

// For returns all passes for the code of g in their order; nil is portable code
// of the default target. The slice is the caller's. Passes see straight-line
// code: for those that are not about single ops, each region of a while or an
// if is a unit of its own (pass.Regions).
func For(g target.Generator) []pass.Pass {
	of := sync.OnceValue(func() target.Generator {
		if g != nil {
			return g
		}
		return target.For("").Generator(target.Options{})
	})
	has := func(u *pass.Unit, o *ir.Op) bool { return of().Has(o, u.Machine) }
	differentiate := gradient.Pass()
	return []pass.Pass{
		inline.Pass(),
		bind.Pass(),
		simplify.Attention(has),
		{Name: differentiate.Name, Summary: differentiate.Summary, Run: func(u *pass.Unit) error {
			if err := differentiate.Run(u); err != nil {
				return err
			}
			simplify.WriteOut(u, u.Func, has) // gradients of ops on sparse tensors are such ops
			return nil
		}},
		checks.Pass(),
		microbatch.Pass(),
		devices.Regather(),
		stages.Pass(),
		devices.Shard(),
		devices.Partition(),
		devices.Collectives(),
		simplify.Pass(),
		loops.Pass(),
		pass.InRegions(layout.Pass()),
		pass.InRegions(unfuse.Pass()),
		regions.Pass(),
		pass.InRegions(fuse.Pass(func(u *pass.Unit) (target.Times, error) { return of().Times(u) })),
		schedule.Buckets(),
		schedule.Order(),
		pass.InRegions(pass.Pass{
			Name:    "kernels",
			Summary: "the form in which each kernel runs, and the memory it needs for itself",
			Run:     func(u *pass.Unit) error { return of().Plan(u) },
		}),
		schedule.Plan(),
	}
}

// Divide are the passes after which a program is what each device of its mesh runs, for
// executors that compile nothing.
func Divide() []pass.Pass {
	return []pass.Pass{inline.Pass(), bind.Pass(), gradient.Pass(), checks.Pass(), microbatch.Pass(), devices.Regather(), stages.Pass(), devices.Shard(), devices.Partition()}
}

// Export are the passes after which a program is written in other dialects: they leave
// no ops that have no equivalents there.
func Export() []pass.Pass {
	return []pass.Pass{inline.Pass(), bind.Pass(), gradient.Pass(), loops.Pass()}
}

// Names are those of the passes, in their order.
func Names() []string {
	var names []string
	for _, p := range For(nil) {
		names = append(names, p.Name)
	}
	return names
}

// Until returns the passes for g up to and including the one named; all if
// there is no such pass.
func Until(g target.Generator, name string) []pass.Pass {
	ps := For(g)
	if i := slices.IndexFunc(ps, func(p pass.Pass) bool { return p.Name == name }); i >= 0 {
		return ps[:i+1]
	}
	return ps
}
