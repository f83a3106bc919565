package fuse

import "slices"

// part is a set of nodes that no kernel joins with others, so that it is
// planned by itself. What other parts use of it and can compute no other way is
// demanded from it; cheap nodes of other parts may be computed again in it.
type part struct {
	g       *graph
	own     []int       // nodes, ascending
	nodes   []int       // own and the cheap ones of others that it may compute again
	local   map[int]int // node to its place in nodes
	touches int
	vals    map[int]int // value that any of nodes touches, to its number in the part
	value   []int       // and back

	near  []set // by place in nodes: the values it touches
	apart []set // by place in nodes: the nodes it is never in one kernel with
	heavy set   // own nodes that are computed once
	from  []set // by number of the value: nodes that it depends on
	need  []set // by number of the value: heavy nodes that it depends on
	solo  []price

	known map[string]*plan
}

// set is a set of nodes or values of a part.
type set [setWords]uint64

const (
	setWords = 8
	maxLocal = 64 * setWords
)

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s *set) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s set) or(t set) set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s set) minus(t set) set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

func (s set) meets(t set) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// apart reports whether nodes a and b are never in one kernel.
func (g *graph) apart(a, b int) bool {
	g.look()
	n, m := g.nodes[a], g.nodes[b]
	if n.op == m.op {
		return false
	}
	k := [2]int{min(a, b), max(a, b)}
	v, known := g.apartness[k]
	if !known {
		v = n.single || m.single || g.rules.Apart(n.op, m.op)
		g.apartness[k] = v
	}
	return v
}

// joinable reports whether a before b may be in one kernel as far as what lies
// between them says: all of it would be in the kernel too.
func (g *graph) joinable(a, b int) bool {
	if g.apart(a, b) {
		return false
	}
	if !g.nodes[b].before.has(a) {
		return true
	}
	for w := a + 1; w < b; w++ {
		if n := g.nodes[w]; !n.cheap && n.before.has(a) && g.nodes[b].before.has(w) && (g.apart(w, b) || g.apart(w, a)) {
			return false
		}
	}
	return true
}

// parts cuts the graph where no kernel can reach across. together lists nodes
// that must be in one part.
func (g *graph) parts(together [][2]int) []*part {
	root := make([]int, len(g.nodes))
	for i := range root {
		root[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if root[i] != i {
			root[i] = find(root[i])
		}
		return root[i]
	}
	join := func(a, b int) { root[find(b)] = find(a) }
	for i, n := range g.nodes {
		for _, v := range n.ins {
			if d := g.values[v].def; d >= 0 && find(d) != find(i) && g.joinable(d, i) {
				join(d, i)
			}
		}
		if i > 0 && g.nodes[i-1].op == n.op {
			join(i-1, i)
		}
	}
	for _, v := range g.values {
		for j, b := range v.uses {
			for _, a := range v.uses[:j] {
				if find(a) != find(b) && g.joinable(min(a, b), max(a, b)) {
					join(a, b)
				}
			}
		}
	}
	for _, t := range together {
		join(t[0], t[1])
	}
	byRoot := map[int]*part{}
	var parts []*part
	for i, n := range g.nodes {
		r := find(i)
		p := byRoot[r]
		touches := len(n.ins) + len(n.results)
		if p == nil || p.touches+touches > maxTouches { // what is longer is cut in the order of the text
			g.cut = g.cut || p != nil
			p = &part{g: g, known: map[string]*plan{}}
			byRoot[r] = p
			parts = append(parts, p)
		}
		p.own = append(p.own, i)
		p.touches += touches
		n.part = p
	}
	for _, p := range parts {
		if !p.lone() {
			p.index()
		}
	}
	return parts
}

// maxTouches bounds what the nodes of a part read and give, so that a set holds
// its values.
const maxTouches = maxLocal * 3 / 4

// index numbers what p's search touches.
func (p *part) index() {
	g := p.g
	p.nodes = slices.Clone(p.own)
	in := map[int]bool{}
	for _, n := range p.own {
		in[n] = true
	}
	for i := 0; i < len(p.nodes); i++ {
		for _, v := range g.nodes[p.nodes[i]].ins {
			d := g.values[v].def
			if d < 0 || in[d] || !g.nodes[d].cheap || g.nodes[d].single {
				continue
			}
			n := g.nodes[d]
			if touches := len(n.ins) + len(n.results); p.touches+touches <= maxLocal {
				p.touches += touches
				in[d] = true
				p.nodes = append(p.nodes, d)
			}
		}
	}
	slices.Sort(p.nodes)
	p.local, p.vals = map[int]int{}, map[int]int{}
	p.near, p.apart, p.solo = make([]set, len(p.nodes)), make([]set, len(p.nodes)), make([]price, len(p.nodes))
	for i, n := range p.nodes {
		p.local[n] = i
		for _, v := range slices.Concat(g.nodes[n].ins, g.nodes[n].results) {
			l, ok := p.vals[v]
			if !ok {
				l = len(p.value)
				p.vals[v] = l
				p.value = append(p.value, v)
			}
			p.near[i].add(l)
		}
		if i > 0 && g.nodes[p.nodes[i-1]].op == g.nodes[n].op { // the results of one dropout
			both := p.near[i-1].or(p.near[i])
			p.near[i-1], p.near[i] = both, both
		}
		if g.nodes[n].part == p && !g.nodes[n].cheap {
			p.heavy.add(i)
		}
		for j, m := range p.nodes[:i] {
			if g.apart(m, n) {
				p.apart[i].add(j)
				p.apart[j].add(i)
			}
		}
		alone := g.kernel([]int{n}, g.nodes[n].results)
		g.possible(alone)
		p.solo[i] = alone.price
	}
	p.need, p.from = make([]set, len(p.value)), make([]set, len(p.value))
	for l, v := range p.value {
		if d := g.values[v].def; d >= 0 {
			for i, n := range p.nodes {
				if !g.nodes[d].before.has(n) {
					continue
				}
				p.from[l].add(i)
				if p.heavy.has(i) {
					p.need[l].add(i)
				}
			}
		}
	}
}

// owns reports whether v is computed in p.
func (p *part) owns(v int) bool {
	d := p.g.values[v].def
	return d >= 0 && p.g.nodes[d].part == p
}

// lone reports whether p is one op that stands alone.
func (p *part) lone() bool { return len(p.own) == 1 && p.g.nodes[p.own[0]].single }
