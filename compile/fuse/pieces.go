package fuse

import "slices"

// A part that is longer than the sets of a search is cut into pieces, and kernels may
// hold nodes of several pieces. piecesBound is a lower bound on the price of all
// kernels of the pieces of one part, from two kinds of kernels that share none:
//
//   - Those with a contraction compute at least as long as the contractions take at
//     the peak of the tensor cores. A contraction that may share a kernel with no
//     other one adds a launch.
//   - Those with a heavy node that shares a kernel with no contraction take at least
//     the time in which their bytes are moved. As in a part, that is a minimum cut for
//     each cluster; see lowerBound. The network of a piece is a part of that of the
//     whole, in which a value of several pieces has a share of its size in each: a cut
//     of the whole is a cut of every piece, so that their least cuts add up to no more.
//
// The bytes are those of the cuts of both kinds.
func (g *graph) piecesBound(pieces []*part) price {
	inPieces := map[int]int64{} // by value
	var contractions []int
	nodes := 0
	for _, p := range pieces {
		nodes += len(p.own)
		for _, v := range p.value {
			inPieces[v]++
		}
		for _, n := range p.own {
			if g.nodes[n].tensor > 0 && g.needed.has(n) {
				contractions = append(contractions, n)
			}
		}
	}
	slices.Sort(contractions)
	var ns float64
	var moved int64
	for _, n := range contractions {
		if ns += g.nodes[n].tensor; !g.sharesWithContraction(n) {
			ns += g.m.Start() * 1e9
		}
	}
	for _, p := range pieces {
		var live, others set
		each(p.heavy, func(i int) {
			n := p.nodes[i]
			if !g.needed.has(n) {
				return
			}
			live.add(i)
			if g.nodes[n].tensor == 0 && !g.withContraction(n, contractions) {
				others.add(i)
			}
		})
		for _, cluster := range p.clustersOf(live) {
			bytes := p.minCut(cluster, p.neededOutside(cluster), cutTerms{inPieces: inPieces})
			moved += bytes
			if !slices.ContainsFunc(cluster, func(i int) bool { return !others.has(i) }) {
				ns += float64(bytes) / g.m.Reach() * 1e9
			}
		}
	}
	return price{max(0, int64(ns*1e6)-int64(nodes)), moved} // each kernel's price is rounded
}

// sharesWithContraction reports whether contraction n may be in one kernel with another
// one that reads a value of it, the only ones that go together.
func (g *graph) sharesWithContraction(n int) bool {
	for _, v := range g.nodes[n].ins {
		for _, u := range g.values[v].uses {
			if u != n && g.nodes[u].tensor > 0 && !g.conflict(n, u) {
				return true
			}
		}
	}
	return false
}

// withContraction reports whether node n may be in one kernel with one of the
// contractions, which are ascending. A kernel holds all nodes between two of its own:
// with n it holds no contraction from which a path to n leads through one that
// conflicts with it.
func (g *graph) withContraction(n int, contractions []int) bool {
	behind := make(bitset, len(g.nodes[n].before)) // all that the nearest contractions before n depend on
	var nearest []int
	for _, c := range slices.Backward(contractions) {
		g.checkContext()
		if !g.nodes[n].before.has(c) {
			// There are many of these; conflict would keep the answer for each.
			if g.rules.Conflict(g.nodes[n].op, g.nodes[c].op, g.depends) {
				continue
			}
		} else if behind.has(c) {
			if slices.ContainsFunc(nearest, func(w int) bool { return g.nodes[w].before.has(c) && g.conflict(w, c) }) {
				continue
			}
		} else {
			behind.union(g.nodes[c].before)
			nearest = append(nearest, c)
		}
		if g.joinable(min(c, n), max(c, n)) {
			return true
		}
	}
	return false
}

// neededOutside are the values of p that a kernel with the cluster stores if it
// computes them: results of the function, and what a heavy node of another piece reads
// that is never in the kernel.
func (p *part) neededOutside(cluster []int) map[int]bool {
	needed := map[int]bool{}
	for _, v := range p.value {
		x := p.g.values[v]
		if _, mine := p.local[x.def]; x.def < 0 || !mine {
			continue
		}
		needed[v] = x.out || slices.ContainsFunc(x.uses, func(u int) bool {
			_, here := p.local[u]
			return !here && !p.g.nodes[u].cheap && !p.mayHold(cluster, u)
		})
	}
	return needed
}

// mayHold reports whether a kernel with a node of the cluster may hold node n of the
// graph, which is in none of p's places.
func (p *part) mayHold(cluster []int, n int) bool {
	return slices.ContainsFunc(cluster, func(i int) bool { return p.g.joinable(min(p.nodes[i], n), max(p.nodes[i], n)) })
}
