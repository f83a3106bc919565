package autodiff

import (
	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Of is the function that a dm.grad stands for where its operands have the types
// given: the joint gradient of the function that it names, with the options that
// it states. left is what may be written out, nil for the budget of m. An error is a
// *Error.
func Of(m *ir.Module, o *ir.Op, operands []types.Type, left *budget.Left) (*ir.Func, error) {
	return expand(m, left).target(o, operands)
}

// Costed is Of for who asks what o costs, in the sizes of its operands: without what keeps the padding of sparse tensors out of
// products (op.LowerSparse).
func Costed(m *ir.Module, o *ir.Op, left *budget.Left) (*ir.Func, error) {
	x := expand(m, left)
	x.costs = true
	return x.target(o, nil)
}

func optionsOf(o *ir.Op) Options {
	opts := Options{Joint: true, Seeded: op.Int(o, "cotangents") > 0, Marked: o.Attr(op.BackwardAttr) != nil}
	if op.Attr(o, "wrt") != nil || op.Grouped(o) {
		opts.Wrt, _ = op.Gradients(o)
	}
	return opts
}
