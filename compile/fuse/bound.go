package fuse

import (
	"math"
	"slices"
)

// lowerBound is a lower bound on the price of any plan of p. Heavy nodes are
// partitioned into clusters such that no kernel holds nodes of two. All kernels
// of a cluster together move at least the bytes of one kernel of all their
// nodes, and that moves at least the bytes that cross the boundary of the
// cheapest set of compatible nodes around the cluster: a minimum cut, as in
// project selection; see minCut.
func (p *part) lowerBound(demand []int) price {
	if p.unfusible() {
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
		edge[k] = p.minCut(cluster, wanted, cutTerms{})
		for _, i := range cluster {
			tensor[k] += p.g.nodes[p.nodes[i]].tensor
		}
	}
	memoryBound := func(k int) bool { return float64(edge[k])/m.Reach()*1e9 >= tensor[k] }
	sum := func(shared []sharedWrite) price {
		var all price
		for k, cluster := range clusters {
			terms := cutTerms{share: map[int]int64{}, shared: map[int]bool{}}
			for _, c := range shared {
				terms.shared[c.v] = true
				if slices.Contains(c.readers, k) {
					terms.share[c.v] = c.share
				}
			}
			bytes := edge[k]
			if len(shared) > 0 {
				bytes = p.minCut(cluster, wanted, terms)
			}
			ns := max(tensor[k], float64(bytes)/m.Reach()*1e9)
			if len(cluster) == 1 && len(terms.share) > 0 && !memoryBound(k) {
				terms.prologue = true
				ns = max(ns, tensor[k]+float64(p.minCut(cluster, wanted, terms))/m.Reach()*1e9)
			}
			ns += m.Start() * 1e9
			all = all.plus(price{int64(math.Round(ns * 1e6)), bytes})
		}
		return all
	}
	var shared []sharedWrite
	best := sum(nil)
	for _, c := range p.sharedWrites(clusters, wanted, memoryBound) {
		if with := sum(append(shared, c)); best.less(with) {
			best, shared = with, append(shared, c)
		}
	}
	return best
}

// clusters partition the needed heavy nodes such that nodes of different
// clusters are never in one kernel. Contractions come first, then nodes that
// are compatible with no contraction; a node that would merge two clusters is
// left out, which keeps their number high. Where none is heavy, those that store
// the demanded values are one cluster.
func (p *part) clusters(demand []int) [][]int {
	var live set
	for _, v := range demand {
		live = live.or(p.need[p.vals[v]])
	}
	all := p.clustersOf(live)
	if len(all) == 0 && len(demand) > 0 {
		var stored []int
		for _, v := range demand {
			stored = append(stored, p.local[p.g.values[v].def])
		}
		slices.Sort(stored)
		all = append(all, slices.Compact(stored))
	}
	return all
}

// clustersOf are the clusters of these heavy nodes.
func (p *part) clustersOf(live set) [][]int {
	var order, later []int
	each(live, func(i int) {
		if p.tensor(i) {
			order = append(order, i)
		}
	})
	contractions := order
	each(live, func(i int) {
		switch with := func(c int) bool { return p.compatible(i, c) }; {
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
			if slices.ContainsFunc(c, func(j int) bool { return p.compatible(i, j) }) {
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
	return all
}

func (p *part) tensor(i int) bool { return p.g.nodes[p.nodes[i]].tensor > 0 }

// compatible reports whether places i and j may be in one kernel.
func (p *part) compatible(i, j int) bool {
	a, b := p.nodes[min(i, j)], p.nodes[max(i, j)]
	return a == b || p.g.joinable(a, b)
}

// minCut is a lower bound on the bytes that cross the boundary of a kernel with
// all of cluster and any nodes compatible with one of it. It is a minimum cut
// of a network whose vertices are propositions, true on the source's side: that
// a node is in the kernel, and that a value is not needed outside. A value is
// read if a node inside uses it and the node that computes it is outside.
// Values are needed by heavy nodes outside and by the function: the result of a
// heavy node inside is written; that of a cheap one is written or recomputed
// outside, where its operands are needed then.
func (p *part) minCut(cluster []int, wanted map[int]bool, terms cutTerms) int64 {
	g := p.g
	const source, sink = 0, 1
	n, m := len(p.nodes), len(p.value)
	f := newFlow(2 + n + 4*m)
	node := func(i int) int { return 2 + i }
	read := func(l int) int { return 2 + n + l }                // whether the kernel reads it or computes it
	notRead := func(l int) int { return 2 + n + m + l }         // whether it is not needed outside
	notRecomputed := func(l int) int { return 2 + n + 2*m + l } // whether it is not recomputed outside
	readPart := func(l int) int { return 2 + n + 3*m + l }      // whether the kernel reads a part of it or computes it
	for i := range p.nodes {
		switch {
		case slices.Contains(cluster, i):
			f.edge(source, node(i), math.MaxInt64)
		case !slices.ContainsFunc(cluster, func(t int) bool { return p.compatible(i, t) }):
			f.edge(node(i), sink, math.MaxInt64)
		case terms.prologue:
			f.edge(node(i), sink, p.prologueBytes(i, cluster[0]))
		}
	}
	for l, v := range p.value {
		x := g.values[v]
		d, mine := p.local[x.def]
		mine = mine && x.def >= 0
		if terms.inPieces != nil && !mine && x.def >= 0 && p.mayHold(cluster, x.def) {
			continue // the kernel may compute it with nodes of another piece
		}
		from, share := sink, max(1, terms.inPieces[v])
		if mine {
			from = node(d)
		}
		if terms.prologue {
			if t := terms.share[v]; t > 0 {
				f.edge(read(l), from, t)
				for _, u := range x.uses {
					if i, ok := p.local[u]; ok {
						f.edge(node(i), read(l), math.MaxInt64)
					}
				}
			}
			continue
		}
		// Partial reads by several nodes add up, to at most the value's size; where
		// their sum is not known to be less, the smallest part is a lower bound.
		whole := x.size / share
		least, sum := whole, int64(0)
		var parts []int
		for _, u := range x.uses {
			i, ok := p.local[u]
			if !ok {
				continue
			}
			if r := g.nodes[u].reads(v); r == allBytes {
				f.edge(node(i), read(l), math.MaxInt64)
				sum = whole
			} else {
				r /= share
				least = min(least, r)
				sum += r
				parts = append(parts, i)
			}
		}
		if sum > whole || len(parts) == 0 {
			for _, i := range parts {
				f.edge(node(i), readPart(l), math.MaxInt64)
			}
			f.edge(read(l), readPart(l), math.MaxInt64)
			f.edge(read(l), from, whole-least+terms.share[v])
			f.edge(readPart(l), from, least)
		} else {
			for _, i := range parts {
				f.edge(node(i), from, g.nodes[p.nodes[i]].reads(v)/share)
			}
		}
		if !mine {
			continue
		}
		size := x.size
		if g.nodes[x.def].update != nil || terms.shared[v] {
			size = 0
		}
		if p.heavy.has(d) {
			f.edge(node(d), notRead(l), size)
		} else {
			f.edge(notRecomputed(l), notRead(l), size/share)
			for _, w := range g.nodes[x.def].ins {
				f.edge(notRead(p.vals[w]), notRecomputed(l), math.MaxInt64)
			}
		}
		if wanted[v] {
			f.edge(notRead(l), sink, math.MaxInt64)
		}
		for _, u := range x.uses {
			if i, ok := p.local[u]; ok && p.heavy.has(i) {
				f.edge(notRead(l), node(i), math.MaxInt64)
			}
		}
	}
	return f.most(source, sink)
}

// reads is the number of bytes of v that n reads, or allBytes.
func (n *node) reads(v int) int64 { return n.read[slices.Index(n.ins, v)] }

// flow is a network; most computes its maximum flow by Dinic's algorithm.
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
