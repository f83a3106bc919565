package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// StackResult is the result of o, a dm.scan, that stacks v, a value of its body; one
// more where it has none yet.
func StackResult(o *ir.Op, v *ir.Value) *ir.Value {
	yield, c := o.Body(0).Terminator(), Carries(o)
	if i := slices.Index(yield.Operands[c:], v); i >= 0 {
		return o.Results[c+i]
	}
	n, _ := Trips(o)
	made := &ir.Value{Type: StackOf(n, v.Tensor()), Span: o.Head}
	if len(v.Name) > 1 {
		made.Name = v.Name + "_all"
	}
	AddResult(o, made)
	yield.SetOperands(append(yield.Operands[:len(yield.Operands):len(yield.Operands)], v)...)
	return made
}

// StackOperand gives o, a dm.scan, one more stack, x, and is its slice in the body.
func StackOperand(o *ir.Op, x *ir.Value) *ir.Value {
	o.SetOperands(append(o.Operands[:len(o.Operands):len(o.Operands)], x)...)
	return o.Body(0).AddArg("", SliceOf(x.Tensor()))
}

// DropStack takes stack i, operand i of o, a dm.scan, away, whose slice is unused; it
// reports whether the number of iterations is known without it.
func DropStack(o *ir.Op, i int) bool {
	if n, _ := Trips(o); Attr(o, "length") == nil && len(o.Operands) == Carries(o)+1 {
		size, ok := n.Int()
		if !ok {
			return false
		}
		o.SetAttr("length", types.Int{V: size})
	}
	dropOperand(o, i)
	return true
}

// DropStacked takes result i of o, a dm.scan, away, which is stacked and unused.
func DropStacked(o *ir.Op, i int) {
	DropResult(o, i)
	yield := o.Body(0).Terminator()
	yield.SetOperands(slices.Delete(slices.Clone(yield.Operands), i, i+1)...)
}

// DropCarried takes carried value i of o, a dm.scan, away: its result is unused, and
// so is the argument of the body but for what is yielded in its place.
func DropCarried(o *ir.Op, i int) {
	c := Carries(o)
	DropStacked(o, i)
	o.SetAttr("carries", types.Int{V: int64(c - 1)})
	dropOperand(o, i)
}

func dropOperand(o *ir.Op, i int) {
	o.SetOperands(slices.Delete(slices.Clone(o.Operands), i, i+1)...)
	b := o.Body(0)
	b.Args = slices.Delete(slices.Clone(b.Args), i, i+1)
	for k, a := range b.Args {
		a.Index = k
	}
}
