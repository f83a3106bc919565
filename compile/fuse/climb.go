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
	l.price = l.cost()
	c := &climber{best: l, tries: tries}
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
	return c.best.price, c.best.shapes()
}

type climber struct {
	best  *layout
	tries int
}

// try takes next instead of the best layout if it is better and can be.
func (c *climber) try(next *layout) bool {
	c.tries--
	next.clean()
	next.price = next.cost()
	if !next.price.less(c.best.price) || !next.possible() {
		return false
	}
	c.best = next
	return true
}

// join joins two kernels as long as that helps.
func (c *climber) join() {
	type pair struct {
		a, b int
		gain price
	}
	refused := map[[2]int]bool{}
	for {
		l := c.best
		outs := l.outs()
		var pairs []pair
		for _, p := range l.neighbours() {
			if refused[p] {
				continue
			}
			nodes := union(l.in[p[0]], l.in[p[1]])
			k := l.g.kernel(nodes, l.stores(nodes, p[0], p[1]))
			now := l.g.kernel(l.in[p[0]], outs[p[0]]).price.plus(l.g.kernel(l.in[p[1]], outs[p[1]]).price)
			if k.price.less(now) {
				pairs = append(pairs, pair{p[0], p[1], price{now.fs - k.price.fs, now.bytes - k.price.bytes}})
			}
		}
		slices.SortStableFunc(pairs, func(x, y pair) int {
			return cmp.Or(cmp.Compare(y.gain.fs, x.gain.fs), cmp.Compare(y.gain.bytes, x.gain.bytes))
		})
		joined := false
		for _, p := range pairs {
			next := l.clone()
			next.merge(p.a, p.b)
			if joined = c.try(next); joined {
				for r := range refused {
					if r[0] == p.a || r[1] == p.a || r[0] == p.b || r[1] == p.b {
						delete(refused, r)
					}
				}
				break
			}
			refused[[2]int{p.a, p.b}] = true
		}
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
	return slices.ContainsFunc(nodes, func(m int) bool { return g.apart(n, m) })
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

// merge makes kernel b part of a.
func (l *layout) merge(a, b int) {
	for _, n := range l.in[b] {
		if l.home[n] == b {
			l.home[n] = a
		}
	}
	l.in[a], l.in[b] = union(l.in[a], l.in[b]), nil
}

// stores are the values that a kernel of nodes, which takes the place of a and
// b, gives.
func (l *layout) stores(nodes []int, a, b int) []int {
	var outs []int
	for _, n := range nodes {
		if h := l.home[n]; h != a && h != b {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.wanted(v, nodes, a, b) {
				outs = append(outs, v)
			}
		}
	}
	slices.Sort(outs)
	return outs
}

// wanted reports whether v is needed outside the kernel of nodes.
func (l *layout) wanted(v int, nodes []int, a, b int) bool {
	x := l.g.values[v]
	if x.out {
		return true
	}
	for k, in := range l.in {
		if k == a || k == b || len(in) == 0 || l.g.inside(in, x.def) {
			continue
		}
		for _, u := range x.uses {
			if l.g.inside(in, u) {
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
			needed := l.g.values[v].out
			for _, u := range l.g.values[v].uses {
				for _, k := range users[u] {
					needed = needed || !l.g.inside(l.in[k], n)
				}
			}
			if needed || l.g.nodes[n].single {
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
		if !k.asked {
			for i, n := range k.nodes {
				if l.g.apartFrom(n, k.nodes[:i]) {
					return false
				}
			}
		}
	}
	if _, ok := l.g.order(slices.Clone(ks)); !ok {
		return false
	}
	for _, k := range ks {
		if !l.g.possible(k) {
			return false
		}
	}
	return true
}

// touches reports whether kernel k and node n share a value.
func (l *layout) touches(k, n int) bool {
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
func (l *layout) neighbours() [][2]int {
	users := l.users()
	seen := map[[2]int]bool{}
	var pairs [][2]int
	for _, x := range l.g.values {
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
