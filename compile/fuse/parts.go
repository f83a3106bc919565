package fuse

import (
	"slices"

	"dmir/dialect/ir"
)

// part is a set of nodes that no kernel joins with nodes outside, so that it is
// planned by itself. Its values that other parts use and cannot recompute must
// be stored; cheap nodes of other parts may be recomputed in it.
type part struct {
	g        *graph
	root     int         // of several pieces of a part that is too long, the same
	own      []int       // nodes, ascending
	nodes    []int       // own, and cheap ones of other parts that it may recompute
	local    map[int]int // node to its index in nodes
	operands int         // how many values its nodes read and write, repetitions counted
	vals     map[int]int // value that any of nodes reads or writes, to its index in value
	value    []int       // the inverse of vals

	near     []set // by index in nodes: the values it reads and writes
	conflict []set // by index in nodes: the nodes it is never in one kernel with
	heavy    set   // own nodes that are not recomputed
	from     []set // by number of the value: nodes that it depends on
	need     []set // by number of the value: heavy nodes that it depends on
	unfused  []price

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

// conflict reports whether nodes a and b are never in one kernel.
func (g *graph) conflict(a, b int) bool {
	g.checkContext()
	g.counts.Add("conflict", 1)
	n, m := g.nodes[a], g.nodes[b]
	if n.op == m.op {
		return false
	}
	if n.unfusible || m.unfusible {
		return true
	}
	first, i := g.nodes[min(a, b)], max(a, b)
	if first.asked == nil {
		words := (len(g.nodes) + 63) / 64
		both := make(bitset, 2*words)
		first.asked, first.apart = both[:words], both[words:]
	}
	if !first.asked.has(i) {
		if first.asked.add(i); g.rules.Conflict(n.op, m.op, g.depends) {
			first.apart.add(i)
		}
	}
	return first.apart.has(i)
}

// depends reports whether o may depend on another op of the graph.
func (g *graph) depends(o, on *ir.Op) bool {
	if o.Parent != g.body.Block {
		return false
	}
	i, isNode := g.nodeOf[o] // or a view
	return !isNode || g.nodes[i].before.has(g.nodeOf[on])
}

// joinable reports whether a and a later b may be in one kernel, given that all
// nodes on paths between them would be in it too.
func (g *graph) joinable(a, b int) bool {
	if !g.nodes[b].before.has(a) {
		return !g.conflict(a, b)
	}
	between := func(w int) bool {
		return !g.nodes[w].cheap && g.nodes[w].before.has(a) && g.nodes[b].before.has(w)
	}
	// What conflicts with one of them is mostly near it, and nodes far from each other
	// take longer to compare.
	for i := 1; a+i < b; i++ {
		if between(a+i) && g.conflict(a+i, a) || between(b-i) && g.conflict(b-i, b) {
			return false
		}
	}
	return !g.conflict(a, b)
}

// parts splits the graph where no kernel reaches across. together lists pairs
// of nodes that must be in one part.
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
		var apart [][]int // the uses so far, by what they are joined with
		for _, b := range v.uses {
			with := -1
			for i := 0; i < len(apart); i++ {
				us := apart[i]
				if find(us[0]) != find(b) && slices.ContainsFunc(us, func(a int) bool { return g.joinable(min(a, b), max(a, b)) }) {
					join(us[0], b)
				}
				switch {
				case find(us[0]) != find(b):
				case with < 0:
					with = i
				default:
					apart[with] = append(apart[with], us...)
					apart = slices.Delete(apart, i, i+1)
					i--
				}
			}
			if with < 0 {
				apart = append(apart, []int{b})
			} else {
				apart[with] = append(apart[with], b)
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
		touched := len(n.ins) + len(n.results)
		if p == nil || p.operands+touched > g.most { // split longer ones in the order of the text
			g.cut = g.cut || p != nil
			p = &part{g: g, root: r, known: map[string]*plan{}}
			byRoot[r] = p
			parts = append(parts, p)
		}
		p.own = append(p.own, i)
		p.operands += touched
		n.part = p
	}
	for _, p := range parts {
		if !p.unfusible() {
			p.index()
		}
	}
	return parts
}

// maxOperands bounds the values that the nodes of a part read and write, so that a set holds
// its values.
const maxOperands = maxLocal * 3 / 4

// index numbers the nodes and values of p's search.
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
			if d < 0 || in[d] || !g.nodes[d].cheap || g.nodes[d].unfusible {
				continue
			}
			n := g.nodes[d]
			if touched := len(n.ins) + len(n.results); p.operands+touched <= maxLocal {
				p.operands += touched
				in[d] = true
				p.nodes = append(p.nodes, d)
			}
		}
	}
	slices.Sort(p.nodes)
	p.local, p.vals = map[int]int{}, map[int]int{}
	p.near, p.conflict, p.unfused = make([]set, len(p.nodes)), make([]set, len(p.nodes)), make([]price, len(p.nodes))
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
			if g.conflict(m, n) {
				p.conflict[i].add(j)
				p.conflict[j].add(i)
			}
		}
		one := g.kernel([]int{n}, g.nodes[n].results)
		g.valid(one)
		p.unfused[i] = one.price
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

// owns reports whether p computes v.
func (p *part) owns(v int) bool {
	d := p.g.values[v].def
	return d >= 0 && p.g.nodes[d].part == p
}

// unfusible reports whether p is a single op that is not fused.
func (p *part) unfusible() bool { return len(p.own) == 1 && p.g.nodes[p.own[0]].unfusible }
