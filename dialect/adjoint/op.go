package adjoint

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Of is the function that a dm.grad stands for: the joint gradient of the
// function that it names, with the options that it states. An error is a *Error.
func Of(m *ir.Module, o *ir.Op) (*ir.Func, error) { return target(m, o, nil) }

func ofOp(m *ir.Module, o *ir.Op, f *ir.Func, callers []string) (*ir.Func, error) {
	opts := Options{Joint: true, Seeded: op.Int(o, "cotangents") > 0}
	if op.Attr(o, "wrt") != nil {
		opts.Wrt = []int{}
		for _, i := range op.Ints(o, "wrt") {
			opts.Wrt = append(opts.Wrt, int(i))
		}
	}
	return function(m, f, opts, callers)
}
