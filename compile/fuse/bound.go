package fuse

import (
	"math"
	"slices"
)

// least is a price that no plan of p is below. Heavy nodes fall into clusters, of
// which no kernel holds two. All kernels of a cluster move no less than one
// kernel of all their nodes would, and that no less than the cheapest set of
// nodes around the cluster without those that can be with none of it: a minimum
// cut, as in project selection; see leastEdge.
func (p *part) least(demand []int) price {
	if p.lone() {
		return p.g.kernel(p.own, p.g.nodes[p.own[0]].results).price
	}
	wanted := map[int]bool{}
	for _, v := range demand {
		wanted[v] = true
	}
	m := p.g.m
	clusters := p.clusters(demand)
	tensor, edge := make([]float64, len(clusters)), make([]int64, len(clusters))
	for k, cluster := range clusters {
		edge[k] = p.leastEdge(cluster, wanted, edgeTerms{})
		for _, i := range cluster {
			tensor[k] += p.g.nodes[p.nodes[i]].tensor
		}
	}
	memory := func(k int) bool { return float64(edge[k])/m.Bandwidth*1e9 >= tensor[k] }
	sum := func(charges []charge) price {
		var all price
		for k, cluster := range clusters {
			terms := edgeTerms{toll: map[int]int64{}, charged: map[int]bool{}}
			for _, c := range charges {
				terms.charged[c.v] = true
				if slices.Contains(c.readers, k) {
					terms.toll[c.v] = c.toll
				}
			}
			bytes := edge[k]
			if len(charges) > 0 {
				bytes = p.leastEdge(cluster, wanted, terms)
			}
			ns := max(tensor[k], float64(bytes)/m.Bandwidth*1e9)
			if len(cluster) == 1 && len(terms.toll) > 0 && !memory(k) {
				terms.front = true
				ns = max(ns, tensor[k]+float64(p.leastEdge(cluster, wanted, terms))/m.Bandwidth*1e9)
			}
			ns += m.Launch * 1e9
			all = all.plus(price{int64(math.Round(ns * 1e6)), bytes})
		}
		return all
	}
	var charges []charge
	best := sum(nil)
	for _, c := range p.charges(clusters, wanted, memory) {
		if with := sum(append(charges, c)); best.less(with) {
			best, charges = with, append(charges, c)
		}
	}
	return best
}

// clusters are sets of heavy nodes that are needed: those that may be in one
// kernel together are in one set. Contractions come first, then what no
// contraction can be with; a node that would join two sets is left out, so that
// there are many.
func (p *part) clusters(demand []int) [][]int {
	var live set
	for _, v := range demand {
		live = live.or(p.need[p.vals[v]])
	}
	var order, later []int
	each(live, func(i int) {
		if p.tensor(i) {
			order = append(order, i)
		}
	})
	contractions := order
	each(live, func(i int) {
		switch with := func(c int) bool { return p.together(i, c) }; {
		case p.tensor(i):
		case slices.ContainsFunc(contractions, with):
			later = append(later, i)
		default:
			order = append(order, i)
		}
	})
	var all [][]int
	for _, i := range append(order, later...) {
		var with []int
		for k, c := range all {
			if slices.ContainsFunc(c, func(j int) bool { return p.together(i, j) }) {
				with = append(with, k)
			}
		}
		switch len(with) {
		case 0:
			all = append(all, []int{i})
		case 1:
			all[with[0]] = append(all[with[0]], i)
		}
	}
	if len(all) == 0 && len(demand) > 0 {
		all = append(all, []int{p.local[p.g.values[demand[0]].def]})
	}
	return all
}

func (p *part) tensor(i int) bool { return p.g.nodes[p.nodes[i]].tensor > 0 }

// together reports whether places i and j may be in one kernel.
func (p *part) together(i, j int) bool {
	a, b := p.nodes[min(i, j)], p.nodes[max(i, j)]
	return a == b || p.g.joinable(a, b)
}

// leastEdge is the fewest bytes that cross the edge of a kernel with all of
// cluster and nodes that can be with some of it, by a cut
// between what is true (source) and false (sink) of: a node is in the kernel; a
// value is not needed outside. A value is read where a node inside uses it and
// its own is outside. A heavy node outside, or the function, needs values: that
// of a heavy node inside is written; that of a cheap one is written, or computed
// outside from values that are then needed there.
func (p *part) leastEdge(cluster []int, wanted map[int]bool, terms edgeTerms) int64 {
	g := p.g
	const source, sink = 0, 1
	n, m := len(p.nodes), len(p.value)
	f := newFlow(2 + n + 4*m)
	node := func(i int) int { return 2 + i }
	read := func(l int) int { return 2 + n + l }         // whether the kernel reads it or computes it
	spare := func(l int) int { return 2 + n + m + l }    // whether nobody outside needs it
	apart := func(l int) int { return 2 + n + 2*m + l }  // whether nobody outside computes it
	partly := func(l int) int { return 2 + n + 3*m + l } // whether the kernel reads a part of it or computes it
	for i := range p.nodes {
		switch {
		case slices.Contains(cluster, i):
			f.edge(source, node(i), math.MaxInt64)
		case !slices.ContainsFunc(cluster, func(t int) bool { return p.together(i, t) }):
			f.edge(node(i), sink, math.MaxInt64)
		case terms.front:
			f.edge(node(i), sink, p.held(i, cluster[0]))
		}
	}
	for l, v := range p.value {
		x := g.values[v]
		d, mine := p.local[x.def]
		mine = mine && x.def >= 0
		from := sink
		if mine {
			from = node(d)
		}
		if terms.front {
			if t := terms.toll[v]; t > 0 {
				f.edge(read(l), from, t)
				for _, u := range x.uses {
					if i, ok := p.local[u]; ok {
						f.edge(node(i), read(l), math.MaxInt64)
					}
				}
			}
			continue
		}
		// What several nodes read of it in parts is read part by part, up to all
		// of it; where that is not known to be less, no more than the least part.
		least, sum := x.size, int64(0)
		var parts []int
		for _, u := range x.uses {
			i, ok := p.local[u]
			if !ok {
				continue
			}
			if r := g.nodes[u].reads(v); r == whole {
				f.edge(node(i), read(l), math.MaxInt64)
				sum = x.size
			} else {
				least = min(least, r)
				sum += r
				parts = append(parts, i)
			}
		}
		if sum > x.size || len(parts) == 0 {
			for _, i := range parts {
				f.edge(node(i), partly(l), math.MaxInt64)
			}
			f.edge(read(l), partly(l), math.MaxInt64)
			f.edge(read(l), from, x.size-least+terms.toll[v])
			f.edge(partly(l), from, least)
		} else {
			for _, i := range parts {
				f.edge(node(i), from, g.nodes[p.nodes[i]].reads(v))
			}
		}
		if !mine {
			continue
		}
		size := x.size
		if g.nodes[x.def].update != nil || terms.charged[v] {
			size = 0
		}
		if p.heavy.has(d) {
			f.edge(node(d), spare(l), size)
		} else {
			f.edge(apart(l), spare(l), size)
			for _, w := range g.nodes[x.def].ins {
				f.edge(spare(p.vals[w]), apart(l), math.MaxInt64)
			}
		}
		if wanted[v] {
			f.edge(spare(l), sink, math.MaxInt64)
		}
		for _, u := range x.uses {
			if i, ok := p.local[u]; ok && p.heavy.has(i) {
				f.edge(spare(l), node(i), math.MaxInt64)
			}
		}
	}
	return f.most(source, sink)
}

// reads is how many bytes of v n reads, or whole.
func (n *node) reads(v int) int64 { return n.read[slices.Index(n.ins, v)] }

// flow is a network; most is its maximum flow by Dinic's algorithm.
type flow struct {
	to, next []int
	left     []int64
	first    []int
	level    []int
	at       []int
}

func newFlow(n int) *flow {
	f := &flow{first: make([]int, n), level: make([]int, n), at: make([]int, n)}
	for i := range f.first {
		f.first[i] = -1
	}
	return f
}

func (f *flow) edge(a, b int, capacity int64) {
	for _, e := range [2]struct {
		from, to int
		c        int64
	}{{a, b, capacity}, {b, a, 0}} {
		f.to = append(f.to, e.to)
		f.left = append(f.left, e.c)
		f.next = append(f.next, f.first[e.from])
		f.first[e.from] = len(f.to) - 1
	}
}

func (f *flow) most(source, sink int) int64 {
	var sum int64
	for f.rank(source, sink) {
		copy(f.at, f.first)
		for {
			pushed := f.push(source, sink, math.MaxInt64)
			if pushed == 0 {
				break
			}
			sum += pushed
		}
	}
	return sum
}

func (f *flow) rank(source, sink int) bool {
	for i := range f.level {
		f.level[i] = -1
	}
	f.level[source] = 0
	work := []int{source}
	for len(work) > 0 {
		x := work[0]
		work = work[1:]
		for e := f.first[x]; e >= 0; e = f.next[e] {
			if y := f.to[e]; f.left[e] > 0 && f.level[y] < 0 {
				f.level[y] = f.level[x] + 1
				work = append(work, y)
			}
		}
	}
	return f.level[sink] >= 0
}

func (f *flow) push(x, sink int, most int64) int64 {
	if x == sink {
		return most
	}
	for ; f.at[x] >= 0; f.at[x] = f.next[f.at[x]] {
		e := f.at[x]
		if y := f.to[e]; f.left[e] > 0 && f.level[y] == f.level[x]+1 {
			if pushed := f.push(y, sink, min(most, f.left[e])); pushed > 0 {
				f.left[e] -= pushed
				f.left[e^1] += pushed
				return pushed
			}
		}
	}
	return 0
}
