package fuse

import (
	"math"
	"slices"
)

// bound is a price that no plan of p is below. Nodes of which no two are ever in
// one kernel (terminals) stand in as many kernels; and whatever the kernel of a
// terminal is, its edge is crossed by no fewer bytes than the cheapest set of
// nodes with that terminal and none of those that cannot join it. That set is a
// minimum cut (as in project selection): a value read is paid where it comes
// from outside, a value written where a node outside uses it. Cheap nodes write
// for nobody, as others may compute them again.
func (p *part) bound(demand []int) price {
	var sum price
	wanted := map[int]bool{}
	for _, v := range demand {
		wanted[v] = true
	}
	for _, t := range p.terminals(demand) {
		bytes := p.leastEdge(t, wanted)
		m := p.g.m
		ns := max(p.g.nodes[p.nodes[t]].tensor, float64(bytes)/m.Bandwidth*1e9) + m.Launch*1e9
		sum = sum.plus(price{int64(math.Round(ns * 1e6)), bytes})
	}
	return sum
}

// terminals are nodes of which no two are ever in one kernel: contractions
// first, then what folds, by the size of what they read.
func (p *part) terminals(demand []int) []int {
	g := p.g
	var heavy []int
	each(p.heavy, func(i int) { heavy = append(heavy, i) })
	weight := func(i int) float64 {
		n := g.nodes[p.nodes[i]]
		if n.tensor > 0 {
			return math.Inf(1)
		}
		var bytes int64
		for _, v := range n.ins {
			bytes += g.values[v].size
		}
		return float64(bytes)
	}
	slices.SortStableFunc(heavy, func(a, b int) int {
		switch x, y := weight(a), weight(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return a - b
	})
	var chosen []int
	for _, i := range heavy {
		if !slices.ContainsFunc(chosen, func(j int) bool { return p.together(i, j) }) {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 && len(demand) > 0 {
		chosen = append(chosen, p.local[g.values[demand[0]].def])
	}
	return chosen
}

// together reports whether places i and j may be in one kernel.
func (p *part) together(i, j int) bool {
	a, b := p.nodes[min(i, j)], p.nodes[max(i, j)]
	return a == b || p.g.joinable(a, b)
}

// leastEdge is the fewest bytes that cross the edge of a kernel with t.
func (p *part) leastEdge(t int, wanted map[int]bool) int64 {
	g := p.g
	n := len(p.nodes)
	const source, sink = 0, 1
	f := newFlow(2 + n + 2*len(p.value))
	at := func(i int) int { return 2 + i }
	f.edge(source, at(t), math.MaxInt64)
	for i := range p.nodes {
		if i != t && !p.together(i, t) {
			f.edge(at(i), sink, math.MaxInt64)
		}
	}
	for l, v := range p.value {
		x := g.values[v]
		def := sink
		if i, ok := p.local[x.def]; ok && x.def >= 0 {
			def = at(i)
		}
		read, written := 2+n+2*l, 2+n+2*l+1
		writes := def != sink && p.heavy.has(def-2) && !g.nodes[x.def].update
		if writes && wanted[v] {
			f.edge(written, sink, math.MaxInt64)
		}
		for _, u := range x.uses {
			i, ok := p.local[u]
			if !ok {
				continue
			}
			if j := slices.Index(g.nodes[u].ins, v); g.nodes[u].read[j] == whole {
				f.edge(at(i), read, math.MaxInt64)
			}
			if writes {
				f.edge(written, at(i), math.MaxInt64)
			}
		}
		f.edge(read, def, x.size)
		if writes {
			f.edge(def, written, x.size)
		}
	}
	return f.most(source, sink)
}

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
