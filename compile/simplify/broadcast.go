package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
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
	if use(o, x) {
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
		return built(b, o, b.Value("broadcast", inner.Operands, []types.Named{attr("dims", pass.Ints(dims...))}, o.Results[0].Type))
	}
	if slices.IsSorted(to) && o.In(0).Elements().Equal(o.Out(0).Elements()) {
		return built(b, o, b.Reshape(x, o.Out(0).Shape...))
	}
	return false
}

// unbroadcast is what an op that broadcasts by itself can read in place of the
// result of the broadcast v: its operand, with dimensions of size 1 between
// where needed. It is nil where the broadcast reorders dimensions. ones is the
// shape to reshape the operand to, nil where it can be read as it is.
func unbroadcast(v *ir.Value) (x *ir.Value, ones []dim.Dim) {
	o := from(v, "broadcast")
	if o == nil {
		return nil, nil
	}
	to, p := op.BroadcastDims(o)
	if p != nil || !slices.IsSorted(to) {
		return nil, nil
	}
	rank := o.Out(0).Rank()
	begin := rank // the first dimension that must be there
	if len(to) > 0 {
		begin = to[0]
	}
	ones = make([]dim.Dim, rank-begin)
	for i := range ones {
		ones[i] = dim.Const(1)
	}
	for i, d := range to {
		ones[d-begin] = o.In(0).Shape[i]
	}
	if len(ones) == o.In(0).Rank() {
		return o.Operands[0], nil
	}
	return o.Operands[0], ones
}

// elementwise reports whether o's operands broadcast.
func elementwise(o *ir.Op) bool {
	return op.Of(o).Is(op.Pointwise) && !op.Of(o).Is(op.Random) && len(o.Operands) > 0
}

func broadcastInto(_ *rewriter, o *ir.Op) bool {
	if !elementwise(o) || len(o.Operands) < 2 {
		return false
	}
	for i, v := range o.Operands {
		x, ones := unbroadcast(v)
		if x == nil {
			continue
		}
		rank := len(ones)
		if ones == nil {
			rank = len(x.Tensor().Shape)
		}
		if !coversWithout(o, i, rank) {
			continue
		}
		b := pass.Before(o)
		if ones != nil {
			x = b.Reshape(x, ones...)
		}
		if b.Err() != nil {
			b.Undo()
			continue
		}
		if !reads(o, i, x) {
			b.Undo()
			continue
		}
		return true
	}
	return false
}

// reads makes x operand i of o and reports true where o's rules allow it: of an
// optimizer, all operands have one shape.
func reads(o *ir.Op, i int, x *ir.Value) bool {
	before := o.Operands[i]
	o.SetOperand(i, x)
	if verify.Op(o) == nil {
		return true
	}
	o.SetOperand(i, before)
	return false
}

func splatInto(_ *rewriter, o *ir.Op) bool {
	if !elementwise(o) || len(o.Operands) < 2 {
		return false
	}
	for i, v := range o.Operands {
		n, ok := numberOf(v)
		if t := v.Tensor(); !ok || t == nil || t.Rank() == 0 || !coversWithout(o, i, 0) {
			continue
		}
		b := pass.Before(o)
		c := literalOf(b, v.Tensor().With(), n.tensor())
		if b.Err() != nil {
			b.Undo()
			continue
		}
		if !reads(o, i, c) {
			b.Undo()
			continue
		}
		return true
	}
	return false
}

// coversWithout reports whether o's operands have the result's shape together
// where number i gives way to one of that rank which repeats nothing.
func coversWithout(o *ir.Op, i, rank int) bool {
	want := o.Out(0)
	for d := range want.Shape {
		covered := isOne(want, d) && d >= want.Rank()-rank
		for j := range o.Operands {
			t := o.In(j)
			at := d - want.Rank() + t.Rank()
			covered = covered || j != i && at >= 0 && t.Shape[at].Equal(want.Shape[d])
		}
		if !covered {
			return false
		}
	}
	return true
}

func broadcastBehind(_ *rewriter, o *ir.Op) bool {
	if !elementwise(o) || len(o.Results) != 1 || len(o.Regions) > 0 {
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
	return built(b, o, b.Value("broadcast", []*ir.Value{y}, []types.Named{attr("dims", pass.Ints(to...))}, o.Results[0].Type))
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
	e, err := op.ParseEquation(op.Str(o, "equation"), len(o.Operands))
	if err != nil || len(o.Operands) < 2 || e.Diagonal() {
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
