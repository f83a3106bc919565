package fuse

import (
	"cmp"
	"container/heap"
	"maps"
	"math/bits"
	"slices"
)

// localSearch finds a plan by local search, for graphs that are too long for an
// exact one. It merges kernels greedily, largest gain first, and then moves ops
// between kernels, recomputes cheap ops at their uses or stops doing so, and
// merges again until nothing improves or the tries, a bound for each 128 nodes,
// are used up. Of equal layers it plans the first ones, repeats their kernels, and
// goes on where that leaves nodes over.
func (g *graph) localSearch(tries int) (price, []*candidate) {
	if r := g.repeats; r != nil {
		if l, fresh := g.repeat(r, tries); l != nil {
			settled := map[*candidate]bool{}
			nodes := 0
			for k, s := range l.shape {
				if settled[s] = !fresh[k]; fresh[k] {
					nodes += len(l.in[k])
				}
			}
			improve(l, fresh, settled, tries*max(128, nodes)/128)
			return l.price, l.kernels()
		}
	}
	l := newPartition(g, g.singles(nil), nil)
	improve(l, l.all(), nil, tries*max(128, len(g.nodes))/128)
	return l.price, l.kernels()
}

// all are the kernels of l.
func (l *partition) all() map[int]bool {
	all := map[int]bool{}
	for k := range l.in {
		all[k] = true
	}
	return all
}

// improve searches l from the fresh kernels on. What is settled has been searched.
func improve(l *partition, fresh map[int]bool, settled map[*candidate]bool, tries int) {
	c := &localSearch{plan: l, tries: tries, all: tries, fresh: fresh}
	c.descend()
	// To leave a local optimum, split two neighbouring kernels and descend again,
	// for all pairs in turn, until none helps.
	tried := map[[2]*candidate]bool{}
	for again := true; again && c.tries > 0; {
		again = false
		for k := 0; k < len(l.in); k++ {
			for _, j := range c.neighbours(k) {
				if j < k || l.shape[k] == nil || l.shape[j] == nil || settled[l.shape[k]] && settled[l.shape[j]] || tried[[2]*candidate{l.shape[k], l.shape[j]}] || c.tries <= 0 {
					continue
				}
				tried[[2]*candidate{l.shape[k], l.shape[j]}] = true
				if c.resplit(k, j) {
					again = true
				}
			}
		}
	}
}

// resplit splits kernels a and b and descends; it reports whether that gives a
// better plan, and returns to the one before where it does not.
func (c *localSearch) resplit(a, b int) bool {
	l := c.plan
	before, start := l.price, len(l.changes)
	l.split(a)
	l.split(b)
	changed := l.settle(start)
	ordered := l.reorder(changed)
	if ordered {
		for _, k := range changed {
			if !l.check(k) {
				l.invalid = append(l.invalid, k)
			}
		}
		c.enqueue(changed)
		c.descend()
	}
	// Other kernels must now store what the two recomputed, which may be invalid.
	better := ordered && l.price.less(before) && l.legal(nil)
	l.invalid = nil
	clear(c.fresh)
	if !better {
		l.undo(start)
		l.price = before
		return false
	}
	l.changes = l.changes[:0]
	return true
}

type localSearch struct {
	plan  *partition
	tries int          // left
	all   int          // at the start
	fresh map[int]bool // the kernels for which merges and moves have not been tried
	ended bool         // the context was canceled
}

// descend improves the plan by merges and moves to a local optimum. Only kernels
// that have changed, and their neighbours, are looked at again.
func (c *localSearch) descend() {
	c.join()
	for c.tries > 0 && len(c.fresh) > 0 {
		kernels := slices.Sorted(maps.Keys(c.fresh))
		clear(c.fresh)
		before := c.plan.price
		c.move(kernels)
		c.rematerialize(kernels)
		c.join()
		if !c.plan.price.less(before) {
			break
		}
	}
	clear(c.fresh)
}

// enqueue has merges and moves tried for the kernels and their neighbours.
func (c *localSearch) enqueue(kernels []int) {
	for _, k := range kernels {
		if c.plan.shape[k] == nil {
			delete(c.fresh, k)
			continue
		}
		c.fresh[k] = true
		for _, j := range c.neighbours(k) {
			c.fresh[j] = true
		}
	}
}

// explore keeps the changes since there were so many if the plan becomes cheaper
// and is valid; else it undoes what it adds to them. It returns the kernels that
// have changed, nil where it is not kept.
func (c *localSearch) explore(changes int) []int {
	l := c.plan
	if c.ended || l.g.ctx.Err() != nil {
		c.tries, c.ended = 0, true
		return nil
	}
	before, raw := l.price, len(l.changes)
	changed := l.settle(changes)
	c.count(changed)
	if len(changed) > 0 && l.price.less(before) && l.legal(changed) && l.price.less(before) { // legal adds partial results
		l.invalid = nil
		c.enqueue(changed)
		return changed
	}
	l.undo(raw)
	l.price = before
	return nil
}

// count counts a try, which in large kernels is worth several, as it looks at all of
// their nodes.
func (c *localSearch) count(changed []int) {
	n := 1
	for _, k := range changed {
		n += len(c.plan.in[k]) / smallKernel
	}
	if was := c.tries; was/64 != (was-n)/64 {
		c.plan.g.progress(1 - float64(max(0, was-n))/float64(c.all))
	}
	c.tries -= n
}

// pair is two kernels and what merging them gains.
type pair struct {
	a, b   int
	size   int // class of the kernel that they become
	gain   price
	shapes [2]*candidate
}

// smallKernel is the most nodes of a kernel in the first class of sizes; those of the next
// have up to twice as many, and so on.
const smallKernel = 32

func sizeClass(nodes int) int { return bits.Len(uint((nodes - 1) / smallKernel)) }

// maxNodes bounds the nodes of a kernel, so that what a merge or a move looks at does not
// grow with the body.
const maxNodes = 256

// pairs is a heap, largest gain first, of kernels of one class of sizes. Small kernels
// come first, so that each node of a long chain is looked at in a logarithmic number of
// merges.
type pairs []pair

func (h pairs) Len() int      { return len(h) }
func (h pairs) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h pairs) Less(i, j int) bool {
	x, y := h[i], h[j]
	return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(y.gain.fs, x.gain.fs), cmp.Compare(y.gain.bytes, x.gain.bytes), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) < 0
}
func (h *pairs) Push(x any) { *h = append(*h, x.(pair)) }
func (h *pairs) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// join merges pairs of kernels, one of them fresh, largest gain first, while that
// helps.
func (c *localSearch) join() {
	l := c.plan
	var h pairs
	seen := map[[2]*candidate]bool{}
	add := func(k int) {
		for _, j := range c.neighbours(k) {
			a, b := min(j, k), max(j, k)
			shapes := [2]*candidate{l.shape[a], l.shape[b]}
			if seen[shapes] {
				continue
			}
			seen[shapes] = true
			nodes := union(l.in[a], l.in[b])
			if len(nodes) > maxNodes || l.g.apart(l.in[a], l.in[b]) {
				continue
			}
			one := l.joined(nodes, [2]int{a, b})
			if one.checked && !one.legal {
				continue
			}
			if gain := shapes[0].price.plus(shapes[1].price).minus(one.price); (price{}).less(gain) {
				heap.Push(&h, pair{a, b, sizeClass(len(nodes)), gain, shapes})
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.fresh)) {
		if l.shape[k] != nil {
			add(k)
		}
	}
	for len(h) > 0 && !c.ended {
		p := heap.Pop(&h).(pair)
		if l.shape[p.a] != p.shapes[0] || l.shape[p.b] != p.shapes[1] {
			continue
		}
		start := len(l.changes)
		l.merge(p.a, p.b)
		changed := c.explore(start)
		if changed == nil {
			l.undo(start)
		}
		for _, k := range changed {
			if l.shape[k] != nil {
				add(k)
			}
		}
	}
}

// move tries, for the kernels and every value that each reads, to compute the
// value there: its op alone, then with its operands' ops, and so on, either
// moving or copying them.
func (c *localSearch) move(kernels []int) {
	l, g := c.plan, c.plan.g
	for _, k := range kernels {
		if len(l.in[k]) == 0 || l.fixed(l.in[k][0]) {
			continue
		}
		nodes := c.around(k)
		for len(nodes) > 0 && c.tries > 0 && len(l.in[k]) > 0 {
			n := nodes[0]
			nodes = nodes[1:]
			moved := false
			switch start := len(l.changes); {
			case l.fixed(n):
			case !l.computes(k, n):
				moved = !g.apart([]int{n}, l.in[k]) && c.pull(k, n)
			case l.owner[n] != k: // a copy
				l.remove(n, k)
				if moved = c.explore(start) != nil; !moved {
					l.undo(start)
				}
			}
			if moved {
				nodes = c.around(k)
				at, _ := slices.BinarySearch(nodes, n+1)
				nodes = nodes[at:]
			}
		}
	}
}

// around are the nodes that kernel k computes or that share a value with it,
// ascending.
func (c *localSearch) around(k int) []int {
	c.plan.g.checkContext()
	nodes := slices.Clone(c.plan.in[k])
	for _, n := range c.plan.in[k] {
		c.near(n, func(m int) { nodes = append(nodes, m) })
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// maxShared is how many uses a value may have before only those next to each
// other in the text count as neighbours.
const maxShared = 64

// near calls visit for the nodes that share a value with node n.
func (c *localSearch) near(n int, visit func(int)) {
	g := c.plan.g
	all := func(v int) {
		x := g.values[v]
		if x.def >= 0 {
			visit(x.def)
		}
		uses := x.uses
		if len(uses) > maxShared {
			at, _ := slices.BinarySearch(uses, n)
			uses = uses[max(0, at-maxShared/8):min(len(uses), at+maxShared/8)]
		}
		for _, u := range uses {
			visit(u)
		}
	}
	for _, v := range g.nodes[n].ins {
		all(v)
	}
	for _, v := range g.nodes[n].results {
		all(v)
	}
}

// neighbours are the kernels that share a value with kernel k and can be merged
// with it, ascending.
func (c *localSearch) neighbours(k int) []int {
	l := c.plan
	l.g.checkContext()
	if len(l.in[k]) == 0 || l.fixed(l.in[k][0]) {
		return nil
	}
	var ks []int
	for _, n := range l.in[k] {
		c.near(n, func(m int) { ks = append(ks, l.users[m]...) })
	}
	slices.Sort(ks)
	return slices.DeleteFunc(slices.Compact(ks), func(j int) bool { return j == k || l.fixed(l.in[j][0]) })
}

// pull tries to compute n, and transitively its operands, in kernel k; it reports
// whether it does.
func (c *localSearch) pull(k, n int) bool {
	l, g := c.plan, c.plan.g
	for _, take := range []bool{true, false} {
		start := len(l.changes)
		work := []int{n}
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			n := work[0]
			work = work[1:]
			if l.computes(k, n) || l.fixed(n) || len(l.in[k]) >= maxNodes || g.apart([]int{n}, l.in[k]) || !take && !g.nodes[n].cheap {
				continue
			}
			from := l.owner[n]
			if take && from >= 0 {
				l.move(n, from, k)
			} else {
				l.add(n, k)
			}
			if c.explore(start) != nil {
				return true
			}
			for _, v := range g.nodes[n].ins {
				if d := g.values[v].def; d >= 0 {
					work = append(work, d)
				}
			}
		}
		l.undo(start)
	}
	return false
}

// rematerialize tries, for every cheap op that one of the kernels stores, to compute
// it in each kernel that uses it instead, and transitively its operands.
func (c *localSearch) rematerialize(kernels []int) {
	l, g := c.plan, c.plan.g
	var nodes []int
	for _, k := range kernels {
		for _, n := range l.in[k] {
			if l.owner[n] == k && g.nodes[n].cheap && !l.fixed(n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.SortFunc(nodes, func(a, b int) int { return b - a })
	for _, n := range nodes {
		if c.tries <= 0 {
			return
		}
		if l.owner[n] < 0 {
			continue
		}
		start := len(l.changes)
		work := []int{n}
		kept := false
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			m := work[0]
			work = work[1:]
			if l.fixed(m) || !g.nodes[m].cheap || !c.copyToUsers(m) {
				continue
			}
			if kept = c.explore(start) != nil; kept {
				break
			}
			for _, v := range g.nodes[m].ins {
				if d := g.values[v].def; d >= 0 {
					work = append(work, d)
				}
			}
		}
		if !kept {
			l.undo(start)
		}
	}
}

// copyToUsers computes n in every kernel that uses it; false if one of them
// cannot hold it.
func (c *localSearch) copyToUsers(n int) bool {
	l := c.plan
	var ks []int
	for _, v := range l.g.nodes[n].results {
		for _, u := range l.g.values[v].uses {
			for _, k := range l.users[u] {
				if l.computes(k, n) {
					continue
				}
				if l.fixed(l.in[k][0]) || len(l.in[k]) >= maxNodes || l.g.apart([]int{n}, l.in[k]) {
					return false
				}
				ks = append(ks, k)
			}
		}
	}
	for _, k := range ks {
		l.add(n, k)
	}
	return len(ks) > 0
}

// maxPull bounds the ops moved at once.
const maxPull = 8

// conflicts reports whether node n is never in one kernel with one of nodes.
func (g *graph) conflicts(n int, nodes []int) bool {
	return slices.ContainsFunc(nodes, func(m int) bool { return m != n && g.conflict(n, m) })
}

// apart reports whether some node of a is never in one kernel with some node of b. Only
// nodes that are not plain are compared with all others.
func (g *graph) apart(a, b []int) bool {
	against := func(a, b []int) bool {
		return slices.ContainsFunc(a, func(n int) bool { return !g.nodes[n].plain && g.conflicts(n, b) })
	}
	return against(a, b) || against(b, a)
}

func union(a, b []int) []int {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}
