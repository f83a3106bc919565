package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func broadcastRules() []Rule {
	return []Rule{
		{
			Name: "broadcast-chain", Doc: "A broadcast to the same shape is its operand; a broadcast of a broadcast is one; one that only adds dimensions of size 1 is a reshape.",
			Ops: []string{"broadcast"}, apply: broadcastChain,
		},
		{
			Name: "broadcast-behind-elementwise", Doc: "An element-wise op whose operands were all repeated alike computes once, and its result is repeated.",
			apply: broadcastBehind,
		},
		{
			Name: "broadcast-into-elementwise", Doc: "Element-wise ops broadcast by themselves: they read the operand of the broadcast.",
			apply: broadcastInto,
		},
		{
			Name: "splat-into-elementwise", Doc: "Where an element-wise op reads a constant of one value and any shape, it reads the single value.",
			apply: splatInto,
		},
		{
			Name: "broadcast-into-einsum", Doc: "A letter along which an operand was repeated leaves it, where another operand has the letter.",
			Ops: []string{"einsum"}, apply: broadcastIntoEinsum,
		},
	}
}

func broadcastChain(_ *rewriter, o *ir.Op) bool {
	x := o.Operands[0]
	if gone(o) {
		return true
	}
	to, p := op.BroadcastDims(o)
	if p != nil {
		return false
	}
	b := pass.Before(o)
	if inner := from(x, "broadcast"); inner != nil {
		first, p := op.BroadcastDims(inner)
		if p != nil {
			return false
		}
		dims := make([]int, len(first))
		for i, d := range first {
			dims[i] = to[d]
		}
		return built(b, o, b.Value("broadcast", inner.Operands, []types.Named{attr("dims", op.IntList(dims...))}, o.Results[0].Type))
	}
	if slices.IsSorted(to) && o.In(0).Elements().Equal(o.Out(0).Elements()) {
		return built(b, o, b.Reshape(x, o.Out(0).Shape...))
	}
	return false
}

func broadcastInto(_ *rewriter, o *ir.Op) bool {
	for _, v := range o.Operands {
		x, shape := pattern.WithoutBroadcast(o, v)
		if x == nil || !plain(v.Op) {
			continue
		}
		b := pass.Before(o)
		if shape != nil {
			x = b.Reshape(x, shape...)
		}
		if b.Err() != nil {
			b.Undo()
			continue
		}
		replaceOperand(o, v, x)
		return true
	}
	return false
}

// replaceOperand makes o read x wherever it reads v.
func replaceOperand(o *ir.Op, v, x *ir.Value) {
	for i, w := range o.Operands {
		if w == v {
			o.SetOperand(i, x)
		}
	}
}

func splatInto(_ *rewriter, o *ir.Op) bool {
	for _, v := range o.Operands {
		n, ok := numberOf(v)
		if t := v.Tensor(); !ok || t == nil || t.Rank() == 0 || !pattern.Reads(o, v, t.With()) {
			continue
		}
		b := pass.Before(o)
		c := literalOf(b, v.Tensor().With(), n.tensor())
		if b.Err() != nil {
			b.Undo()
			continue
		}
		replaceOperand(o, v, c)
		return true
	}
	return false
}

func broadcastBehind(_ *rewriter, o *ir.Op) bool {
	if !pattern.Elementwise(o) || len(o.Results) != 1 || len(o.Regions) > 0 {
		return false
	}
	first := from(o.Operands[0], "broadcast")
	if first == nil {
		return false
	}
	to, p := op.BroadcastDims(first)
	if p != nil {
		return false
	}
	operands := make([]*ir.Value, len(o.Operands))
	for i, v := range o.Operands {
		each := from(v, "broadcast")
		if each == nil {
			if n, ok := v.Type.(*types.Tensor); !ok || n.Rank() != 0 {
				return false
			}
			operands[i] = v // a single value goes with any shape
			continue
		}
		dims, p := op.BroadcastDims(each)
		if p != nil || !slices.Equal(dims, to) || !types.Equal(each.Results[0].Type, shaped(each.Out(0), first.Out(0))) || !sameShape(each.In(0), first.In(0)) {
			return false
		}
		operands[i] = each.Operands[0]
	}
	if !sameShape(first.Out(0), o.Out(0)) || first.In(0).Elements().Equal(o.Out(0).Elements()) {
		return false
	}
	b := pass.Before(o)
	small := first.In(0).With(first.In(0).Shape...)
	small.Elem = o.Out(0).Elem
	y := b.Value(o.Name, operands, o.Attrs, small)
	return built(b, o, b.Value("broadcast", []*ir.Value{y}, []types.Named{attr("dims", op.IntList(to...))}, o.Results[0].Type))
}

// shaped is t with the shape of s.
func shaped(t, s *types.Tensor) *types.Tensor {
	r := *t
	r.Shape = s.Shape
	return &r
}

func sameShape(a, b *types.Tensor) bool {
	return slices.EqualFunc(a.Shape, b.Shape, dim.Dim.Equal)
}

func broadcastIntoEinsum(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || len(o.Operands) < 2 || e.Diagonal() {
		return false
	}
	for i, v := range o.Operands {
		inner := from(v, "broadcast")
		if inner == nil {
			continue
		}
		to, p := op.BroadcastDims(inner)
		if p != nil {
			continue
		}
		// Letters of the dimensions that the broadcast repeats.
		letters, gone := "", ""
		dropOnes := false
		for d := range e.Inputs[i] {
			at := slices.Index(to, d)
			switch {
			case at < 0 || !inner.In(0).Shape[at].Equal(inner.Out(0).Shape[d]):
				gone += e.Inputs[i][d : d+1]
				dropOnes = dropOnes || at >= 0
			}
		}
		if !slices.IsSorted(to) || !elsewhere(e, i, gone) {
			continue
		}
		var shape []dim.Dim
		for at, d := range to {
			if inner.In(0).Shape[at].Equal(inner.Out(0).Shape[d]) {
				letters += e.Inputs[i][d : d+1]
				shape = append(shape, inner.In(0).Shape[at])
			}
		}
		b := pass.Before(o)
		x := inner.Operands[0]
		if dropOnes {
			x = b.Reshape(x, shape...)
		}
		if b.Err() != nil {
			b.Undo()
			continue
		}
		e.Inputs[i] = letters
		o.SetOperand(i, x)
		setEquation(o, e.Inputs, e.Output)
		return true
	}
	return false
}

// elsewhere reports whether operands other than number i have all the letters.
func elsewhere(e *op.Equation, i int, letters string) bool {
	for _, l := range letters {
		found := false
		for j, in := range e.Inputs {
			found = found || j != i && contains(split(in), string(l))
		}
		if !found {
			return false
		}
	}
	return letters != ""
}
