package kernel

import (
	"slices"

	"dmir/dialect/op"
)

// Phased is f, a convolution whose image has zeros between its elements, as batched matrix products of the phases of its
// outputs, of which each has a part of k: its taps of the window, each with all channels. So no product is one with a zero between
// elements. It is nil where f is none, or its results are not those of such products.
func (f *Form) Phased() *Tiled {
	if f.Class != ClassContraction || len(f.Mains) != 1 || !op.Of(f.Main).Is(op.Windowed) {
		return nil
	}
	whole, err := ContractionOf(f.Main)
	if err != nil {
		return nil
	}
	phases := op.PhasesOf(f.Main)
	if phases == nil {
		return nil
	}
	t, err := f.tiled(whole.divided(phases))
	if err != nil {
		return nil
	}
	if _, _, _, err := t.Results(1); err != nil {
		return nil
	}
	return t
}

// divided is c, a convolution, by the phases of its outputs.
func (c *Contraction) divided(f *op.Phases) *Contraction {
	d := *c
	d.phases = f
	d.Sizes = map[byte]int64{convPhase: int64(len(f.All)), convTap: int64(len(f.Taps))}
	for l, n := range c.Sizes {
		d.Sizes[l] = n
	}
	for i := range f.Period {
		d.Sizes[convSpace[i]] = (c.Sizes[convSpace[i]] + f.Period[i] - 1) / f.Period[i]
		delete(d.Sizes, convWindow[i])
	}
	d.Out += string([]byte{convPhase})
	d.Sum = string([]byte{convTap, convIn})
	return &d
}

// ofPhase is the element of operand i of a convolution that is divided, for an index of each letter.
func (c *Contraction) ofPhase(e *evaluator, i int, of map[byte]Index) *Expr {
	v, f := c.Op.Operands[i], c.phases
	shape := shapeOf(v)
	idx := make([]Index, len(shape))
	tap := func(value func(t op.PhaseTap) int64) Index {
		values := make([]int64, len(f.Taps))
		for n, t := range f.Taps {
			values[n] = value(t)
		}
		return e.Table(of[convTap], values)
	}
	if i == 1 {
		idx[0], idx[1] = of[convGroup].Times(c.Sizes[convOut]).Add(of[convOut]), of[convIn]
		copy(idx[2:], e.Unlinear(tap(func(t op.PhaseTap) int64 { return t.Number }), shape[2:]))
		return e.at(v, idx)
	}
	idx[0], idx[1] = of[convImage], of[convGroup].Times(c.Sizes[convIn]).Add(of[convIn])
	var inside []Condition
	for d, n := range shape[2:] {
		x := of[convSpace[d]].Times(f.Step[d]).Add(tap(func(t op.PhaseTap) int64 { return t.At[d] }))
		inside, idx[2+d] = append(inside, Condition{X: x, Lo: 0, Hi: n}), e.Within(x, 0, max(n-1, 0))
	}
	x := e.at(v, idx)
	return e.guard(inside, x, e.number(x.Elem, 0))
}

// place is where an output of a phase lies along spatial dimension d, and the condition under which there is one.
func (c *Contraction) place(e *evaluator, d int, of map[byte]Index) (Index, Condition) {
	f := c.phases
	first := make([]int64, len(f.All))
	for n, p := range f.All {
		first[n] = p.First[d]
	}
	size := shapeOf(c.Op.Results[0])[2+d]
	x := of[convSpace[d]].Times(f.Period[d]).Add(e.Table(of[convPhase], first))
	return e.Within(x, 0, size-1), Condition{X: x, Lo: 0, Hi: size}
}

// uneven are the conditions under which the outputs of all phases exist, of which some have one less than others.
func (t *Tiled) uneven(e *evaluator, of map[byte]Index) (all []Condition) {
	if t.c.phases == nil {
		return nil
	}
	for d := range t.c.phases.Period {
		if _, c := t.c.place(e, d, of); !c.always() {
			all = append(all, c)
		}
	}
	return all
}

// PhasePart is the part of k that a phase has: from Begin on, below End. Z is the variable of the batch, nil where there is one phase.
type PhasePart struct {
	Z          *Atom
	Begin, End Index
}

// PhasePart is that of t's phases; nil where there are none.
func (t *Tiled) PhasePart() *PhasePart {
	f := t.c.phases
	if f == nil {
		return nil
	}
	begin, end := make([]int64, len(f.All)), make([]int64, len(f.All))
	for n, p := range f.All {
		begin[n], end[n] = p.Begin*t.c.Sizes[convIn], p.End*t.c.Sizes[convIn]
	}
	e, of, flat := t.flatten("", 1, false)
	return &PhasePart{flat.Z, e.Table(of[convPhase], begin), e.Table(of[convPhase], end)}
}

// Phases is how many phases share k; 0 where there are none.
func (t *Tiled) Phases() int64 {
	if t.c.phases == nil {
		return 0
	}
	return int64(len(t.c.phases.All))
}

// Channels is how much of k each tap of a phase has.
func (t *Tiled) Channels() int64 { return t.c.Sizes[convIn] }

// existing is x where all conditions hold, and else what leaves a reduction of that kind as it is.
func (e *evaluator) existing(conds []Condition, x *Expr, kind string) *Expr {
	f, i := Identity(kind, x.Elem)
	return e.guard(conds, x, (&constant{f, i}).number(e.Space, x.Elem))
}

// Table is values[x], where x is one of their numbers.
func (s *Space) Table(x Index, values []int64) Index {
	if len(x.Terms) == 0 {
		return Const(values[x.C])
	}
	least := slices.Min(values)
	if least == slices.Max(values) {
		return Const(least)
	}
	step := values[1] - values[0]
	straight := step > 0 // strides of tensor maps are not negative
	for i, v := range values {
		straight = straight && v == values[0]+int64(i)*step
	}
	if straight {
		return x.Times(step).Plus(values[0])
	}
	shared := int64(0)
	for _, v := range values {
		shared = GCD(shared, v-least)
	}
	a := Atom{Kind: Table, X: x}
	for _, v := range values {
		a.Values = append(a.Values, (v-least)/shared)
	}
	a.Max = slices.Max(a.Values)
	return s.atom(a).Times(shared).Plus(least)
}
