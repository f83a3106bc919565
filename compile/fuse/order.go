package fuse

import (
	"cmp"
	"slices"
)

// order sorts ks topologically, as near as possible to the order of the text;
// if there is a cycle, ok is false and the kernels left over are returned.
func (g *graph) order(ks []*candidate) (sorted []*candidate, ok bool) {
	slices.SortStableFunc(ks, func(a, b *candidate) int { return cmp.Compare(a.place(), b.place()) })
	at := topological(g.dependences(ks))
	for _, i := range at {
		sorted = append(sorted, ks[i])
	}
	if len(at) == len(ks) {
		return sorted, true
	}
	ran := make([]bool, len(ks))
	for _, i := range at {
		ran[i] = true
	}
	var cyclic []*candidate
	for i, k := range ks {
		if !ran[i] {
			cyclic = append(cyclic, k)
		}
	}
	return cyclic, false
}

// topological is a topological order of the indices of waits, which are those that
// each waits for, repetitions included: at every place the least index that can be
// there. Those on a cycle, or behind one, are left out.
func topological(waits [][]int) []int {
	n, edges := len(waits), 0
	for _, w := range waits {
		edges += len(w)
	}
	// Those that wait for j are followers[first[j]:first[j+1]].
	first, followers := make([]int, n+2), make([]int, edges)
	left := make([]int, n) // how many each still waits for
	for _, w := range waits {
		for _, j := range w {
			first[j+2]++
		}
	}
	for j := 2; j <= n; j++ {
		first[j] += first[j-1]
	}
	ready := make(queue, 0, n)
	for i, w := range waits {
		left[i] = len(w)
		for _, j := range w {
			followers[first[j+1]] = i
			first[j+1]++
		}
		if len(w) == 0 {
			ready = append(ready, i) // ascending, which is a heap
		}
	}
	order := make([]int, 0, n)
	for len(ready) > 0 {
		i := ready.pop()
		order = append(order, i)
		for _, j := range followers[first[i]:first[i+1]] {
			if left[j]--; left[j] == 0 {
				ready.push(j)
			}
		}
	}
	return order
}

// acyclic reports whether there is no cycle in what each kernel waits for.
func acyclic(waits [][]int) bool { return len(topological(waits)) == len(waits) }

// queue is a heap of indices, the least first.
type queue []int

func (q *queue) push(x int) {
	h := append(*q, x)
	at := len(h) - 1
	for at > 0 && x < h[(at-1)/2] {
		h[at] = h[(at-1)/2]
		at = (at - 1) / 2
	}
	h[at], *q = x, h
}

func (q *queue) pop() int {
	h := *q
	least, last := h[0], len(h)-1
	x, at := h[last], 0
	for {
		next := 2*at + 1
		if next+1 < last && h[next+1] < h[next] {
			next++
		}
		if next >= last || x <= h[next] {
			break
		}
		h[at] = h[next]
		at = next
	}
	h[at] = x
	*q = h[:last]
	return least
}

// place is where k stands in the order of the text: at its last node.
func (k *candidate) place() int { return k.nodes[len(k.nodes)-1] }

// dependences are, for each of ks, the indices of the kernels that run before
// it, repetitions included: those of dataDependences, and the readers of what it
// overwrites.
func (g *graph) dependences(ks []*candidate) [][]int {
	waits := g.dataDependences(ks)
	if len(g.overwriting) == 0 {
		return waits
	}
	readers := map[int][]int{}
	for _, n := range g.overwriting {
		readers[g.nodes[n].update.of] = nil
	}
	for i, k := range ks {
		for _, v := range k.ins {
			if at, overwritten := readers[v]; overwritten {
				readers[v] = append(at, i)
			}
		}
	}
	for i, k := range ks {
		for _, v := range g.overwritten(k) {
			for _, r := range readers[v] {
				if r != i {
					waits[i] = append(waits[i], r)
				}
			}
		}
	}
	return waits
}

// dataDependences are, for each of ks, the kernels that store what it reads, and
// the one with effects before it. A value that several kernels store is stored by
// the first in the text alone.
func (g *graph) dataDependences(ks []*candidate) [][]int {
	stores := make([]int, len(g.values)) // the kernel's index + 1
	for i, k := range ks {
		for _, v := range k.outs {
			if s := stores[v]; s == 0 || k.place() < ks[s-1].place() {
				stores[v] = i + 1
			}
		}
	}
	waits := make([][]int, len(ks))
	for i, k := range ks {
		for _, v := range k.ins {
			if s := stores[v] - 1; s >= 0 && s != i {
				waits[i] = append(waits[i], s)
			}
		}
	}
	var ordered []int
	for i, k := range ks {
		if g.nodes[k.nodes[0]].effects {
			ordered = append(ordered, i)
		}
	}
	slices.SortFunc(ordered, func(i, j int) int { return cmp.Compare(ks[i].place(), ks[j].place()) })
	for i := 1; i < len(ordered); i++ {
		waits[ordered[i]] = append(waits[ordered[i]], ordered[i-1])
	}
	return waits
}

// waits calls visit for each kernel that kernel k waits for, repetitions included:
// those that store what it reads, the one with effects before it, and the readers of
// what it overwrites.
func (l *partition) waits(k int, visit func(int)) {
	s := l.shape[k]
	for _, v := range s.ins {
		if d := l.g.values[v].def; d >= 0 {
			visit(l.owner[d])
		}
	}
	if n := l.effects[s.nodes[0]][0]; n >= 0 {
		visit(l.owner[n])
	}
	if len(l.updates) > 0 {
		for _, v := range l.g.overwritten(s) {
			l.readers(v, k, visit)
		}
	}
}

// followers calls visit for each kernel that waits for kernel k, repetitions
// included.
func (l *partition) followers(k int, visit func(int)) {
	s := l.shape[k]
	for _, v := range s.outs {
		l.readers(v, k, visit)
	}
	if n := l.effects[s.nodes[0]][1]; n >= 0 {
		visit(l.owner[n])
	}
	if len(l.updates) > 0 {
		for _, v := range s.ins {
			for _, n := range l.updates[v] {
				for _, u := range l.users[n] {
					if t := l.shape[u]; u != k && t != nil && slices.Contains(l.g.overwritten(t), v) {
						visit(u)
					}
				}
			}
		}
	}
}

// readers calls visit for each kernel but k that reads v from memory.
func (l *partition) readers(v, k int, visit func(int)) {
	x := l.g.values[v]
	for _, u := range x.uses {
		for _, r := range l.users[u] {
			if r != k && (x.def < 0 || !l.computes(r, x.def)) {
				visit(r)
			}
		}
	}
}

// place moves kernel k to an index in order.
func (l *partition) place(k, at int) {
	l.changes = append(l.changes, change{kind: kernelPlace, at: k, owner: l.rank[k]})
	l.shift(k, at)
}

func (l *partition) shift(k, at int) {
	from := l.rank[k]
	if from < at {
		copy(l.order[from:at], l.order[from+1:at+1])
	} else {
		copy(l.order[at+1:from+1], l.order[at:from])
	}
	l.order[at] = k
	l.rerank(min(from, at), max(from, at)+1)
}

// reorder brings the order up to date for the kernels whose shapes have changed;
// it returns false if there is a cycle. A kernel that changed is placed behind what
// it waits for and before what waits for it, if that is possible; else what it waits
// for is put before it one by one.
func (l *partition) reorder(changed []int) bool {
	var between []int // kernels for which one place does not do
	for _, k := range changed {
		if l.shape[k] == nil {
			continue
		}
		last, first := -1, len(l.order) // what it waits for, and what waits for it
		l.waits(k, func(w int) { last = max(last, l.rank[w]) })
		l.followers(k, func(w int) { first = min(first, l.rank[w]) })
		switch {
		case last >= first:
			between = append(between, k)
		case l.rank[k] < last:
			l.place(k, last)
		case l.rank[k] > first:
			l.place(k, first)
		}
	}
	ok := true
	for _, k := range between {
		l.waits(k, func(w int) { ok = ok && l.precede(w, k) })
		l.followers(k, func(f int) { ok = ok && l.precede(k, f) })
	}
	return ok
}

// precede puts kernel a before b, and with them those between that wait for b or that
// a waits for; it returns false if a waits for b. Only kernels that are reached from
// the two are looked at: Pearce and Kelly, A Dynamic Topological Sort Algorithm for
// Directed Acyclic Graphs, 2006. Pairs that are not in order yet count as not waiting.
func (l *partition) precede(a, b int) bool {
	lo, hi := l.rank[b], l.rank[a]
	if hi < lo {
		return true
	}
	behind := l.reached(b, func(k, f int) bool { return l.rank[f] > l.rank[k] && l.rank[f] <= hi }, l.followers)
	if slices.Contains(behind, a) {
		return false
	}
	before := l.reached(a, func(k, w int) bool { return l.rank[w] < l.rank[k] && l.rank[w] >= lo }, l.waits)
	byRank := func(x, y int) int { return l.rank[x] - l.rank[y] }
	slices.SortFunc(before, byRank)
	slices.SortFunc(behind, byRank)
	kernels := slices.Concat(before, behind)
	places := make([]int, len(kernels))
	for i, k := range kernels {
		places[i] = l.rank[k]
	}
	slices.Sort(places)
	l.changes = append(l.changes, change{kind: kernelOrder, at: lo, was: slices.Clone(l.order[lo : hi+1])})
	for i, k := range kernels {
		l.order[places[i]], l.rank[k] = k, places[i]
	}
	return true
}

// reached are kernel k and those that edges lead to from it, of those that may be followed.
func (l *partition) reached(k int, may func(from, to int) bool, edges func(k int, visit func(int))) []int {
	l.walk++
	for len(l.walked) < len(l.in) {
		l.walked = append(l.walked, 0)
	}
	l.walked[k] = l.walk
	ks := []int{k}
	for i := 0; i < len(ks); i++ {
		l.g.checkContext()
		edges(ks[i], func(to int) {
			if l.walked[to] != l.walk && may(ks[i], to) {
				l.walked[to] = l.walk
				ks = append(ks, to)
			}
		})
	}
	l.g.counts.Add("order", len(ks))
	return ks
}

// rerank sets the ranks of the kernels in order[from:to].
func (l *partition) rerank(from, to int) {
	for i := from; i < to; i++ {
		l.rank[l.order[i]] = i
	}
}
