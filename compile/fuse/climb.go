package fuse

import (
	"cmp"
	"slices"
)

// layout is a plan that a local search changes: which nodes each kernel
// computes, and which of the kernels that compute a node stores its results.
type layout struct {
	g     *graph
	in    [][]int // nodes of each kernel, ascending; none where the kernel is gone
	home  []int   // by node: a kernel that computes it, -1 where none does
	price price
}

// climb finds a plan for graphs that are too long for an exact search: it joins
// kernels, always the two that gain most, and then moves ops between kernels,
// computes cheap ones again where they are used, or not again, and joins
// kernels, as long as that helps or its tries last.
func (g *graph) climb(tries int) (price, []*shape) {
	l := &layout{g: g, in: make([][]int, len(g.nodes)), home: make([]int, len(g.nodes))}
	for i := range g.nodes {
		l.in[i], l.home[i] = []int{i}, i
		if i > 0 && g.nodes[i-1].op == g.nodes[i].op && !g.nodes[i].single {
			l.home[i], l.in[i] = l.home[i-1], nil
			l.in[l.home[i]] = append(l.in[l.home[i]], i)
		}
	}
	l.clean()
	l.possible()
	l.price = l.cost()
	c := &climber{best: l, tries: tries * 128 / max(128, len(g.nodes))} // a try takes as long as the graph is
	c.settle()
	// From a plan that no step improves, others are reached by taking two
	// neighbouring kernels apart: all pairs in turn, until none helps.
	for again := true; again && c.tries > 0; {
		again = false
		for _, p := range c.best.neighbours(c.best.users()) {
			if c.tries <= 0 || len(c.best.in[p[0]]) == 0 || len(c.best.in[p[1]]) == 0 {
				continue
			}
			best := c.best
			c.best = best.clone()
			c.best.dissolve(p[0])
			c.best.dissolve(p[1])
			c.best.clean()
			c.best.possible()
			c.best.price = c.best.cost()
			c.settle()
			// What the two computed again, others have to store now, which not all can.
			if c.best.price.less(best.price) && c.best.possible() {
				again = true
			} else {
				c.best = best
			}
		}
	}
	return c.best.price, c.best.shapes()
}

// settle improves the layout by joins and moves until neither helps.
func (c *climber) settle() {
	c.join()
	for c.tries > 0 {
		before := c.best.price
		c.move()
		c.spread()
		c.join()
		if !c.best.price.less(before) {
			break
		}
	}
}

type climber struct {
	best  *layout
	tries int
	ended bool // the run was cancelled
}

// try takes next instead of the best layout if it is better and can be.
func (c *climber) try(next *layout) bool {
	c.tries--
	if c.ended || c.best.g.ctx.Err() != nil {
		c.tries, c.ended = 0, true
		return false
	}
	next.clean()
	next.price = next.cost()
	if !next.price.less(c.best.price) || !next.possible() {
		return false
	}
	if next.price = next.cost(); !next.price.less(c.best.price) { // now that all is known
		return false
	}
	c.best = next
	return true
}

// join joins two kernels as long as that helps, those first that gain most.
func (c *climber) join() {
	type pair struct {
		a, b int
		gain price
	}
	gains := map[[2]int]price{} // of pairs that were looked at; nothing for those that gain nothing
	for {
		l := c.best
		outs, users := l.outs(), l.users()
		var pairs []pair
		for _, p := range l.neighbours(users) {
			gain, known := gains[p]
			if !known {
				a, b := l.in[p[0]], l.in[p[1]]
				if !slices.ContainsFunc(a, func(n int) bool { return l.g.apartFrom(n, b) }) {
					nodes := union(a, b)
					k := l.g.kernel(nodes, l.stores(nodes, p, users))
					now := l.g.kernel(a, outs[p[0]]).price.plus(l.g.kernel(b, outs[p[1]]).price)
					gain = price{now.fs - k.price.fs, now.bytes - k.price.bytes}
				}
				gains[p] = gain
			}
			if (price{}).less(gain) {
				pairs = append(pairs, pair{p[0], p[1], gain})
			}
		}
		slices.SortStableFunc(pairs, func(x, y pair) int {
			return cmp.Or(cmp.Compare(y.gain.fs, x.gain.fs), cmp.Compare(y.gain.bytes, x.gain.bytes))
		})
		joined := slices.ContainsFunc(pairs, func(p pair) bool {
			if c.ended {
				return false
			}
			next := l.clone()
			next.merge(p.a, p.b)
			if !c.try(next) {
				gains[[2]int{p.a, p.b}] = price{}
				return false
			}
			for q := range gains { // what these two and their neighbours store has changed
				if q[0] == p.a || q[1] == p.a || q[0] == p.b || q[1] == p.b {
					delete(gains, q)
				}
			}
			return true
		})
		if !joined {
			return
		}
	}
}

// move tries, for every kernel and every value that it reads, to compute the
// value there: with one op, with that and what is before it, and so on; either
// taking the ops from where they are or computing them a second time.
func (c *climber) move() {
	g := c.best.g
	for k := 0; k < len(c.best.in) && c.tries > 0; k++ {
		for n := 0; n < len(g.nodes) && c.tries > 0; n++ {
			if len(c.best.in[k]) == 0 || g.nodes[n].single || g.nodes[c.best.in[k][0]].single {
				continue
			}
			if g.inside(c.best.in[k], n) {
				if c.best.home[n] != k { // a copy
					next := c.best.clone()
					next.remove(n, k)
					c.try(next)
				}
				continue
			}
			if !c.best.touches(k, n) || g.apartFrom(n, c.best.in[k]) {
				continue
			}
			c.pull(k, n)
		}
	}
}

// pull tries to compute n and ever more of what it needs in kernel k.
func (c *climber) pull(k, n int) {
	g := c.best.g
	for _, take := range []bool{true, false} {
		next := c.best.clone()
		work := []int{n}
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			n := work[0]
			work = work[1:]
			if g.inside(next.in[k], n) || g.nodes[n].single || g.apartFrom(n, next.in[k]) || !take && !g.nodes[n].cheap {
				continue
			}
			from := next.home[n]
			next.add(n, k)
			if take && from >= 0 {
				next.remove(n, from)
				next.home[n] = k
			}
			if c.try(next.clone()) {
				return
			}
			for _, v := range g.nodes[n].ins {
				if d := g.values[v].def; d >= 0 {
					work = append(work, d)
				}
			}
		}
	}
}

// spread tries, for every cheap op, to compute it in each kernel that uses it
// and to store it no more; and with it what it needs, op by op.
func (c *climber) spread() {
	g := c.best.g
	for n := len(g.nodes) - 1; n >= 0 && c.tries > 0; n-- {
		if !g.nodes[n].cheap || g.nodes[n].single || c.best.home[n] < 0 {
			continue
		}
		next := c.best.clone()
		work := []int{n}
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			m := work[0]
			work = work[1:]
			if g.nodes[m].single || !g.nodes[m].cheap {
				continue
			}
			if !next.copyToUsers(m) {
				continue
			}
			if c.try(next.clone()) {
				break
			}
			for _, v := range g.nodes[m].ins {
				if d := g.values[v].def; d >= 0 {
					work = append(work, d)
				}
			}
		}
	}
}

// copyToUsers computes n in every kernel that uses it; false where one cannot.
func (l *layout) copyToUsers(n int) bool {
	var ks []int
	for _, v := range l.g.nodes[n].results {
		for k, in := range l.in {
			if len(in) == 0 || l.g.inside(in, n) || !slices.ContainsFunc(l.g.values[v].uses, func(u int) bool { return l.g.inside(in, u) }) {
				continue
			}
			if l.g.nodes[in[0]].single || l.g.apartFrom(n, in) {
				return false
			}
			ks = append(ks, k)
		}
	}
	for _, k := range ks {
		l.add(n, k)
	}
	return len(ks) > 0
}

// maxPull is how many ops are moved at once.
const maxPull = 8

func (g *graph) apartFrom(n int, nodes []int) bool {
	return slices.ContainsFunc(nodes, func(m int) bool { return m != n && g.apart(n, m) })
}

func union(a, b []int) []int {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}

func (l *layout) clone() *layout {
	return &layout{g: l.g, in: slices.Clone(l.in), home: slices.Clone(l.home)}
}

func (l *layout) add(n, k int) { l.in[k] = union(l.in[k], []int{n}) }
func (l *layout) remove(n, k int) {
	l.in[k] = slices.DeleteFunc(slices.Clone(l.in[k]), func(m int) bool { return m == n })
}

// dissolve makes a kernel of each op of k that no other computes.
func (l *layout) dissolve(k int) {
	for _, n := range l.in[k] {
		if l.home[n] != k || l.g.nodes[n].single {
			continue
		}
		if n > 0 && l.g.nodes[n-1].op == l.g.nodes[n].op && l.home[n-1] == len(l.in)-1 {
			l.in[len(l.in)-1] = append(l.in[len(l.in)-1], n)
		} else {
			l.in = append(l.in, []int{n})
		}
		l.home[n] = len(l.in) - 1
	}
	if !l.g.nodes[l.in[k][0]].single {
		l.in[k] = nil
	}
}

// merge makes kernel b part of a.
func (l *layout) merge(a, b int) {
	for _, n := range l.in[b] {
		if l.home[n] == b {
			l.home[n] = a
		}
	}
	l.in[a], l.in[b] = union(l.in[a], l.in[b]), nil
}

// stores are the values that a kernel of nodes, which takes the place of two,
// gives.
func (l *layout) stores(nodes []int, two [2]int, users [][]int) []int {
	var outs []int
	for _, n := range nodes {
		if h := l.home[n]; h != two[0] && h != two[1] {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.needed(v, users, two) {
				outs = append(outs, v)
			}
		}
	}
	slices.Sort(outs)
	return outs
}

// needed reports whether v is used by the function or by a kernel that does not
// compute it, other than two.
func (l *layout) needed(v int, users [][]int, two [2]int) bool {
	x := l.g.values[v]
	if x.out {
		return true
	}
	for _, u := range x.uses {
		for _, k := range users[u] {
			if k != two[0] && k != two[1] && !l.g.inside(l.in[k], x.def) {
				return true
			}
		}
	}
	return false
}

func (l *layout) outs() [][]int {
	outs := make([][]int, len(l.in))
	users := l.users()
	for n, h := range l.home {
		if h < 0 {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.needed(v, users, [2]int{-1, -1}) || l.g.nodes[n].single {
				outs[h] = append(outs[h], v)
			}
		}
	}
	for _, o := range outs {
		slices.Sort(o)
	}
	return outs
}

// users are the kernels that compute each node.
func (l *layout) users() [][]int {
	users := make([][]int, len(l.home))
	for k, in := range l.in {
		for _, n := range in {
			users[n] = append(users[n], k)
		}
	}
	return users
}

// clean takes out nodes that nothing in their kernel uses and whose results it
// does not store.
func (l *layout) clean() {
	for again := true; again; {
		again = false
		users := l.users()
		for n := len(l.home) - 1; n >= 0; n-- {
			if h := l.home[n]; h < 0 || !l.g.inside(l.in[h], n) {
				l.home[n] = -1
				if len(users[n]) > 0 {
					l.home[n] = users[n][0]
				}
			}
		}
		outs := l.outs()
		for n := len(l.home) - 1; n >= 0; n-- {
			if l.g.nodes[n].effects {
				continue
			}
			for _, k := range users[n] {
				if !l.useful(n, k, outs[k]) {
					l.remove(n, k)
					again = true
				}
			}
		}
	}
}

func (l *layout) useful(n, k int, outs []int) bool {
	for _, v := range l.g.nodes[n].results {
		if l.home[n] == k && slices.Contains(outs, v) {
			return true
		}
		for _, u := range l.g.values[v].uses {
			if l.g.inside(l.in[k], u) {
				return true
			}
		}
	}
	return false
}

func (l *layout) shapes() []*shape {
	var ks []*shape
	outs := l.outs()
	for k, in := range l.in {
		if len(in) > 0 {
			ks = append(ks, l.g.kernel(in, outs[k]))
		}
	}
	return ks
}

func (l *layout) cost() price {
	var p price
	for _, k := range l.shapes() {
		p = p.plus(k.price)
	}
	return p
}

// possible reports whether every kernel is legal and none waits for itself.
func (l *layout) possible() bool {
	ks := l.shapes()
	for _, k := range ks {
		if k.asked && !k.legal || !k.asked && slices.ContainsFunc(k.nodes, func(n int) bool { return l.g.apartFrom(n, k.nodes) }) {
			return false
		}
	}
	if !l.g.acyclic(ks) {
		return false
	}
	for _, k := range ks {
		if !l.g.possible(k) {
			return false
		}
	}
	return true
}

// acyclic reports whether there is an order in which ks can run.
func (g *graph) acyclic(ks []*shape) bool {
	stores := make([]int, len(g.values))
	for i, k := range ks {
		for _, v := range k.outs {
			stores[v] = i + 1
		}
	}
	const unseen, open, closed = 0, 1, 2
	marks := make([]byte, len(ks))
	var visit func(i int) bool
	visit = func(i int) bool {
		switch marks[i] {
		case open:
			return false
		case closed:
			return true
		}
		marks[i] = open
		for _, v := range ks[i].ins {
			if s := stores[v] - 1; s >= 0 && s != i && !visit(s) {
				return false
			}
		}
		marks[i] = closed
		return true
	}
	for i := range ks {
		if !visit(i) {
			return false
		}
	}
	return true
}

// touches reports whether kernel k and node n share a value.
func (l *layout) touches(k, n int) bool {
	l.g.look()
	node := l.g.nodes[n]
	for _, v := range slices.Concat(node.ins, node.results) {
		x := l.g.values[v]
		if l.g.inside(l.in[k], x.def) {
			return true
		}
		for _, u := range x.uses {
			if l.g.inside(l.in[k], u) {
				return true
			}
		}
	}
	return false
}

// neighbours are the pairs of kernels that share a value.
func (l *layout) neighbours(users [][]int) [][2]int {
	seen := map[[2]int]bool{}
	var pairs [][2]int
	for _, x := range l.g.values {
		l.g.look()
		var ks []int
		if x.def >= 0 {
			ks = append(ks, users[x.def]...)
		}
		for _, u := range x.uses {
			ks = append(ks, users[u]...)
		}
		for i, b := range ks {
			for _, a := range ks[:i] {
				p := [2]int{min(a, b), max(a, b)}
				if a == b || seen[p] {
					continue
				}
				seen[p] = true
				if !l.g.nodes[l.in[a][0]].single && !l.g.nodes[l.in[b][0]].single {
					pairs = append(pairs, p)
				}
			}
		}
	}
	slices.SortFunc(pairs, func(p, q [2]int) int { return cmp.Or(p[0]-q[0], p[1]-q[1]) })
	return pairs
}
