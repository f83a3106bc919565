package fuse

import (
	"math/bits"
	"slices"
)

// growth lists the kernels that can be chosen in a state: connected sets of
// nodes, grown from a demanded value by what its kernel reads and by other
// demanded values that share something with it.
type growth struct {
	*search
	st    state
	seen  map[set]bool
	left  int // sets that may still be looked at
	found []*choice
}

func (g *growth) grow(k set) {
	for {
		if g.seen[k] || g.steps <= 0 || g.left <= 0 {
			return
		}
		g.seen[k] = true
		g.steps--
		g.left--
		g.emit(k)
		if !g.p.long {
			break
		}
		i, ok := g.pulled(k)
		if !ok {
			break
		}
		k.add(i)
	}
	touched, apart := g.reach(k)
	add := func(i int) {
		if !k.has(i) && !apart.has(i) && !g.st.done.has(i) {
			next := k
			next.add(i)
			g.grow(next)
		}
	}
	p := g.p
	each(touched, func(l int) {
		if d := p.g.values[p.value[l]].def; d >= 0 {
			if i, ok := p.local[d]; ok {
				add(i)
			}
		}
	})
	each(g.st.demand, func(l int) {
		if i := p.local[p.g.values[p.value[l]].def]; p.near[i].meets(touched) {
			add(i)
		}
	})
}

// reach is what the nodes of k touch, and what none of them can be together with.
func (g *growth) reach(k set) (touched, apart set) {
	each(k, func(i int) {
		touched = touched.or(g.p.near[i])
		apart = apart.or(g.p.apart[i])
	})
	return touched, apart
}

// pulled is a node that k is tried with and, in a long part, not without: all
// that uses it is in k or computed already, and it reads no more (but for rows'
// and columns' worth) than it gives k, or no contraction could take it.
func (g *growth) pulled(k set) (place int, ok bool) {
	p := g.p
	touched, apart := g.reach(k)
	found := -1
	each(touched, func(l int) {
		d := p.g.values[p.value[l]].def
		i, mine := p.local[d]
		if found >= 0 || d < 0 || !mine || k.has(i) || apart.has(i) || g.st.done.has(i) {
			return
		}
		n := p.g.nodes[d]
		var gives, reads int64
		for _, v := range n.results {
			for _, u := range p.g.values[v].uses {
				j, local := p.local[u]
				if local && k.has(j) {
					gives = max(gives, p.g.values[v].size)
				} else if !local || !g.st.done.has(j) {
					return
				}
			}
			if p.g.values[v].out && g.st.demand.has(p.vals[v]) && !p.locked.has(i) {
				return
			}
		}
		if gives == 0 {
			return
		}
		for _, v := range n.ins {
			if m := p.vals[v]; !touched.has(m) {
				reads += p.g.values[v].size
			}
		}
		if p.locked.has(i) || reads <= gives+gives/64 {
			found = i
		}
	})
	if found >= 0 {
		return found, true
	}
	each(g.st.demand, func(l int) {
		i := p.local[p.g.values[p.value[l]].def]
		if found < 0 && p.locked.has(i) && !k.has(i) && !apart.has(i) && p.near[i].meets(touched) {
			found = i
		}
	})
	return found, found >= 0
}

func each(s set, visit func(i int)) {
	for w, x := range s {
		for ; x != 0; x &= x - 1 {
			visit(w*64 + bits.TrailingZeros64(x))
		}
	}
}

// emit adds the kernels of the nodes k, one for each choice of what it stores:
// what is demanded of its heavy nodes, and any of the cheap ones' results.
func (g *growth) emit(k set) {
	p := g.p
	var must, may []int // numbers of values
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
						ok = false // it would be computed after what uses it
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

// maxOptional bounds the results of one kernel that it may or may not store.
const maxOptional = 6

// useful reports whether every node of k gives something that is stored or used.
func (g *growth) useful(k, inside, outs set) bool {
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

// choose adds the kernel of nodes k that stores outs, where the rest can still
// be computed before it.
func (g *growth) choose(k, heavy, outs set) {
	p := g.p
	var nodes, stored []int
	var solo price
	each(k, func(i int) {
		nodes = append(nodes, p.nodes[i])
		solo = solo.plus(p.solo[i])
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
	g.found = append(g.found, &choice{k: s, next: next, saving: price{solo.fs - s.price.fs, solo.bytes - s.price.bytes}})
}
