package fuse

import (
	"cmp"
	"slices"
)

// plan is a set of kernels that give all that is demanded of a part.
type plan struct {
	price   price
	bound   price    // no plan is cheaper
	kernels []*shape // in reverse order of execution
	used    []int    // values of other parts that it reads
}

// state is what is left to do when kernels are chosen from the last to the
// first: the values that those chosen read, and the heavy nodes that no further
// kernel may hold. That a kernel gives only to those chosen before it is what
// keeps plans free of cycles.
type state struct {
	done   set // heavy nodes
	demand set // values
}

// search finds the cheapest plan of a part.
type search struct {
	p      *part
	can    func(v int) bool // whether a value of another part can be read
	steps  int              // left; every set of nodes that is looked at is one
	memo   map[state]*entry
	gaveUp bool // the steps did not last: nothing found means anything
}

type entry struct {
	price price
	pick  *choice // nil at the end, or where nothing is possible
}

// choice is a kernel that may be chosen in a state.
type choice struct {
	k      *shape
	next   state
	saving price // compared with its ops one by one
}

// solve is the cheapest plan in which p stores the values demanded and reads
// those of other parts that can says. Where so many steps do not suffice, it is a
// bound without a plan. used is how many steps were taken.
func (p *part) solve(demand []int, can func(v int) bool, steps int) (best *plan, used int) {
	if p.lone() {
		n := p.g.nodes[p.own[0]]
		k := p.g.kernel(p.own, n.results)
		one := &plan{price: k.price, bound: k.price, kernels: []*shape{k}}
		for _, v := range n.ins {
			if p.g.values[v].def >= 0 {
				one.used = append(one.used, v)
			}
		}
		return one, 0
	}
	var start state
	live := set{}
	for _, v := range demand {
		start.demand.add(p.vals[v])
		live = live.or(p.need[p.vals[v]])
	}
	start.done = p.heavy.minus(live) // others may have found another way to them
	best = &plan{price: never, bound: p.least(demand)}
	if len(p.own) <= longPart {
		s := &search{p: p, can: can, steps: steps, memo: map[state]*entry{}}
		e := s.best(start)
		if used = steps - s.steps; !s.gaveUp {
			best.price, best.bound, best.kernels = e.price, e.price, s.kernels(start)
		}
	}
	if best.price.less(best.bound) {
		best.bound = best.price
	}
	reads := map[int]bool{}
	for _, k := range best.kernels {
		for _, v := range k.ins {
			if p.g.values[v].def >= 0 && !p.owns(v) && !reads[v] {
				reads[v] = true
				best.used = append(best.used, v)
			}
		}
	}
	slices.Sort(best.used)
	return best, used
}

func (s *search) kernels(st state) []*shape {
	var ks []*shape
	for {
		e := s.memo[st]
		if e == nil || e.pick == nil {
			return ks
		}
		ks = append(ks, e.pick.k)
		st = e.pick.next
	}
}

// best is the cheapest way on from st.
func (s *search) best(st state) *entry {
	if e := s.memo[st]; e != nil {
		return e
	}
	e := &entry{price: never}
	s.memo[st] = e
	if st.demand == (set{}) {
		e.price = price{}
		return e
	}
	for _, c := range s.choices(st) {
		if s.gaveUp {
			break
		}
		if !c.k.price.plus(s.bound(c.next)).less(e.price) {
			continue
		}
		if !s.p.g.possible(c.k) {
			continue
		}
		if t := c.k.price.plus(s.best(c.next).price); t.less(e.price) {
			e.price, e.pick = t, c
		}
	}
	return e
}

// bound is a price below which nothing leads on from st: every demanded value
// is written once, what the heavy nodes read of the arguments is read once, and
// each contraction is a kernel of its own.
func (s *search) bound(st state) price {
	p := s.p
	var must, args set
	var bytes int64
	for l, v := range p.value {
		if st.demand.has(l) {
			bytes += p.g.values[v].size
			must = must.or(p.need[l])
		}
	}
	if bytes == 0 {
		return price{}
	}
	var tensor float64
	kernels := 1
	heavy := 0
	for i, n := range p.nodes {
		if !must.has(i) || st.done.has(i) {
			continue
		}
		o := p.g.nodes[n]
		if o.tensor > 0 {
			tensor += o.tensor
			heavy++
		}
		if o.update != nil {
			return price{} // may store less than its result
		}
		for j, v := range o.ins {
			if o.read[j] == whole && p.g.values[v].def < 0 {
				args.add(p.vals[v])
			}
		}
	}
	for l, v := range p.value {
		if args.has(l) {
			bytes += p.g.values[v].size
		}
	}
	m := p.g.m
	kernels = max(kernels, (heavy+1)/2) // two contractions at most share a kernel
	ns := max(tensor, float64(bytes)/m.Bandwidth*1e9) + float64(kernels)*m.Launch*1e9
	return price{int64(ns*1e6) - int64(kernels), bytes}
}

// longPart is the most nodes of a part of which every plan is looked at.
const longPart = 40

// choices are the kernels that can be last among those not chosen yet, those
// that save most first.
func (s *search) choices(st state) []*choice {
	g := &growth{search: s, st: st, seen: map[set]bool{}}
	each(st.demand, func(l int) { g.relevant = g.relevant.or(s.p.from[l]) })
	each(st.demand, func(l int) {
		var k set
		k.add(s.p.local[s.p.g.values[s.p.value[l]].def])
		g.grow(k)
	})
	slices.SortStableFunc(g.found, func(a, b *choice) int {
		return cmp.Or(cmp.Compare(b.saving.fs, a.saving.fs), cmp.Compare(b.saving.bytes, a.saving.bytes), cmp.Compare(len(b.k.nodes), len(a.k.nodes)))
	})
	return g.found
}
