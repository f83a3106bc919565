package fuse

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// repeats is a map of a part of the graph onto another part of it: of a model of
// equal layers, each node of a layer to that of the next one. A node is mapped
// only to one of the same op, attributes and types, whose operands are what its
// own are mapped to, so that groups of nodes that it maps to each other are equal
// up to the values that they read.
type repeats struct {
	chain  []int   // by node: its index in chains
	at     []int   // by node: its index in its chain
	chains [][]int // nodes, each mapped to the next one
	fixed  []bool  // by node: mapped to itself, as what all layers share
	layer  []int   // by node: its number among those that are mapped to each other, or noLayer
	layers int
}

const noLayer = -1 << 30

// minLayers is how many equal layers are planned once; fewer are searched one by
// one.
const minLayers = searched + 2

// repeated finds the equal layers of g: for a few kinds of nodes that occur at least
// minLayers times, the map that sends one such node to the next one of the text,
// extended along edges as far as ops agree. The map of the most nodes is the result;
// nil where there is none.
func (g *graph) repeated() *repeats {
	kinds := g.kinds()
	var best *repeats
	mapped := 0
	for _, rounds := range []int{3, 1} { // the second for layers of few nodes
		for _, same := range g.anchors(g.refine(kinds, rounds)) {
			m := g.extend(same[len(same)/2-1], same[len(same)/2], kinds)
			if m.mapped <= mapped {
				continue
			}
			if r := m.repeats(); r != nil {
				best, mapped = r, m.mapped
			}
		}
	}
	return best
}

// anchors are, of each color, the nodes, if they are as many as layers that are planned
// once. Of colors of as many nodes, which are probably of the same layers, it is
// one, a contraction if there is any; those that most nodes have come first.
func (g *graph) anchors(colors []int) [][]int {
	byColor := map[int][]int{}
	for n, c := range colors {
		if !g.nodes[n].effects {
			byColor[c] = append(byColor[c], n)
		}
	}
	type size struct {
		anchors []int
		nodes   int
	}
	bySize := map[int]*size{}
	var sizes []*size
	for n, c := range colors {
		same := byColor[c]
		if len(same) < minLayers || same[0] != n {
			continue
		}
		s := bySize[len(same)]
		if s == nil {
			s = &size{anchors: same}
			bySize[len(same)] = s
			sizes = append(sizes, s)
		}
		if s.nodes += len(same); g.nodes[n].tensor > g.nodes[s.anchors[0]].tensor {
			s.anchors = same
		}
	}
	slices.SortStableFunc(sizes, func(a, b *size) int { return cmp.Compare(b.nodes, a.nodes) })
	var all [][]int
	for _, s := range sizes[:min(len(sizes), maxAnchors)] {
		all = append(all, s.anchors)
	}
	return all
}

// maxAnchors bounds the maps that are tried.
const maxAnchors = 4

// kinds numbers the nodes by op, attributes and types.
func (g *graph) kinds() []int {
	kinds := make([]int, len(g.nodes))
	for i, n := range g.nodes {
		kinds[i] = g.legal.kindOf(n.op)
	}
	return kinds
}

// kindOf is equal for ops of the same name, attributes and types.
func kindOf(o *ir.Op) string {
	var b strings.Builder
	b.WriteString(o.Name)
	for _, a := range o.Attrs {
		b.WriteByte(' ')
		b.WriteString(a.String())
	}
	for _, v := range slices.Concat(o.Operands, o.Results) {
		b.WriteByte(' ')
		b.WriteString(v.Type.String())
	}
	return b.String()
}

func intern(number map[string]int, s string) int {
	n, ok := number[s]
	if !ok {
		n = len(number)
		number[s] = n
	}
	return n
}

// refine distinguishes nodes of one kind by those around them, so many edges away.
func (g *graph) refine(kinds []int, rounds int) []int {
	colors := kinds
	for range rounds {
		number, next := map[string]int{}, make([]int, len(colors))
		for i, n := range g.nodes {
			g.checkContext()
			b := strconv.AppendInt(nil, int64(colors[i]), 10)
			for _, v := range n.ins {
				b = append(b, ' ')
				if d := g.values[v].def; d >= 0 {
					b = strconv.AppendInt(b, int64(colors[d]), 10)
				}
			}
			var users []int
			for _, v := range n.results {
				if uses := g.values[v].uses; len(uses) <= maxShared {
					for _, u := range uses {
						users = append(users, colors[u])
					}
				}
			}
			slices.Sort(users)
			b = append(b, '>')
			for _, c := range users {
				b = strconv.AppendInt(append(b, ' '), int64(c), 10)
			}
			next[i] = intern(number, string(b))
		}
		colors = next
	}
	return colors
}

// mapping is a map of nodes while it is extended.
type mapping struct {
	g          *graph
	kinds      []int
	next, prev []int // by node; -1: none
	mapped     int
	image      map[*ir.Value]*ir.Value
	origin     map[*ir.Value]*ir.Value
	anchor     int
}

// extend is the largest map that sends node a to b and follows edges from there.
func (g *graph) extend(a, b int, kinds []int) *mapping {
	m := &mapping{g: g, kinds: kinds, next: make([]int, len(g.nodes)), prev: make([]int, len(g.nodes)), image: map[*ir.Value]*ir.Value{}, origin: map[*ir.Value]*ir.Value{}, anchor: a}
	for i := range m.next {
		m.next[i], m.prev[i] = -1, -1
	}
	for work := [][2]int{{a, b}}; len(work) > 0; work = work[1:] {
		g.checkContext()
		x, y := work[0][0], work[0][1]
		if m.next[x] >= 0 || m.prev[y] >= 0 || !m.add(x, y) {
			continue
		}
		n, o := g.nodes[x], g.nodes[y]
		for i, v := range n.ins {
			w := o.ins[i]
			if d, e := g.values[v].def, g.values[w].def; d >= 0 && e >= 0 {
				work = append(work, [2]int{d, e})
			}
			work = m.users(work, v, w)
		}
		for i, v := range n.results {
			work = m.users(work, v, o.results[i])
		}
	}
	return m
}

// users appends the pairs of users of v and of its image w: of the same kind, in the
// order of the text, where they are as many.
func (m *mapping) users(work [][2]int, v, w int) [][2]int {
	us, ws := m.g.values[v].uses, m.g.values[w].uses
	if v == w || len(us) > maxShared || len(ws) > maxShared {
		return work
	}
	for i, u := range us {
		if m.next[u] >= 0 {
			continue
		}
		rank, same := 0, 0 // among those of its kind, and how many they are
		for j, x := range us {
			if m.kinds[x] == m.kinds[u] {
				same++
				if j < i {
					rank++
				}
			}
		}
		var images []int
		for _, x := range ws {
			if m.kinds[x] == m.kinds[u] {
				images = append(images, x)
			}
		}
		if len(images) == same {
			work = append(work, [2]int{u, images[rank]})
		}
	}
	return work
}

// add maps x to y if they and their operands are equal under the map so far.
func (m *mapping) add(x, y int) bool {
	g := m.g
	n, o := g.nodes[x], g.nodes[y]
	if m.kinds[x] != m.kinds[y] || !slices.Equal(n.read, o.read) || len(n.ins) != len(o.ins) || len(n.results) != len(o.results) ||
		n.unfusible != o.unfusible || n.effects || o.effects || (n.update == nil) != (o.update == nil) || !sameOp(n.op, o.op) {
		return false
	}
	if n.update != nil && (n.update.bytes != o.update.bytes || n.update.rest != o.update.rest) {
		return false
	}
	var pairs [][2]*ir.Value
	pair := func(v, w *ir.Value) bool {
		at, set := m.image[v]
		from, taken := m.origin[w]
		if set || taken {
			return at == w && from == v
		}
		m.image[v], m.origin[w] = w, v
		pairs = append(pairs, [2]*ir.Value{v, w})
		return true
	}
	ok := true
	for i, v := range n.op.Operands {
		ok = ok && m.same(v, o.op.Operands[i], pair)
	}
	for i, v := range n.op.Results {
		ok = ok && pair(v, o.op.Results[i])
	}
	for i, v := range n.results { // of a dropout, the same one
		ok = ok && m.image[g.values[v].v] == g.values[o.results[i]].v
	}
	for i, v := range n.ins {
		ok = ok && m.image[g.values[v].v] == g.values[o.ins[i]].v
	}
	if !ok {
		for _, p := range pairs {
			delete(m.image, p[0])
			delete(m.origin, p[1])
		}
		return false
	}
	m.next[x], m.prev[y] = y, x
	m.mapped++
	return true
}

// same pairs v and w and, where they are views, what they are views of.
func (m *mapping) same(v, w *ir.Value, pair func(v, w *ir.Value) bool) bool {
	for {
		if !types.Equal(v.Type, w.Type) || !pair(v, w) {
			return false
		}
		view, number := m.g.body.Defines(v) && isView(v.Op), m.g.isNumber(v)
		if view != (m.g.body.Defines(w) && isView(w.Op)) || number != m.g.isNumber(w) {
			return false
		}
		if (view || number) && !sameOp(v.Op, w.Op) {
			return false
		}
		if !view {
			return true
		}
		v, w = v.Op.Operands[0], w.Op.Operands[0]
	}
}

// sameOp reports whether two ops without regions are equal but for their operands.
func sameOp(a, b *ir.Op) bool {
	return a.Name == b.Name && len(a.Regions) == 0 && len(b.Regions) == 0 && !a.Verbatim && !b.Verbatim &&
		types.EqualNamed(a.Attrs, b.Attrs) && sameTypes(a.Operands, b.Operands) && sameTypes(a.Results, b.Results)
}

func sameTypes(a, b []*ir.Value) bool {
	return slices.EqualFunc(a, b, func(v, w *ir.Value) bool { return types.Equal(v.Type, w.Type) })
}

// repeats is the finished map, in which layers are numbered from the anchors; nil
// where there are too few.
func (m *mapping) repeats() *repeats {
	g := m.g
	r := &repeats{chain: make([]int, len(g.nodes)), at: make([]int, len(g.nodes)), fixed: make([]bool, len(g.nodes)), layer: make([]int, len(g.nodes))}
	for i := range g.nodes {
		r.layer[i] = noLayer
		if m.next[i] == i {
			r.fixed[i] = true
		}
		if m.prev[i] >= 0 && !r.fixed[i] {
			continue // not the first one
		}
		var chain []int
		for n := i; n >= 0; n = m.next[n] {
			r.chain[n], r.at[n] = len(r.chains), len(chain)
			chain = append(chain, n)
			if r.fixed[n] {
				break
			}
		}
		r.chains = append(r.chains, chain)
	}
	anchors := r.chains[r.chain[m.anchor]]
	if r.layers = len(anchors); r.layers < minLayers {
		return nil
	}
	// A node is in the layer of the node through which it is reached first.
	first := make([]int, len(r.chains)) // the layer of the first node of a chain
	known := make([]bool, len(r.chains))
	known[r.chain[m.anchor]] = true
	for work := []int{r.chain[m.anchor]}; len(work) > 0; work = work[1:] {
		c := work[0]
		x := r.chains[c][len(r.chains[c])/2]
		reach := func(y int) {
			if d := r.chain[y]; !known[d] && len(r.chains[d]) > 1 {
				known[d] = true
				first[d] = first[c] + r.at[x] - r.at[y]
				work = append(work, d)
			}
		}
		for _, v := range g.nodes[x].ins {
			if d := g.values[v].def; d >= 0 {
				reach(d)
			}
		}
		for _, v := range g.nodes[x].results {
			for _, u := range g.values[v].uses {
				reach(u)
			}
		}
		for _, v := range g.nodes[x].ins {
			if uses := g.values[v].uses; len(uses) <= maxShared {
				for _, u := range uses {
					reach(u)
				}
			}
		}
	}
	for c, nodes := range r.chains {
		if known[c] {
			for i, n := range nodes {
				r.layer[n] = first[c] + i
			}
		}
	}
	return r
}

// shift is what nodes are mapped to by that many layers, ascending; nil where one
// of them is mapped to nothing.
func (r *repeats) shift(nodes []int, by int) []int {
	to := make([]int, len(nodes))
	for i, n := range nodes {
		c, at := r.chains[r.chain[n]], r.at[n]+by
		switch {
		case r.fixed[n]:
			to[i] = n
		case at < 0 || at >= len(c):
			return nil
		default:
			to[i] = c[at]
		}
	}
	slices.Sort(to)
	return to
}

// first is the first layer that has one of the nodes, or noLayer.
func (r *repeats) first(nodes []int) int {
	least := noLayer
	for _, n := range nodes {
		if l := r.layer[n]; l != noLayer && (least == noLayer || l < least) {
			least = l
		}
	}
	return least
}

// searched is how many of the equal layers are searched, and pattern the one among
// them, from 0, whose kernels are repeated: with layers before and behind it.
const (
	searched = 4
	pattern  = 1
)

// repeat is a plan in which equal layers have equal kernels, and the kernels of it
// that are not repeated from another layer and remain to be searched; nil where the
// kernels of one layer do not go together with those of the next one.
func (g *graph) repeat(r *repeats, tries int) (*partition, map[int]bool) {
	still := make([]bool, len(g.nodes))
	nodes := 0
	for n, l := range r.layer {
		if still[n] = l >= searched; !still[n] {
			nodes++
		}
	}
	l := newPartition(g, g.singles(still), still)
	improve(l, l.all(), nil, tries*max(128, nodes)/128)
	var groups []group
	for k, s := range l.shape {
		if s == nil || still[s.nodes[0]] {
			continue
		}
		one := group{nodes: s.nodes}
		for _, n := range s.nodes {
			if l.owner[n] == k {
				one.stores = append(one.stores, n)
			}
		}
		first := r.first(one.nodes)
		if first <= pattern {
			groups = append(groups, one)
		}
		for by := 1; first == pattern && pattern+by < r.layers; by++ {
			nodes := r.shift(one.nodes, by)
			if nodes == nil {
				break
			}
			groups = append(groups, group{nodes, r.shift(one.stores, by)})
		}
	}
	for range 4 {
		l, fresh, again := g.assemble(groups)
		if l == nil || !again {
			return l, fresh
		}
		groups = slices.DeleteFunc(groups, func(s group) bool { return s.nodes == nil })
	}
	return nil, nil
}

// assemble is the partition of the groups and of every node in none of them. It
// removes the nodes of groups that are not legal, or that compute again what is
// computed once: again reports whether there are any.
func (g *graph) assemble(groups []group) (l *partition, fresh map[int]bool, again bool) {
	in := make([]bool, len(g.nodes))
	for i, s := range groups {
		if slices.ContainsFunc(s.nodes, func(n int) bool { return in[n] && !g.nodes[n].cheap }) {
			groups[i].nodes, again = nil, true
			continue
		}
		for _, n := range s.nodes {
			in[n] = true
		}
	}
	if again {
		return &partition{}, nil, true
	}
	all := slices.Clone(groups)
	for _, s := range g.singles(nil) {
		if left := slices.DeleteFunc(s.nodes, func(n int) bool { return in[n] }); len(left) > 0 {
			all = append(all, group{left, left})
		}
	}
	if l = newPartition(g, all, nil); l == nil {
		return nil, nil, false
	}
	for k, s := range l.shape[:len(groups)] {
		if s != nil && !g.valid(s) {
			groups[k].nodes, again = nil, true
		}
	}
	fresh = map[int]bool{}
	for k := len(groups); k < len(l.in); k++ {
		fresh[k] = true
	}
	return l, fresh, again
}
