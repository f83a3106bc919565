package plan

import (
	"cmp"
	"slices"
	"strings"

	"dmir/dialect/autodiff"
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
	stated, of := map[int]bool{}, map[int]int(nil)
	var users map[int][]*link
	if !w.leave {
		of, users = m.gradients(), m.users()
	}
	for range mostStated {
		values, problem := shard.Propagate(mod, fn)
		if problem != nil || values == nil {
			return
		}
		at := w.differs(values, twin, stated)
		if at < 0 {
			if at = w.gathers(values, twin, stated, of, users); at < 0 {
				return
			}
			w.stateGradient(at, of, stated, state)
			continue
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
		if o == nil || len(o.Results) != len(n.o.Results) || slices.ContainsFunc(o.Results, unstatable) || m.inside(v) {
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

// gradients are the values of the backward pass that are gradients by a value of the forward pass, and these.
func (g *graph) gradients() map[int]int {
	by := map[string]int{}
	for x, v := range g.values {
		if n := g.nodes[v.node]; n.o != nil && n.o.Attr(forwardAttr) != nil && v.v.Name != "" {
			by[autodiff.CotangentName(v.v)] = x
		}
	}
	of := map[int]int{}
	for x, v := range g.values {
		if n := g.nodes[v.node]; n.o != nil && n.o.Attr(forwardAttr) == nil {
			if y, ok := by[v.v.Name]; ok {
				of[x] = y
			}
		}
	}
	return of
}

// gathers is the first gradient by a value of the forward pass that propagation divides otherwise than planned, so that devices would
// exchange more; negative if there is none.
func (w *writer) gathers(values *shard.Values, twin map[*ir.Value]*ir.Value, stated map[int]bool, of map[int]int, users map[int][]*link) int {
	m := w.c.m
	for x, v := range m.values {
		y, is := of[x]
		if !is || len(v.shape) == 0 || stated[x] || m.inside(m.values[y]) {
			continue
		}
		o := w.textOp(m.nodes[m.values[y].node].o)
		if o == nil || len(o.Results) != 1 {
			continue
		}
		if t := o.Results[0].Tensor(); t == nil || t.Format != nil || t.Rank() != len(v.shape) { // pieces of sparse tensors have one more dimension
			continue
		}
		l, ok := w.planned(x)
		have, _ := values.Sharding(twin[v.v])
		if ok && w.moving(x, users[x], w.laid(have)) > w.moving(x, users[x], l)+leastMoving {
			return x
		}
	}
	return -1
}

// leastMoving is the time, in s, from which on it is worth a word in the text that devices exchange less.
const leastMoving = 1e-7

// stateGradient states how the gradient x is divided, at the op whose result it is by, and at those of other layers.
func (w *writer) stateGradient(x int, of map[int]int, stated map[int]bool, state func(*value, layout)) {
	m := w.c.m
	l, _ := w.planned(x)
	o := m.nodes[m.values[of[x]].node].o
	text := w.sharding(m.values[x], l)
	like := w.alike(o)
	w.gradients++
	for _, o := range like {
		w.opAttrs[o] = append(w.opAttrs[o], attribute{op.GradientShardingAttr, text})
	}
	for k, y := range of {
		if slices.Contains(like, w.textOp(m.nodes[m.values[y].node].o)) {
			stated[k] = true
			state(m.values[k], l)
		}
	}
}

// users are, by value, the links to the ops that use it.
func (m *model) users() map[int][]*link {
	out := map[int][]*link{}
	for i := range m.links {
		if k := &m.links[i]; k.node >= 0 {
			out[k.value] = append(out[k.value], k)
		}
	}
	return out
}

// moving is how long it takes to bring value x from the layout in which it is made to l, and from there to its users.
func (w *writer) moving(x int, users []*link, l layout) float64 {
	m, v := w.c.m, w.c.m.values[x]
	at := m.ofNode[v.node]
	t := m.grid.convert(v, m.vars[at].strategies[w.c.choice[at]].out[v.index], l).time
	for _, k := range users {
		t += m.grid.convert(v, l, m.wanted(k, w.c.choice[k.to])).time
	}
	return t
}

// laid is the layout that s states on the axes that divide values, nil that of a value that is whole.
func (w *writer) laid(s *types.Sharding) layout {
	l := allWhole
	if s == nil {
		return l
	}
	for d, split := range s.Dims {
		for _, a := range split.Axes {
			if i := slices.Index(w.axes, a.Name); i >= 0 {
				l[i] = int8(d)
			}
		}
	}
	return l
}

// inside reports whether v is between ops that one op of the text is written out as.
func (g *graph) inside(v *value) bool {
	o := g.nodes[v.node].o
	return slices.ContainsFunc(v.uses, func(u use) bool { n := g.nodes[u.node]; return n.phase == forward && n.o.Span == o.Span })
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

// typed is how the text states layout l of v.
func (w *writer) typed(v *value, l layout) *types.Sharding {
	s := &types.Sharding{Mesh: types.SymbolOf(w.on.Name), Dims: make([]types.Split, len(v.shape))}
	for d := range s.Dims {
		order := w.order.others
		if d == v.batch {
			order = w.order.samples
		}
		for _, a := range order {
			if int(l[a]) == d && w.c.m.grid.axes[a].Size > 1 {
				s.Dims[d].Axes = append(s.Dims[d].Axes, types.Axis{Name: w.axes[a]})
			}
		}
	}
	return s
}

// nesting is in which order the axes that divide a dimension are written, of samples and of other dimensions.
type nesting struct{ samples, others []int }

// nesting puts the axis last along which pieces are cut, gathered and sums scattered: neighbours along the last axis hold what is
// contiguous, so that a moment divided over {tensor, data} is a slice of a gradient divided over {tensor}.
func (c *candidate) nesting() nesting {
	m := c.m
	var first [2][maxAxes]float64 // bytes that change between a layout with an axis and one with others behind it
	note := func(v *value, a, b layout) {
		for d := range v.shape {
			if m.grid.parts(a, d) > m.grid.parts(b, d) {
				a, b = b, a
			}
			kind := 0
			if d != v.batch {
				kind = 1
			}
			inside, more := true, false
			for x := range m.grid.axes {
				inside = inside && (a[x] != int8(d) || b[x] == int8(d))
				more = more || a[x] != int8(d) && b[x] == int8(d)
			}
			for x := range m.grid.axes {
				if inside && more && m.grid.parts(a, d) > 1 && b[x] == int8(d) {
					if a[x] == int8(d) {
						first[kind][x] += v.bytes
					} else {
						first[kind][x] -= v.bytes
					}
				}
			}
		}
	}
	for i := range m.links {
		k := &m.links[i]
		note(m.values[k.value], m.made(k, c.choice[k.from]), m.wanted(k, c.choice[k.to]))
	}
	for i, n := range m.nodes {
		if n.o == nil {
			s := &m.vars[m.ofNode[i]].strategies[c.choice[m.ofNode[i]]]
			note(m.result(n, 0), s.stored, s.out[0])
		}
	}
	var order [2][]int
	for kind := range order {
		for a := range m.grid.axes {
			order[kind] = append(order[kind], a)
		}
		slices.SortStableFunc(order[kind], func(a, b int) int { return cmp.Compare(first[kind][b], first[kind][a]) })
	}
	return nesting{order[0], order[1]}
}

// inUse are the layouts in which ops see the tensors of the arguments, nil of one that no op sees, and which of them are gathered
// again for the backward pass.
func (w *writer) inUse() (out []*types.Sharding, again []bool) {
	m := w.c.m
	out, again = make([]*types.Sharding, len(m.fn.Args)), make([]bool, len(m.fn.Args))
	for i, a := range m.fn.Args {
		if like := m.like[a]; like != nil {
			a = like
		}
		x, ok := m.of[a]
		if !ok {
			continue
		}
		v := m.ofNode[m.values[x].node]
		s := &m.vars[v].strategies[w.c.choice[v]]
		out[i], again[i] = w.typed(m.values[x], s.out[0]), s.again
	}
	first := 0 // of the arguments of the text, those of layers in one
	for i := 0; i < len(out); i += m.pieces(i) {
		out[first], again[first] = out[i], again[i]
		first++
	}
	return out[:first], again[:first]
}

// alike are the ops of the text that are written as o is planned: o's own, and those at its place in other
// layers.
func (w *writer) alike(o *ir.Op) []*ir.Op {
	spans := []source.Span{o.Span}
	if l := w.c.m.layers; l != nil {
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
