package fuse

import (
	"cmp"
	"slices"
)

// partition is a plan under local search: the nodes of each kernel, and which
// of the kernels that compute a node stores its results.
type partition struct {
	g     *graph
	in    [][]int // nodes of each kernel, ascending; nil for a removed kernel
	owner []int   // by node: the kernel that stores its results, -1 for none
	price price
}

// localSearch finds a plan by local search, for graphs that are too long for an
// exact one. It merges kernels greedily, largest gain first, and then moves ops
// between kernels, recomputes cheap ops at their uses or stops doing so, and
// merges again until nothing improves or the tries are used up.
func (g *graph) localSearch(tries int) (price, []*candidate) {
	l := &partition{g: g, in: make([][]int, len(g.nodes)), owner: make([]int, len(g.nodes))}
	for i := range g.nodes {
		l.in[i], l.owner[i] = []int{i}, i
		if i > 0 && g.nodes[i-1].op == g.nodes[i].op && !g.nodes[i].unfusible {
			l.owner[i], l.in[i] = l.owner[i-1], nil
			l.in[l.owner[i]] = append(l.in[l.owner[i]], i)
		}
	}
	l.prune()
	l.valid()
	l.price = l.cost()
	c := &localSearch{best: l, tries: tries * 128 / max(128, len(g.nodes))} // the cost of a try is linear in the graph
	c.descend()
	// To leave a local optimum, split two neighbouring kernels and descend again,
	// for all pairs in turn, until none helps.
	for again := true; again && c.tries > 0; {
		again = false
		for _, p := range c.best.neighbours(c.best.users()) {
			if c.tries <= 0 || len(c.best.in[p[0]]) == 0 || len(c.best.in[p[1]]) == 0 {
				continue
			}
			best := c.best
			c.best = best.clone()
			c.best.split(p[0])
			c.best.split(p[1])
			c.best.prune()
			c.best.valid()
			c.best.price = c.best.cost()
			c.descend()
			// Other kernels must now store what the two recomputed, which may be
			// invalid.
			if c.best.price.less(best.price) && c.best.valid() {
				again = true
			} else {
				c.best = best
			}
		}
	}
	return c.best.price, c.best.shapes()
}

// descend improves the partition by merges and moves to a local optimum.
func (c *localSearch) descend() {
	c.join()
	for c.tries > 0 {
		before := c.best.price
		c.move()
		c.rematerialize()
		c.join()
		if !c.best.price.less(before) {
			break
		}
	}
}

type localSearch struct {
	best  *partition
	tries int
	ended bool // the context was canceled
}

// explore replaces the best partition by next if next is cheaper and valid.
func (c *localSearch) explore(next *partition) bool {
	c.tries--
	if c.ended || c.best.g.ctx.Err() != nil {
		c.tries, c.ended = 0, true
		return false
	}
	next.prune()
	next.price = next.cost()
	if !next.price.less(c.best.price) || !next.valid() {
		return false
	}
	if next.price = next.cost(); !next.price.less(c.best.price) { // with the partial results that valid has added
		return false
	}
	c.best = next
	return true
}

// join merges pairs of kernels, largest gain first, while that helps.
func (c *localSearch) join() {
	type pair struct {
		a, b int
		gain price
	}
	gains := map[[2]int]price{} // of the pairs evaluated; zero where merging gains nothing
	for {
		l := c.best
		outs, users := l.outs(), l.users()
		var pairs []pair
		for _, p := range l.neighbours(users) {
			gain, known := gains[p]
			if !known {
				a, b := l.in[p[0]], l.in[p[1]]
				if !slices.ContainsFunc(a, func(n int) bool { return l.g.conflicts(n, b) }) {
					nodes := union(a, b)
					k := l.g.kernel(nodes, l.stores(nodes, p, users))
					replacement := l.g.kernel(a, outs[p[0]]).price.plus(l.g.kernel(b, outs[p[1]]).price)
					gain = price{replacement.fs - k.price.fs, replacement.bytes - k.price.bytes}
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
			if !c.explore(next) {
				gains[[2]int{p.a, p.b}] = price{}
				return false
			}
			for q := range gains { // the results stored by these two and their neighbours have changed
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
// value there: its op alone, then with its operands' ops, and so on, either
// moving or copying them.
func (c *localSearch) move() {
	g := c.best.g
	for k := 0; k < len(c.best.in) && c.tries > 0; k++ {
		for n := 0; n < len(g.nodes) && c.tries > 0; n++ {
			if len(c.best.in[k]) == 0 || g.nodes[n].unfusible || g.nodes[c.best.in[k][0]].unfusible {
				continue
			}
			if g.inside(c.best.in[k], n) {
				if c.best.owner[n] != k { // a copy
					next := c.best.clone()
					next.remove(n, k)
					c.explore(next)
				}
				continue
			}
			if !c.best.adjacent(k, n) || g.conflicts(n, c.best.in[k]) {
				continue
			}
			c.pull(k, n)
		}
	}
}

// pull tries to compute n, and transitively its operands, in kernel k.
func (c *localSearch) pull(k, n int) {
	g := c.best.g
	for _, take := range []bool{true, false} {
		next := c.best.clone()
		work := []int{n}
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			n := work[0]
			work = work[1:]
			if g.inside(next.in[k], n) || g.nodes[n].unfusible || g.conflicts(n, next.in[k]) || !take && !g.nodes[n].cheap {
				continue
			}
			from := next.owner[n]
			next.add(n, k)
			if take && from >= 0 {
				next.remove(n, from)
				next.owner[n] = k
			}
			if c.explore(next.clone()) {
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

// rematerialize tries, for every cheap op, to compute it in each kernel that
// uses it instead of storing it, and transitively its operands.
func (c *localSearch) rematerialize() {
	g := c.best.g
	for n := len(g.nodes) - 1; n >= 0 && c.tries > 0; n-- {
		if !g.nodes[n].cheap || g.nodes[n].unfusible || c.best.owner[n] < 0 {
			continue
		}
		next := c.best.clone()
		work := []int{n}
		for depth := 0; depth < maxPull && len(work) > 0; depth++ {
			m := work[0]
			work = work[1:]
			if g.nodes[m].unfusible || !g.nodes[m].cheap {
				continue
			}
			if !next.copyToUsers(m) {
				continue
			}
			if c.explore(next.clone()) {
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

// copyToUsers computes n in every kernel that uses it; false if one of them
// cannot hold it.
func (l *partition) copyToUsers(n int) bool {
	var ks []int
	for _, v := range l.g.nodes[n].results {
		for k, in := range l.in {
			if len(in) == 0 || l.g.inside(in, n) || !slices.ContainsFunc(l.g.values[v].uses, func(u int) bool { return l.g.inside(in, u) }) {
				continue
			}
			if l.g.nodes[in[0]].unfusible || l.g.conflicts(n, in) {
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

// maxPull bounds the ops moved at once.
const maxPull = 8

func (g *graph) conflicts(n int, nodes []int) bool {
	return slices.ContainsFunc(nodes, func(m int) bool { return m != n && g.conflict(n, m) })
}

func union(a, b []int) []int {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}

func (l *partition) clone() *partition {
	return &partition{g: l.g, in: slices.Clone(l.in), owner: slices.Clone(l.owner)}
}

func (l *partition) add(n, k int) { l.in[k] = union(l.in[k], []int{n}) }
func (l *partition) remove(n, k int) {
	l.in[k] = slices.DeleteFunc(slices.Clone(l.in[k]), func(m int) bool { return m == n })
}

// split makes a kernel of each op of k that only k computes.
func (l *partition) split(k int) {
	for _, n := range l.in[k] {
		if l.owner[n] != k || l.g.nodes[n].unfusible {
			continue
		}
		if n > 0 && l.g.nodes[n-1].op == l.g.nodes[n].op && l.owner[n-1] == len(l.in)-1 {
			l.in[len(l.in)-1] = append(l.in[len(l.in)-1], n)
		} else {
			l.in = append(l.in, []int{n})
		}
		l.owner[n] = len(l.in) - 1
	}
	if !l.g.nodes[l.in[k][0]].unfusible {
		l.in[k] = nil
	}
}

// merge moves the ops of kernel b into a.
func (l *partition) merge(a, b int) {
	for _, n := range l.in[b] {
		if l.owner[n] == b {
			l.owner[n] = a
		}
	}
	l.in[a], l.in[b] = union(l.in[a], l.in[b]), nil
}

// stores are the results of a kernel of nodes that replaces two.
func (l *partition) stores(nodes []int, two [2]int, users [][]int) []int {
	var outs []int
	for _, n := range nodes {
		if h := l.owner[n]; h != two[0] && h != two[1] {
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
func (l *partition) needed(v int, users [][]int, two [2]int) bool {
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

func (l *partition) outs() [][]int {
	outs := make([][]int, len(l.in))
	users := l.users()
	for n, h := range l.owner {
		if h < 0 {
			continue
		}
		for _, v := range l.g.nodes[n].results {
			if l.needed(v, users, [2]int{-1, -1}) || l.g.nodes[n].unfusible {
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
func (l *partition) users() [][]int {
	users := make([][]int, len(l.owner))
	for k, in := range l.in {
		for _, n := range in {
			users[n] = append(users[n], k)
		}
	}
	return users
}

// prune removes nodes from kernels that neither use nor store their results.
func (l *partition) prune() {
	for again := true; again; {
		again = false
		users := l.users()
		for n := len(l.owner) - 1; n >= 0; n-- {
			if h := l.owner[n]; h < 0 || !l.g.inside(l.in[h], n) {
				l.owner[n] = -1
				if len(users[n]) > 0 {
					l.owner[n] = users[n][0]
				}
			}
		}
		outs := l.outs()
		for n := len(l.owner) - 1; n >= 0; n-- {
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

func (l *partition) useful(n, k int, outs []int) bool {
	for _, v := range l.g.nodes[n].results {
		if l.owner[n] == k && slices.Contains(outs, v) {
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

func (l *partition) shapes() []*candidate {
	var ks []*candidate
	outs := l.outs()
	for k, in := range l.in {
		if len(in) > 0 {
			ks = append(ks, l.g.kernel(in, outs[k]))
		}
	}
	return ks
}

func (l *partition) cost() price {
	var p price
	for _, k := range l.shapes() {
		p = p.plus(k.price)
	}
	return p
}

// valid reports whether every kernel is legal and there is no cycle among them.
func (l *partition) valid() bool {
	ks := l.shapes()
	for _, k := range ks {
		if k.checked && !k.legal || !k.checked && slices.ContainsFunc(k.nodes, func(n int) bool { return l.g.conflicts(n, k.nodes) }) {
			return false
		}
	}
	if !acyclic(l.g.dependences(ks)) {
		return false
	}
	for _, k := range ks {
		if !l.g.valid(k) {
			return false
		}
	}
	return true
}

// acyclic reports whether waits, the nodes that each node waits for, has no cycle.
func acyclic(waits [][]int) bool {
	const unseen, open, closed = 0, 1, 2
	marks := make([]byte, len(waits))
	var visit func(i int) bool
	visit = func(i int) bool {
		switch marks[i] {
		case open:
			return false
		case closed:
			return true
		}
		marks[i] = open
		for _, j := range waits[i] {
			if !visit(j) {
				return false
			}
		}
		marks[i] = closed
		return true
	}
	for i := range waits {
		if !visit(i) {
			return false
		}
	}
	return true
}

// adjacent reports whether kernel k and node n share a value.
func (l *partition) adjacent(k, n int) bool {
	l.g.checkContext()
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
func (l *partition) neighbours(users [][]int) [][2]int {
	seen := map[[2]int]bool{}
	var pairs [][2]int
	for _, x := range l.g.values {
		l.g.checkContext()
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
				if !l.g.nodes[l.in[a][0]].unfusible && !l.g.nodes[l.in[b][0]].unfusible {
					pairs = append(pairs, p)
				}
			}
		}
	}
	slices.SortFunc(pairs, func(p, q [2]int) int { return cmp.Or(p[0]-q[0], p[1]-q[1]) })
	return pairs
}
