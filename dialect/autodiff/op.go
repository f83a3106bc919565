package autodiff

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Of is the function that a dm.grad stands for where its operands have the types
// given: the joint gradient of the function that it names, with the options that
// it states. An error is a *Error.
func Of(m *ir.Module, o *ir.Op, operands []*types.Tensor) (*ir.Func, error) {
	return target(m, o, operands, nil)
}

func optionsOf(o *ir.Op) Options {
	opts := Options{Joint: true, Seeded: op.Int(o, "cotangents") > 0}
	if op.Attr(o, "wrt") != nil || op.Grouped(o) {
		opts.Wrt, _ = op.Gradients(o)
	}
	return opts
}
