package fuse

import (
	"math/bits"
	"slices"
)

// enumeration enumerates the kernels that can be chosen in a state: connected
// sets of nodes, grown from a demanded value by the producers of its kernel's
// inputs and by other demanded values that share a value with it.
type enumeration struct {
	*search
	st    state
	seen  map[set]bool
	found []*choice

	relevant set // the nodes that demanded values depend on
}

func (g *enumeration) extend(k set) {
	if g.seen[k] {
		return
	}
	if g.steps <= 0 || g.p.g.ctx.Err() != nil {
		g.gaveUp, g.steps = true, 0 // nothing else is looked at, or asks again
		return
	}
	g.seen[k] = true
	g.steps--
	g.emit(k)
	var touched, conflicting set
	each(k, func(i int) {
		touched = touched.or(g.p.near[i])
		conflicting = conflicting.or(g.p.conflict[i])
	})
	add := func(i int) {
		if !k.has(i) && !conflicting.has(i) && !g.st.done.has(i) {
			next := k
			next.add(i)
			g.extend(next)
		}
	}
	for i := range g.p.nodes {
		if g.p.near[i].meets(touched) && g.relevant.has(i) {
			add(i)
		}
	}
}

func each(s set, visit func(i int)) {
	for w, x := range s {
		for ; x != 0; x &= x - 1 {
			visit(w*64 + bits.TrailingZeros64(x))
		}
	}
}

// emit adds the kernels of the nodes k, one for each choice of stored values:
// the demanded results of heavy nodes, and any subset of the cheap ones'.
func (g *enumeration) emit(k set) {
	p := g.p
	var must, may []int // indices of values
	heavy := set{}
	ok := true
	inside := set{} // values that nodes of k use
	each(k, func(i int) {
		n := p.g.nodes[p.nodes[i]]
		for _, v := range n.ins {
			inside.add(p.vals[v])
		}
		if p.heavy.has(i) {
			heavy.add(i)
		}
		for _, v := range n.results {
			l := p.vals[v]
			if p.heavy.has(i) {
				for _, u := range p.g.values[v].uses {
					if j, mine := p.local[u]; mine && p.heavy.has(j) && !k.has(j) && !g.st.done.has(j) {
						ok = false // it would be computed after its use
					}
				}
			}
			switch {
			case !g.st.demand.has(l):
			case p.heavy.has(i):
				must = append(must, l)
			default:
				may = append(may, l)
			}
		}
	})
	if !ok {
		return
	}
	if len(may) > maxOptional {
		g.gaveUp = true
		must, may = append(must, may[maxOptional:]...), may[:maxOptional]
	}
	g.steps -= 1 << len(may)
	for mask := range 1 << len(may) {
		var outs set
		for _, l := range must {
			outs.add(l)
		}
		for i, l := range may {
			if mask>>i&1 == 1 {
				outs.add(l)
			}
		}
		if outs != (set{}) && g.useful(k, inside, outs) {
			g.choose(k, heavy, outs)
		}
	}
}

// maxOptional bounds the results of a kernel that it may or may not store.
const maxOptional = 6

// useful reports whether a result of every node of k is stored or used in k.
func (g *enumeration) useful(k, inside, outs set) bool {
	ok := true
	each(k, func(i int) {
		some := false
		for _, v := range g.p.g.nodes[g.p.nodes[i]].results {
			l := g.p.vals[v]
			some = some || inside.has(l) || outs.has(l)
		}
		ok = ok && some
	})
	return ok
}

// choose adds the kernel of nodes k that stores outs if the rest can be
// computed before it.
func (g *enumeration) choose(k, heavy, outs set) {
	p := g.p
	var nodes, stored []int
	var unfused price
	each(k, func(i int) {
		nodes = append(nodes, p.nodes[i])
		unfused = unfused.plus(p.unfused[i])
	})
	each(outs, func(l int) { stored = append(stored, p.value[l]) })
	slices.Sort(stored)
	next := state{done: g.st.done.or(heavy), demand: g.st.demand.minus(outs)}
	s := p.g.kernel(nodes, stored)
	for _, v := range s.ins {
		if p.g.values[v].def < 0 {
			continue
		}
		l := p.vals[v]
		if p.need[l].meets(next.done) {
			return
		}
		if p.owns(v) {
			next.demand.add(l)
		} else if !g.can(v) {
			return
		}
	}
	late := false
	each(next.demand, func(l int) { late = late || p.need[l].meets(next.done) })
	if late {
		return
	}
	g.found = append(g.found, &choice{k: s, next: next, saving: price{unfused.fs - s.price.fs, unfused.bytes - s.price.bytes}})
}
