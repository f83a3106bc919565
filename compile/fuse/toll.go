package fuse

import (
	"cmp"
	"math"
	"slices"
)

// edgeTerms change what leastEdge counts.
type edgeTerms struct {
	// toll is what reading a value costs beyond its bytes: a share of its being
	// written, in bytes.
	toll map[int]int64
	// charged are the values of which some cluster pays a toll. Writing them is
	// not counted.
	charged map[int]bool
	// front counts, in place of what crosses the edge, tolls and what the ops in
	// front of the cluster's contraction hold it up, as bytes of the same time.
	front bool
}

// charge is a value whose writing is shared out to clusters.
type charge struct {
	v       int
	readers []int // clusters
	toll    int64 // of each
}

// A cheap value writes for nobody in leastEdge, as those who use it may compute
// it again. But a value that some kernel reads is written once. charges shares
// that out among the clusters whose heavy nodes use it: each that reads it pays,
// and as the shares are no more than the value's size, all of them together pay
// no more than what writing it adds to the kernel that does. That addition is to
// its time only if it is bound by memory; so values are left out that the kernel
// of a cluster might store whose edge alone does not take longer than its
// contraction. The largest values come first.
func (p *part) charges(clusters [][]int, wanted map[int]bool, memory func(k int) bool) []charge {
	in := set{}
	for _, c := range clusters {
		for _, i := range c {
			in.add(i)
		}
	}
	for i := range p.nodes {
		if p.tensor(i) && !in.has(i) {
			return nil // its kernel is in no cluster, and might hide what it writes
		}
	}
	var found []charge
	for _, v := range p.value {
		x := p.g.values[v]
		d, mine := p.local[x.def]
		if x.def < 0 || !mine || p.heavy.has(d) || wanted[v] {
			continue
		}
		c := charge{v: v}
		fits := true
		for k, cluster := range clusters {
			reads := false
			for _, t := range cluster {
				fits = fits && (memory(k) || !p.mayStore(d, v, t))
				reads = reads || slices.Contains(x.uses, p.nodes[t]) && p.g.nodes[p.nodes[t]].reads(v) == whole
			}
			if reads {
				c.readers = append(c.readers, k)
			}
		}
		if fits && len(c.readers) > 0 {
			c.toll = x.size / int64(len(c.readers))
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b charge) int { return cmp.Compare(p.g.values[b.v].size, p.g.values[a.v].size) })
	return found[:min(len(found), maxCharges)]
}

// maxCharges bounds how many values are tried.
const maxCharges = 12

// mayStore reports whether a kernel with t might store v, which node d computes.
func (p *part) mayStore(d, v, t int) bool {
	g := p.g
	a, b := p.nodes[d], p.nodes[t]
	if !p.together(d, t) {
		return false
	}
	if !p.tensor(t) || !g.nodes[b].before.has(a) {
		return true
	}
	var between []int
	for n := a; n <= b; n++ {
		if g.nodes[n].before.has(a) && g.nodes[b].before.has(n) {
			between = append(between, n)
		}
	}
	outs := union([]int{v}, g.nodes[b].results)
	return g.possible(g.kernel(between, outs))
}

// held is how long computing node i in front of the contraction t holds that up,
// at least, as bytes of the same time.
func (p *part) held(i, t int) int64 {
	g := p.g
	n, c := g.nodes[p.nodes[i]], g.nodes[p.nodes[t]]
	if i == t || !c.before.has(p.nodes[i]) {
		return 0
	}
	again := math.Inf(1)
	for _, v := range c.ins {
		again = min(again, math.Ceil(c.products/(g.values[v].elements*tile)))
	}
	return int64(n.effort * again / 1e9 * g.m.Reach())
}
