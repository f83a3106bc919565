package schedule

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// apply rewrites g's body to the order of r, with the ops that r repeats, and
// returns the ops of the steps in that order. A body in that order is left as it
// is.
func apply(g *model, r *rematerialized) []*ir.Op {
	if len(r.repeated) == 0 && slices.IsSortedFunc(r.order, func(i, j int) int { return r.origin[i] - r.origin[j] }) {
		out := make([]*ir.Op, len(g.steps))
		for i, s := range g.steps {
			out[i] = s.op
		}
		return out
	}
	body := g.body.Block
	a := &applier{g: g, r: r, value: map[int]*ir.Value{}, viewed: map[view]*ir.Value{}, placed: map[*ir.Op]bool{}}
	for _, x := range g.roots {
		if !x.persistent() {
			a.store = append(a.store, x)
		}
	}
	for s, x := range a.store {
		a.value[s] = x.value
	}
	unused := map[*ir.Op]bool{} // views that were dead before, which are kept
	for _, v := range g.views {
		unused[v] = len(v.Results[0].Uses) == 0
	}
	last := body.Ops[len(body.Ops)-1]
	var steps []*ir.Op
	for _, i := range r.order {
		o := a.task(i)
		steps = append(steps, o)
		if !slices.Contains(r.repeated, i) {
			for _, v := range g.views {
				if x := g.rootOf[v.Results[0]]; x != nil && x.maker == g.steps[r.origin[i]] {
					a.ops = append(a.ops, v)
				}
			}
		}
	}
	for _, o := range g.consts {
		a.need(o.Results[0])
	}
	for _, v := range g.views {
		a.need(v.Results[0])
	}
	a.ops = append(a.ops, last)
	body.Ops = a.ops
	for i := len(g.views) - 1; i >= 0; i-- {
		if v := g.views[i]; len(v.Results[0].Uses) == 0 && !unused[v] {
			ir.Erase(v)
		}
	}
	return steps
}

type applier struct {
	g      *model
	r      *rematerialized
	store  []*root // of the stores of the start
	value  map[int]*ir.Value
	viewed map[view]*ir.Value
	placed map[*ir.Op]bool // constants, and views of constants and inputs
	ops    []*ir.Op
}

// need appends the op of v, if it is a constant or a view of one or of an
// input and not yet placed: each is before its first use.
func (a *applier) need(v *ir.Value) {
	x := a.g.rootOf[v]
	if x == nil || !x.persistent() || !a.g.body.Defines(v) || a.placed[v.Op] {
		return
	}
	a.placed[v.Op] = true
	for _, w := range v.Op.Operands {
		a.need(w)
	}
	a.ops = append(a.ops, v.Op)
}

// view is a view of the value in a store.
type view struct {
	of    *ir.Value // in the text: of the first definition
	store int
}

// task appends the op of task i, with the views that it needs, and returns it.
func (a *applier) task(i int) *ir.Op {
	r := a.r
	step := a.g.steps[r.origin[i]]
	instead := map[*root]int{} // the store to read instead of the value's own
	for _, s := range r.tasks[i].reads {
		if r.from[s] != s {
			instead[a.store[r.from[s]]] = s
		}
	}
	first := !slices.Contains(r.repeated, i)
	o := step.op
	if !first {
		var keep []int
		for _, s := range r.tasks[i].makes {
			keep = append(keep, a.store[r.from[s]].value.Index)
		}
		o = again(step.op, keep)
		for k, s := range r.tasks[i].makes {
			a.value[s] = o.Results[k]
		}
	}
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for k, v := range p.Operands {
			if x := a.g.rootOf[v]; x != nil {
				a.need(v)
				if s, ok := instead[x]; ok {
					p.SetOperand(k, a.as(v, s))
				}
			}
		}
		return true
	})
	a.ops = append(a.ops, o)
	return o
}

// as is v, a value of the text or a view of one, in terms of the value in store
// s.
func (a *applier) as(v *ir.Value, s int) *ir.Value {
	if a.store[a.r.from[s]].value == v {
		return a.value[s]
	}
	if w := a.viewed[view{v, s}]; w != nil {
		return w
	}
	o := copyOp(v.Op, v.Op.Parent, map[*ir.Value]*ir.Value{v.Op.Operands[0]: a.as(v.Op.Operands[0], s)})
	a.ops = append(a.ops, o)
	a.viewed[view{v, s}] = o.Results[0]
	return o.Results[0]
}

// again is a copy of o with only the listed results, in no block. Ops of a
// kernel that only the other results need are removed.
func again(o *ir.Op, keep []int) *ir.Op {
	c := copyOp(o, o.Parent, map[*ir.Value]*ir.Value{})
	if n := o.Str(pass.NameAttr); n != "" {
		c.SetAttr(pass.NameAttr, types.Str(n+"_again"))
	}
	if len(keep) == len(o.Results) {
		return c
	}
	yield := c.Body(0).Terminator()
	var results, yielded []*ir.Value
	for at, i := range keep {
		v := c.Results[i]
		v.Index = at
		v.Name = plainName(v.Name)
		results = append(results, v)
		yielded = append(yielded, yield.Operands[i])
	}
	c.Results = results
	yield.SetOperands(yielded...)
	op.RemoveDead(c.Body(0))
	return c
}

// plainName is name unless it is a part of a group, "%r#1", whose number would
// be wrong in another group.
func plainName(name string) string {
	for i := range len(name) {
		if name[i] == '#' {
			return name[:i]
		}
	}
	return name
}

// copyOp is a copy of o and its regions, with operands replaced by now, to
// which it adds its results. It is in no block, but records its uses.
func copyOp(o *ir.Op, parent *ir.Block, now map[*ir.Value]*ir.Value) *ir.Op {
	c := &ir.Op{Name: o.Name, Attrs: slices.Clone(o.Attrs), Parent: parent, Span: o.Span, Head: o.Head, Loc: o.Loc, Bad: o.Bad}
	for i, v := range o.Operands {
		if w := now[v]; w != nil {
			v = w
		}
		c.Operands = append(c.Operands, v)
		v.Uses = append(v.Uses, ir.Use{Op: c, Index: i})
	}
	for i, v := range o.Results {
		w := &ir.Value{Name: v.Name, Type: v.Type, Op: c, Index: i, Span: v.Span}
		c.Results = append(c.Results, w)
		now[v] = w
	}
	for _, r := range o.Regions {
		n := &ir.Region{Op: c}
		for _, b := range r.Blocks {
			nb := &ir.Block{Label: b.Label, Region: n}
			for i, v := range b.Args {
				w := &ir.Value{Name: v.Name, Type: v.Type, Block: nb, Index: i, Span: v.Span}
				nb.Args = append(nb.Args, w)
				now[v] = w
			}
			for _, p := range b.Ops {
				nb.Ops = append(nb.Ops, copyOp(p, nb, now))
			}
			n.Blocks = append(n.Blocks, nb)
		}
		c.Regions = append(c.Regions, n)
	}
	return c
}
