package plan

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// mostStated bounds how many values between arguments and results a plan states.
const mostStated = 64

// between states the values of the forward pass that would be divided otherwise: what follows from the
// arguments, by the rules of package shard, is not written. The first value that differs is stated, and what
// follows from it is looked at again.
func (w *writer) between() {
	m := w.c.m
	fn := m.fn.Clone()
	mod := &ir.Module{Src: m.straight.m.Src, Ops: []*ir.Op{w.on.Op()}}
	twin := twins(m.fn, fn)
	state := func(v *value, l layout) {
		own := twin[v.v]
		if t := own.Tensor(); t != nil && t.Rank() > 0 {
			r := *t
			r.At.Shard = w.typed(v, l)
			own.Type = &r
		}
	}
	for i, n := range m.nodes {
		if n.o == nil && n.arg.Tensor().Rank() > 0 {
			state(m.result(n, 0), m.vars[m.ofNode[i]].strategies[w.c.choice[m.ofNode[i]]].stored)
		}
	}
	fn.Retype()
	stated := map[int]bool{}
	for range mostStated {
		values, problem := shard.Propagate(mod, fn)
		if problem != nil || values == nil {
			return
		}
		at := w.differs(values, twin, stated)
		if at < 0 {
			return
		}
		n := m.nodes[m.values[at].node]
		o := w.textOp(n.o)
		layouts := make([]layout, len(n.o.Results))
		text := make([]string, len(n.o.Results))
		for i, r := range n.o.Results {
			text[i] = "unit"
			x, isValue := m.of[r]
			if !isValue || len(m.values[x].shape) == 0 {
				continue
			}
			l, ok := w.planned(x)
			if layouts[i] = l; !ok {
				continue
			}
			text[i] = w.sharding(m.values[x], l)
			w.values = append(w.values, Value{Name: o.Results[i].Name, Line: lineOf(w.src, o.Span), Sharding: w.plain(text[i]), Span: o.Head})
		}
		all := text[0]
		if len(text) > 1 {
			all = "[" + strings.Join(text, ", ") + "]"
		}
		for _, like := range w.alike(n.o) {
			w.opAttrs[like] = append(w.opAttrs[like], attribute{op.ShardingAttr, all})
		}
		for x, v := range m.values {
			if k := m.nodes[v.node]; k.o != nil && k.phase == forward && slices.Contains(w.alike(n.o), w.textOp(k.o)) {
				stated[x] = true
				if text[v.index] != "unit" {
					state(v, layouts[v.index])
				}
			}
		}
	}
}

// differs is the first value of the forward pass whose layout is not the planned one; negative if there is none.
func (w *writer) differs(values *shard.Values, twin map[*ir.Value]*ir.Value, stated map[int]bool) int {
	m := w.c.m
	for x, v := range m.values {
		n := m.nodes[v.node]
		if n.o == nil || n.phase != forward || len(v.shape) == 0 || stated[x] {
			continue
		}
		o := w.textOp(n.o)
		if o == nil || len(o.Results) != len(n.o.Results) || slices.ContainsFunc(o.Results, unstatable) {
			continue
		}
		l, ok := w.planned(x)
		if !ok {
			continue
		}
		have, _ := values.Sharding(twin[v.v])
		if have == nil {
			have = w.typed(v, allWhole)
		}
		if !have.Equal(w.typed(v, l)) {
			return x
		}
	}
	return -1
}

// unstatable reports whether the text cannot state how v is divided, or does already.
func unstatable(v *ir.Value) bool {
	t := v.Tensor()
	return t == nil || t.At.Shard != nil || t.Format != nil
}

// planned is the layout of value x in the plan; ok is false of sums that stay partial.
func (w *writer) planned(x int) (l layout, ok bool) {
	m := w.c.m
	v := m.values[x]
	if at := m.ofValue[x]; at >= 0 {
		return m.vars[at].layouts[w.c.choice[at]], true
	}
	at := m.ofNode[v.node]
	l = m.vars[at].strategies[w.c.choice[at]].out[v.index]
	return l, !slices.Contains(l[:len(m.grid.axes)], partial)
}

// typed is how the text states layout l of v. Where several axes divide a dimension, the ones that come last are those along
// which pieces are gathered and sums scattered, since neighbours in the last axes hold what is contiguous: of samples the axes
// that divide parameters too, of other dimensions those that do not.
func (w *writer) typed(v *value, l layout) *types.Sharding {
	s := &types.Sharding{Mesh: types.SymbolOf(w.on.Name), Dims: make([]types.Split, len(v.shape))}
	for _, inner := range []bool{false, true} {
		for a := range w.c.m.grid.axes {
			d := int(l[a])
			if d < 0 || d >= len(s.Dims) || w.c.m.grid.axes[a].Size == 1 {
				continue
			}
			if samples := d == v.batch; inner == (samples == w.parameters[a]) {
				s.Dims[d].Axes = append(s.Dims[d].Axes, types.Axis{Name: w.axes[a]})
			}
		}
	}
	return s
}

// dividesParameters reports whether ops see a parameter divided along axis a.
func (c *candidate) dividesParameters(a int) bool {
	for i, n := range c.m.nodes {
		if n.o != nil {
			continue
		}
		if v := c.m.result(n, 0); !v.micro && c.m.usedBySamples(v) && c.m.vars[c.m.ofNode[i]].strategies[c.choice[c.m.ofNode[i]]].out[0][a] >= 0 {
			return true
		}
	}
	return false
}

// inUse are the layouts in which ops see the tensors of the arguments, nil of one that no op sees.
func (w *writer) inUse() []*types.Sharding {
	m := w.c.m
	out := make([]*types.Sharding, len(m.fn.Args))
	for i, a := range m.fn.Args {
		if like := m.like[a]; like != nil {
			a = like
		}
		x, ok := m.of[a]
		if !ok {
			continue
		}
		v := m.ofNode[m.values[x].node]
		out[i] = w.typed(m.values[x], m.vars[v].strategies[w.c.choice[v]].out[0])
	}
	return out
}

// alike are the ops of the text that are written as o is planned: o's own, and those at its place in other
// layers.
func (w *writer) alike(o *ir.Op) []*ir.Op {
	spans := []source.Span{o.Span}
	if l := w.s.layers; l != nil {
		if k, ok := l.place[o.Span]; ok {
			spans = l.spans[k]
		}
	}
	var out []*ir.Op
	for _, span := range spans {
		if t := w.s.textOps[span]; t != nil && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// twins are the values of copy, by those of f, whose copy it is.
func twins(f, copy *ir.Func) map[*ir.Value]*ir.Value {
	out := map[*ir.Value]*ir.Value{}
	for i, a := range f.Args {
		out[a] = copy.Args[i]
	}
	var all []*ir.Value
	ir.WalkValues(f.Body.Ops, func(v *ir.Value) { all = append(all, v) })
	i := 0
	ir.WalkValues(copy.Body.Ops, func(v *ir.Value) {
		out[all[i]] = v
		i++
	})
	return out
}
