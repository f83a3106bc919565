package fuse

import (
	"cmp"
	"slices"
)

// cutTerms modify the capacities of minCut.
type cutTerms struct {
	// share is the surcharge for reading a value, in bytes: a share of its write.
	share map[int]int64
	// shared are the values whose write is distributed over clusters; writing
	// them costs nothing.
	shared map[int]bool
	// prologue replaces the bytes that cross the boundary by the shares and by
	// the time for which the prologue delays the cluster's contraction, in bytes
	// of equal time.
	prologue bool
	// inPieces is, for the network of a piece of a part, in how many pieces each value
	// is; nil for that of a whole part.
	inPieces map[int]int64
}

// sharedWrite is a value whose write is distributed over clusters.
type sharedWrite struct {
	v       int
	readers []int // clusters
	share   int64 // of each
}

// sharedWrites are the values whose writes can be distributed over clusters,
// largest first. In minCut, storing a cheap value is free, since its users may
// recompute it. But a value that some kernel reads is written once. That write
// is distributed over the clusters whose heavy nodes use the value. The shares
// add up to no more than its size, hence to no more than the write adds to the
// kernel that stores it. The write adds to that kernel's time only if it is
// memory-bound, so values are left out that the kernel of a compute-bound
// cluster might store.
func (p *part) sharedWrites(clusters [][]int, wanted map[int]bool, memoryBound func(k int) bool) []sharedWrite {
	in := set{}
	for _, c := range clusters {
		for _, i := range c {
			in.add(i)
		}
	}
	for i := range p.nodes {
		if p.tensor(i) && !in.has(i) {
			return nil // its kernel is in no cluster and may overlap the write with computation
		}
	}
	var found []sharedWrite
	for _, v := range p.value {
		x := p.g.values[v]
		d, mine := p.local[x.def]
		if !mine || p.heavy.has(d) || wanted[v] || !p.owns(v) { // the part that owns it counts the write
			continue
		}
		c := sharedWrite{v: v}
		fits := true
		for k, cluster := range clusters {
			reads := false
			for _, t := range cluster {
				fits = fits && (memoryBound(k) || !p.mayStore(d, v, t))
				reads = reads || slices.Contains(x.uses, p.nodes[t]) && p.g.nodes[p.nodes[t]].reads(v) == allBytes
			}
			if reads {
				c.readers = append(c.readers, k)
			}
		}
		if fits && len(c.readers) > 0 {
			c.share = x.size / int64(len(c.readers))
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b sharedWrite) int { return cmp.Compare(p.g.values[b.v].size, p.g.values[a.v].size) })
	return found[:min(len(found), maxSharedWrites)]
}

// maxSharedWrites bounds the values tried.
const maxSharedWrites = 12

// mayStore reports whether a kernel with node t might store v, which node d
// computes.
func (p *part) mayStore(d, v, t int) bool {
	g := p.g
	a, b := p.nodes[d], p.nodes[t]
	if !p.compatible(d, t) {
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
	return g.valid(g.kernel(between, outs))
}

// prologueBytes is a lower bound on the time for which node i, in the prologue
// of contraction t, delays it, in bytes of equal time.
func (p *part) prologueBytes(i, t int) int64 {
	g := p.g
	n, c := g.nodes[p.nodes[i]], g.nodes[p.nodes[t]]
	if i == t || !c.before.has(p.nodes[i]) {
		return 0
	}
	if len(c.again) == 0 {
		return 0
	}
	return int64(n.effort * slices.Min(c.again) / 1e9 * g.m.Reach())
}
