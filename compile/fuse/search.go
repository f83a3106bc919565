package fuse

import (
	"cmp"
	"slices"
)

// plan is a set of kernels that compute the demanded values of a part.
type plan struct {
	price   price
	bound   price        // lower bound on all plans
	kernels []*candidate // in reverse order of execution
	imports []int        // values of other parts
}

// state is the remaining work when kernels are chosen from the last to the
// first: the values that chosen kernels read, and the heavy nodes that no
// further kernel may hold. Since a kernel's results are read only by those
// chosen before it, plans have no cycles.
type state struct {
	done   set // heavy nodes
	demand set // values
}

// search finds the cheapest plan of a part.
type search struct {
	p      *part
	can    func(v int) bool // whether a value of another part can be read
	steps  int              // left; every set of nodes, and every kernel of one, takes one
	memo   map[state]*entry
	gaveUp bool // out of steps: results are meaningless
}

type entry struct {
	price price
	pick  *choice // nil at the end, or where there is no plan
}

// choice is a kernel that may be chosen in a state.
type choice struct {
	k      *candidate
	next   state
	saving price // compared with its ops unfused
}

// solve is the cheapest plan in which p stores the demanded values and reads
// values of other parts only where can is true. If steps do not suffice, it has
// a bound only. used is the number of steps taken.
func (p *part) solve(demand []int, can func(v int) bool, steps int) (best *plan, used int) {
	if p.unfusible() {
		n := p.g.nodes[p.own[0]]
		k := p.g.kernel(p.own, n.results)
		one := &plan{price: k.price, bound: k.price, kernels: []*candidate{k}}
		for _, v := range n.ins {
			if p.g.values[v].def >= 0 {
				one.imports = append(one.imports, v)
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
	start.done = p.heavy.minus(live) // other parts may recompute them
	best = &plan{price: infeasible, bound: p.lowerBound(demand)}
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
				best.imports = append(best.imports, v)
			}
		}
	}
	slices.Sort(best.imports)
	return best, used
}

func (s *search) kernels(st state) []*candidate {
	var ks []*candidate
	for {
		e := s.memo[st]
		if e == nil || e.pick == nil {
			return ks
		}
		ks = append(ks, e.pick.k)
		st = e.pick.next
	}
}

// best is the cheapest completion of st.
func (s *search) best(st state) *entry {
	if e := s.memo[st]; e != nil {
		return e
	}
	e := &entry{price: infeasible}
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
		if !s.p.g.valid(c.k) {
			continue
		}
		if t := c.k.price.plus(s.best(c.next).price); t.less(e.price) {
			e.price, e.pick = t, c
		}
	}
	return e
}

// bound is a lower bound on the price of any completion of st: every demanded
// value is written once, the arguments that the heavy nodes read are read once,
// and two contractions at most share a kernel.
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
			if o.read[j] == allBytes && p.g.values[v].def < 0 {
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
	ns := max(tensor, float64(bytes)/m.Reach()*1e9) + float64(kernels)*m.Start()*1e9
	return price{int64(ns*1e6) - int64(kernels), bytes}
}

// longPart is the most nodes of a part that is searched exhaustively.
const longPart = 40

// choices are the kernels that can be last among those not chosen yet, largest
// saving first.
func (s *search) choices(st state) []*choice {
	g := &enumeration{search: s, st: st, seen: map[set]bool{}}
	each(st.demand, func(l int) { g.relevant = g.relevant.or(s.p.from[l]) })
	each(st.demand, func(l int) {
		var k set
		k.add(s.p.local[s.p.g.values[s.p.value[l]].def])
		g.extend(k)
	})
	slices.SortStableFunc(g.found, func(a, b *choice) int {
		return cmp.Or(cmp.Compare(b.saving.fs, a.saving.fs), cmp.Compare(b.saving.bytes, a.saving.bytes), cmp.Compare(len(b.k.nodes), len(a.k.nodes)))
	})
	return g.found
}
