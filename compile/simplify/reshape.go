package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
)

func reshapeRules() []Rule {
	return []Rule{
		{
			Name: "reshape-chain", Doc: "A reshape to the same shape is its operand; a reshape of a reshape is one from the first shape.",
			Ops: []string{"reshape"}, apply: reshapeChain,
		},
		{
			Name: "transpose-chain", Doc: "A transpose of a transpose is one, and none where they cancel; one that moves only dimensions of size 1 is a reshape, which moves nothing.",
			Ops: []string{"transpose"}, apply: transposeChain,
		},
		{
			Name: "transpose-of-ones", Doc: "A transpose of what was reshaped to have dimensions of size 1 permutes the others alone, and the ones are put in afterwards: so permutations on both sides of a reshape meet.",
			Ops: []string{"transpose"}, apply: transposeOnes,
		},
		{
			Name: "copy-nothing", Doc: "A copy to the placement that a value has is the value.",
			Ops: []string{"copy"}, apply: func(_ *rewriter, o *ir.Op) bool { return gone(o) },
		},
		{
			Name: "reverse-chain", Doc: "Reversing twice is nothing, and so is reversing dimensions of size 1.",
			Ops: []string{"reverse"}, apply: reverseChain,
		},
		{
			Name: "reduce-ones", Doc: "A reduction of dimensions of size 1 is a reshape.",
			Ops: []string{"reduce"}, apply: reduceOnes,
		},
		{
			Name: "reduce-of-transpose", Doc: "A reduction of a transpose reduces the original's dimensions, where those that stay keep their order.",
			Ops: []string{"reduce"}, apply: reduceTransposed,
		},
	}
}

func reshapeChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	if inner := from(o.Operands[0], "reshape"); inner != nil {
		o.SetOperand(0, inner.Operands[0])
		return true
	}
	return false
}

func transposeChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	b := pass.Before(o)
	if inner, dims := pattern.Composed(o); inner != nil && plain(inner) {
		return built(b, o, b.Transpose(inner.Operands[0], dims...))
	}
	if pattern.KeepsOrder(o.In(0), dimsOf(o, o.In(0).Rank())) {
		return built(b, o, b.Reshape(o.Operands[0], o.Out(0).Shape...))
	}
	return false
}

func transposeOnes(_ *rewriter, o *ir.Op) bool {
	x := o.In(0)
	if from(o.Operands[0], "reshape") == nil || slices.ContainsFunc(o.Results[0].Uses, func(u ir.Use) bool { return u.Op.Name == "dm.einsum" }) {
		return false // an einsum reads it with the ones
	}
	var shape []dim.Dim
	at := make([]int, x.Rank()) // of the dimensions that are left
	for d := range x.Shape {
		at[d] = len(shape)
		if !pattern.IsOne(x, d) {
			shape = append(shape, x.Shape[d])
		}
	}
	if len(shape) == x.Rank() {
		return false
	}
	var perm []int
	for _, d := range dimsOf(o, x.Rank()) {
		if !pattern.IsOne(x, d) {
			perm = append(perm, at[d])
		}
	}
	b := pass.Before(o)
	return built(b, o, b.Reshape(b.Transpose(b.Reshape(o.Operands[0], shape...), perm...), o.Out(0).Shape...))
}

func reverseChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	inner, dims := pattern.Composed(o)
	if inner == nil || !plain(inner) {
		return false
	}
	if len(dims) == 0 {
		return use(o, inner.Operands[0])
	}
	o.SetOperand(0, inner.Operands[0])
	o.SetAttr("dims", op.IntList(dims...))
	return true
}

func reduceOnes(_ *rewriter, o *ir.Op) bool {
	x := o.In(0)
	if len(o.Operands) != 1 {
		return false
	}
	for _, d := range dimsOf(o, x.Rank()) {
		if !pattern.IsOne(x, d) {
			return false
		}
	}
	b := pass.Before(o)
	return built(b, o, b.Reshape(o.Operands[0], o.Out(0).Shape...))
}

func reduceTransposed(_ *rewriter, o *ir.Op) bool {
	inner := from(o.Operands[0], "transpose")
	if inner == nil || len(o.Operands) != 1 {
		return false
	}
	perm := dimsOf(inner, o.In(0).Rank())
	reduced := dimsOf(o, len(perm))
	keep := o.Bool("keep_dims")
	var dims, rest []int
	for i, d := range perm {
		if slices.Contains(reduced, i) {
			dims = append(dims, d)
			if !keep {
				continue
			}
		}
		rest = append(rest, d)
	}
	if !slices.IsSorted(rest) {
		return false
	}
	slices.Sort(dims)
	o.SetOperand(0, inner.Operands[0])
	o.SetAttr("dims", op.IntList(dims...))
	return true
}
