package fuse

import "slices"

// partition is a plan under local search: the nodes of each kernel, and which of
// the kernels that compute a node stores its results. Every change is recorded
// and can be undone, so that a change that does not pay costs what it touched.
type partition struct {
	g     *graph
	in    [][]int      // nodes of each kernel, ascending; nil for a removed kernel
	shape []*candidate // of each kernel as of the last settle; nil for a removed kernel
	owner []int        // by node: the kernel that stores its results, -1 for none
	users [][]int      // by node: the kernels that compute it, ascending
	price price        // of the shapes

	order []int // the kernels such that each follows those it waits for, removed ones included
	rank  []int // by kernel: its index in order

	walked []int // by kernel: the last walk that reached it
	walk   int   // the number of walks

	effects [][2]int      // by node with effects: the node with effects before it and after it, or -1
	updates map[int][]int // by value that a node updates: the nodes that do

	still []bool // by node: not moved; nil: none. Nodes next to each other in the text are one kernel

	invalid []int // kernels that are not legal after a split
	changes []change

	// Memory that each use overwrites.
	nodes, kernelsOf, outs []int // of touched, settle and stores
}

// change is what undo needs of one change. Slices are replaced, never written to.
type change struct {
	kind  changeKind
	at    int // a kernel, a node, or an index in order
	owner int // or an index in order
	was   []int
	shape *candidate
}

type changeKind byte

const (
	kernelNodes changeKind = iota // in[at] was was
	nodeUsers                     // users[at] was was
	nodeOwner                     // owner[at] was owner
	kernelShape                   // shape[at] was shape
	kernelPlace                   // kernel at was at index owner of order
	kernelOrder                   // order from index at on was was
	kernelAdded                   // a kernel was added, with its place in order
)

// group is a kernel of a partition to be: its nodes and those of them whose results
// it stores, both ascending.
type group struct{ nodes, stores []int }

// singles are the nodes, each a kernel of its own, and the two nodes of a dropout
// one. Those that are still are not divided, where they are next to each other.
func (g *graph) singles(still []bool) []group {
	var groups []group
	for i, n := range g.nodes {
		whole := i > 0 && (g.nodes[i-1].op == n.op && !n.unfusible ||
			still != nil && still[i] && still[i-1] && !g.alone(i) && !g.alone(i-1))
		if whole {
			last := &groups[len(groups)-1]
			last.nodes = append(last.nodes, i)
			last.stores = last.nodes
			continue
		}
		groups = append(groups, group{[]int{i}, []int{i}})
	}
	return groups
}

// alone reports whether node i has an order relative to others that no edge shows.
func (g *graph) alone(i int) bool { return g.nodes[i].effects || g.nodes[i].update != nil }

// newPartition is the partition of the groups, in which every node is; nil if
// kernels wait for each other. Of several groups that store a node, the last does.
func newPartition(g *graph, groups []group, still []bool) *partition {
	l := &partition{g: g, owner: make([]int, len(g.nodes)), users: make([][]int, len(g.nodes)), still: still}
	for i := range l.owner {
		l.owner[i] = -1
	}
	for k, s := range groups {
		l.in = append(l.in, s.nodes)
		for _, n := range s.nodes {
			l.users[n] = append(l.users[n], k)
		}
		for _, n := range s.stores {
			l.owner[n] = k
		}
	}
	l.shape, l.order, l.rank = make([]*candidate, len(l.in)), make([]int, len(l.in)), make([]int, len(l.in))
	for k := range l.in {
		l.order[k], l.rank[k] = k, k
	}
	last := -1
	l.effects = make([][2]int, len(g.nodes))
	for i, n := range g.nodes {
		l.effects[i] = [2]int{-1, -1}
		if n.effects {
			if l.effects[i][0] = last; last >= 0 {
				l.effects[last][1] = i
			}
			last = i
		}
	}
	l.updates = map[int][]int{}
	for _, i := range g.overwriting {
		v := g.nodes[i].update.of
		l.updates[v] = append(l.updates[v], i)
	}
	every := make([]int, len(g.nodes))
	for i := range every {
		every[i] = len(every) - 1 - i
	}
	l.prune(every)
	for k := range l.in {
		l.reshape(k)
	}
	for _, s := range l.shape {
		if s != nil {
			l.g.valid(s)
			l.price = l.price.plus(s.price)
		}
	}
	waits := make([][]int, len(l.in))
	for k, s := range l.shape {
		g.checkContext()
		if s != nil {
			l.waits(k, func(w int) { waits[k] = append(waits[k], w) })
		}
	}
	if l.order = topological(waits); len(l.order) < len(l.in) {
		return nil
	}
	l.rerank(0, len(l.order))
	l.changes = nil
	return l
}

// fixed reports whether node n stays in its kernel, alone or with others.
func (l *partition) fixed(n int) bool {
	return l.g.nodes[n].unfusible || l.still != nil && l.still[n]
}

// kernels are the kernels of the plan.
func (l *partition) kernels() []*candidate {
	return slices.DeleteFunc(slices.Clone(l.shape), func(s *candidate) bool { return s == nil })
}

func (l *partition) setNodes(k int, nodes []int) {
	l.changes = append(l.changes, change{kind: kernelNodes, at: k, was: l.in[k]})
	l.in[k] = nodes
}

func (l *partition) setUsers(n int, kernels []int) {
	l.changes = append(l.changes, change{kind: nodeUsers, at: n, was: l.users[n]})
	l.users[n] = kernels
}

func (l *partition) setOwner(n, k int) {
	l.changes = append(l.changes, change{kind: nodeOwner, at: n, owner: l.owner[n]})
	l.owner[n] = k
}

// undo returns to the state at which there were so many changes.
func (l *partition) undo(changes int) {
	for len(l.changes) > changes {
		c := &l.changes[len(l.changes)-1]
		switch c.kind {
		case kernelNodes:
			l.in[c.at] = c.was
		case nodeUsers:
			l.users[c.at] = c.was
		case nodeOwner:
			l.owner[c.at] = c.owner
		case kernelShape:
			l.shape[c.at] = c.shape
		case kernelPlace:
			l.shift(c.at, c.owner)
		case kernelOrder:
			copy(l.order[c.at:], c.was)
			l.rerank(c.at, c.at+len(c.was))
		case kernelAdded:
			last := len(l.in) - 1
			at := l.rank[last]
			l.order = slices.Delete(l.order, at, at+1)
			l.rerank(at, len(l.order))
			l.in, l.shape, l.rank = l.in[:last], l.shape[:last], l.rank[:last]
		}
		l.changes = l.changes[:len(l.changes)-1]
	}
}

// computes reports whether kernel k computes node n.
func (l *partition) computes(k, n int) bool { return slices.Contains(l.users[n], k) }

// add makes kernel k compute node n as well.
func (l *partition) add(n, k int) {
	if l.computes(k, n) {
		return
	}
	l.setNodes(k, with(l.in[k], n))
	l.setUsers(n, with(l.users[n], k))
}

// remove makes kernel k no longer compute node n.
func (l *partition) remove(n, k int) {
	l.setNodes(k, without(l.in[k], n))
	l.setUsers(n, without(l.users[n], k))
}

// with is s, which is ascending, with x.
func with(s []int, x int) []int {
	i, found := slices.BinarySearch(s, x)
	if found {
		return s
	}
	return slices.Insert(slices.Clip(s), i, x)
}

// without is s without x, nil where that is empty.
func without(s []int, x int) []int {
	i, found := slices.BinarySearch(s, x)
	switch {
	case !found:
		return s
	case len(s) == 1:
		return nil
	}
	return append(append(make([]int, 0, len(s)-1), s[:i]...), s[i+1:]...)
}

// split makes a kernel of each op of k that only k computes and k stores.
func (l *partition) split(k int) {
	at := l.rank[k]
	before := -1
	for _, n := range l.in[k] {
		if l.owner[n] != k || l.fixed(n) {
			continue
		}
		if before >= 0 && before == n-1 && l.g.nodes[before].op == l.g.nodes[n].op {
			l.move(n, k, l.owner[before])
		} else {
			at++
			last := len(l.in)
			l.in, l.shape, l.rank = append(l.in, nil), append(l.shape, nil), append(l.rank, 0)
			l.order = slices.Insert(l.order, at, last)
			l.rerank(at, len(l.order))
			l.changes = append(l.changes, change{kind: kernelAdded})
			l.move(n, k, last)
		}
		before = n
	}
	for _, n := range l.in[k] {
		if !l.fixed(n) {
			l.remove(n, k)
		}
	}
}

// move makes kernel b compute and store n in place of a.
func (l *partition) move(n, a, b int) {
	l.remove(n, a)
	l.add(n, b)
	l.setOwner(n, b)
}

// merge moves the ops of kernel b into a.
func (l *partition) merge(a, b int) {
	for _, n := range l.in[b] {
		l.setUsers(n, with(without(l.users[n], b), a))
		if l.owner[n] == b {
			l.setOwner(n, a)
		}
	}
	l.setNodes(a, union(l.in[a], l.in[b]))
	l.setNodes(b, nil)
}

// needed reports whether v is used by the function or by a kernel that does not
// compute it, other than the two given.
func (l *partition) needed(v int, two [2]int) bool {
	x := l.g.values[v]
	if x.out {
		return true
	}
	for _, u := range x.uses {
		for _, k := range l.users[u] {
			if k != two[0] && k != two[1] && !l.computes(k, x.def) {
				return true
			}
		}
	}
	return false
}

var none = [2]int{-1, -1}

// stores are the results that kernel k stores.
func (l *partition) stores(k int) []int {
	outs := l.outs[:0]
	for _, n := range l.in[k] {
		if l.owner[n] != k {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.g.nodes[n].unfusible || l.needed(v, none) {
				outs = append(outs, v)
			}
		}
	}
	slices.Sort(outs)
	l.outs = outs
	return outs
}

// joined is the kernel of nodes, those of two kernels, in their place.
func (l *partition) joined(nodes []int, two [2]int) *candidate {
	outs := l.outs[:0]
	for _, n := range nodes {
		if k := l.owner[n]; k != two[0] && k != two[1] {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.needed(v, two) {
				outs = append(outs, v)
			}
		}
	}
	slices.Sort(outs)
	l.outs = outs
	return l.g.kernel(nodes, outs)
}

// useful reports whether kernel k, which computes n, uses or stores a result of it.
func (l *partition) useful(n, k int) bool {
	for _, v := range l.g.nodes[n].results {
		if l.owner[n] == k && (l.g.nodes[n].unfusible || l.needed(v, none)) {
			return true
		}
		for _, u := range l.g.values[v].uses {
			if l.computes(k, u) {
				return true
			}
		}
	}
	return false
}

// touched are the nodes that concern changes since so many of them: their own,
// and those whose results these read; descending. They hold until it is called again.
func (l *partition) touched(changes int) []int {
	nodes := l.nodes[:0]
	for _, c := range l.changes[changes:] {
		if c.kind != nodeUsers && c.kind != nodeOwner {
			continue
		}
		nodes = append(nodes, c.at)
		for _, v := range l.g.nodes[c.at].ins {
			if d := l.g.values[v].def; d >= 0 {
				nodes = append(nodes, d)
			}
		}
	}
	l.nodes = nodes
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	slices.Reverse(nodes)
	return nodes
}

// prune gives the nodes, which are descending, a kernel that stores their results
// where theirs no longer computes them, and removes them from kernels that neither
// use nor store their results.
func (l *partition) prune(nodes []int) {
	for len(nodes) > 0 {
		start := len(l.changes)
		for _, n := range nodes {
			if k := l.owner[n]; k >= 0 && l.computes(k, n) || k < 0 && len(l.users[n]) == 0 {
				continue
			}
			k := -1
			if len(l.users[n]) > 0 {
				k = l.users[n][0]
			}
			l.setOwner(n, k)
		}
		for _, n := range nodes {
			if l.g.nodes[n].effects {
				continue
			}
			for _, k := range l.users[n] {
				if !l.useful(n, k) {
					l.remove(n, k)
				}
			}
		}
		nodes = l.touched(start)
	}
}

// reshape sets the shape of kernel k; it reports whether it is another.
func (l *partition) reshape(k int) bool {
	var s *candidate
	switch {
	case len(l.in[k]) == 0:
	case l.still != nil && l.still[l.in[k][0]]:
		if s = l.shape[k]; s == nil {
			s = l.outside(k)
		}
	default:
		s = l.g.kernel(l.in[k], l.stores(k))
	}
	if s == l.shape[k] {
		return false
	}
	l.changes = append(l.changes, change{kind: kernelShape, at: k, shape: l.shape[k]})
	l.shape[k] = s
	return true
}

// outside is the shape of a kernel of nodes that are still: legal, without a price,
// it stores all that other kernels might use.
func (l *partition) outside(k int) *candidate {
	g := l.g
	s := &candidate{nodes: l.in[k], checked: true, legal: true}
	reads := map[int]bool{}
	for _, n := range s.nodes {
		for _, v := range g.nodes[n].ins {
			if !g.inside(s.nodes, g.values[v].def) && !reads[v] {
				reads[v] = true
				s.ins = append(s.ins, v)
			}
		}
		for _, v := range g.nodes[n].results {
			if slices.ContainsFunc(g.values[v].uses, func(u int) bool { return !g.inside(s.nodes, u) }) {
				s.outs = append(s.outs, v)
			}
		}
	}
	return s
}

// settle completes the changes since there were so many: it prunes, and brings
// shapes and price up to date. It returns the kernels whose shapes have changed,
// which hold until it is called again.
func (l *partition) settle(changes int) []int {
	l.prune(l.touched(changes))
	kernels := l.kernelsOf[:0]
	for _, c := range l.changes[changes:] {
		switch c.kind {
		case kernelNodes:
			kernels = append(kernels, c.at)
		case nodeOwner:
			kernels = append(kernels, c.owner, l.owner[c.at])
		case nodeUsers:
			kernels = append(kernels, l.owner[c.at])
			for _, v := range l.g.nodes[c.at].ins {
				if d := l.g.values[v].def; d >= 0 {
					kernels = append(kernels, l.owner[d])
				}
			}
		}
	}
	l.kernelsOf = kernels
	slices.Sort(kernels)
	kernels = slices.Compact(kernels)
	return slices.DeleteFunc(kernels, func(k int) bool {
		if k < 0 {
			return true
		}
		was := l.shape[k]
		if !l.reshape(k) {
			return true
		}
		if was != nil {
			l.price = l.price.minus(was.price)
		}
		if s := l.shape[k]; s != nil {
			l.price = l.price.plus(s.price)
		}
		return false
	})
}

// legal reports whether the plan is one, given that it was before the kernels
// changed, but for those that are invalid; it adds their bytes of partial results
// to the price.
func (l *partition) legal(changed []int) bool {
	bad := func(k int) bool { s := l.shape[k]; return s != nil && s.checked && !s.legal }
	if slices.ContainsFunc(l.invalid, bad) {
		return false
	}
	for _, k := range changed {
		s := l.shape[k]
		if bad(k) || s != nil && !s.checked && l.g.apart(s.nodes, s.nodes) {
			return false
		}
	}
	if !l.reorder(changed) {
		return false
	}
	return !slices.ContainsFunc(changed, func(k int) bool { return !l.check(k) })
}

// check reports whether kernel k is legal, and adds its bytes of partial results
// to the price.
func (l *partition) check(k int) bool {
	s := l.shape[k]
	if s == nil {
		return true
	}
	l.price = l.price.minus(s.price)
	ok := l.g.valid(s)
	l.price = l.price.plus(s.price)
	return ok
}
