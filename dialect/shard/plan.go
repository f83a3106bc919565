package shard

import (
	"container/heap"
	"fmt"
	"slices"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
)

// MoveKind is what a step from one layout to another does.
type MoveKind uint8

// The kinds of moves.
const (
	Gather  MoveKind = iota // the last Atoms of dimension Dim are taken away: all_gather
	Slice                   // Atoms are added to dimension Dim: each device keeps its piece
	Swap                    // the last Atoms of Dim become the last ones of To: all_to_all
	Scatter                 // partial Atoms are added to dimension Dim: reduce_scatter
	Reduce                  // partial Atoms are taken away: all_reduce
	Permute                 // each device gets the piece of another: collective_permute
	Part                    // Atoms become partial: the first device along them keeps the value, the others the neutral element
)

// Move is a step from one layout to another.
type Move struct {
	Kind    MoveKind
	Dim, To int
	Atoms   []int
	Pairs   [][2]int // of a Permute: positions along Atoms, from and to
	Into    Layout   // the layout after it
	Sent    int64    // elements, summed over all devices
}

// Plan is the moves from one layout to another.
type Plan struct {
	Moves []Move
	Sent  int64 // elements, summed over all devices
}

// Plan is the moves that send the least, of those with as little the fewest, for a tensor of
// the given shape. There always is a plan: everything gathered and cut again.
//
// It is found by Dijkstra's algorithm on layouts. Sent elements count as in the definition of
// boxing costs (Yuan et al., arXiv 2110.15032), with pieces of L elements on p devices: all-gather
// L·(p-1) for each, all-to-all L·(p-1)/p, reduce-scatter L·(p-1)/p, all-reduce 2·L·(p-1)/p.
func (g *Grid) Plan(shape []int64, from, to Layout) *Plan {
	if from.Equal(to) {
		return &Plan{}
	}
	key := fmt.Sprint(shape) + from.key() + ">" + to.key()
	if p := g.plans[key]; p != nil {
		return p
	}
	p := (&search{Grid: g, shape: shape, to: to}).run(from)
	g.plans[key] = p
	return p
}

type search struct {
	*Grid
	shape []int64
	to    Layout
	queue nodes
	best  map[string]*node
}

type node struct {
	layout Layout
	move   Move
	before *node
	sent   int64
	steps  int
	done   bool
	index  int
}

func (n *node) less(m *node) bool {
	return n.sent < m.sent || n.sent == m.sent && n.steps < m.steps
}

// nodes is a heap.
type nodes []*node

func (q nodes) Len() int           { return len(q) }
func (q nodes) Less(i, j int) bool { return q[i].less(q[j]) }
func (q nodes) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].index, q[j].index = i, j }
func (q *nodes) Push(x any)        { n := x.(*node); n.index = len(*q); *q = append(*q, n) }
func (q *nodes) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

func (s *search) run(from Layout) *Plan {
	s.best = map[string]*node{}
	start := &node{layout: from}
	s.best[from.key()] = start
	heap.Push(&s.queue, start)
	for s.queue.Len() > 0 {
		n := heap.Pop(&s.queue).(*node)
		n.done = true
		if n.layout.Equal(s.to) {
			p := &Plan{Sent: n.sent}
			for ; n.before != nil; n = n.before {
				p.Moves = append(p.Moves, n.move)
			}
			slices.Reverse(p.Moves)
			return p
		}
		s.expand(n)
	}
	return nil // not reached: gathering everything and cutting it again is always possible
}

// reach records that move leads from n to its layout.
func (s *search) reach(n *node, m Move) {
	next := &node{layout: m.Into, move: m, before: n, sent: n.sent + m.Sent, steps: n.steps + 1}
	key := m.Into.key()
	old := s.best[key]
	switch {
	case old == nil:
		s.best[key] = next
		heap.Push(&s.queue, next)
	case !old.done && next.less(old):
		s.best[key] = next
		next.index = old.index
		s.queue[old.index] = next
		heap.Fix(&s.queue, next.index)
	}
}

// elements is how many a device has.
func (s *search) elements(l Layout) int64 {
	n := int64(1)
	for _, d := range s.Piece(s.shape, l) {
		n *= d
	}
	return n
}

// fits reports whether the pieces of dimension d over the atoms of outer are cut into whole
// pieces by those of inner behind them. Where outer is empty the dimension is padded first.
func (s *search) fits(d int, outer, inner []int) bool {
	p, q := s.Count(outer), s.Count(inner)
	return p == 1 || mesh.Piece(s.shape[d], p*q)*int64(q) == mesh.Piece(s.shape[d], p)
}

// next are the atoms that dimension d still needs, behind have; ok is false where have is not
// the beginning of what it needs.
func (s *search) next(d int, have []int) (atoms []int, ok bool) {
	want := s.to.Dims[d]
	if len(have) >= len(want) || !slices.Equal(have, want[:len(have)]) {
		return nil, false
	}
	return want[len(have):], true
}

func (s *search) expand(n *node) {
	l := n.layout
	devices := int64(s.Mesh.Devices())
	size := s.elements(l)
	total := func(perGroup int64, atoms []int) int64 { return perGroup * devices / int64(s.Count(atoms)) }
	with := func(change func(*Layout)) Layout {
		c := l.Clone()
		change(&c)
		return c
	}
	for d, have := range l.Dims {
		for k := range have { // the last ones, from the k-th on
			tail := have[k:]
			p := int64(s.Count(tail))
			if !s.fits(d, have[:k], tail) {
				continue
			}
			into := with(func(c *Layout) { c.Dims[d] = c.Dims[d][:k] })
			s.reach(n, Move{Kind: Gather, Dim: d, Atoms: tail, Into: into, Sent: total(size*(p-1)*p, tail)})
			for e := range l.Dims {
				need, ok := s.next(e, l.Dims[e])
				if e == d || !ok || len(need) < len(tail) || !slices.Equal(need[:len(tail)], tail) || !s.fits(e, l.Dims[e], tail) {
					continue
				}
				into := with(func(c *Layout) {
					c.Dims[d] = c.Dims[d][:k]
					c.Dims[e] = append(c.Dims[e], tail...)
				})
				// What is sent is cut out of the operand padded along e.
				padded := size / max(1, s.Piece(s.shape, l)[e]) * s.Piece(s.shape, into)[e] * p
				s.reach(n, Move{Kind: Swap, Dim: d, To: e, Atoms: tail, Into: into, Sent: total(padded*(p-1), tail)})
			}
		}
		need, ok := s.next(d, have)
		for k := 1; ok && k <= len(need); k++ {
			head := need[:k]
			p := int64(s.Count(head))
			free := !slices.ContainsFunc(head, func(a int) bool { return l.Uses(a) })
			partial := !slices.ContainsFunc(head, func(a int) bool { return !slices.Contains(l.Partial, a) })
			if !s.fits(d, have, head) {
				continue
			}
			into := with(func(c *Layout) { c.Dims[d] = append(c.Dims[d], head...) })
			switch {
			case free:
				s.reach(n, Move{Kind: Slice, Dim: d, Atoms: head, Into: into})
			case partial:
				into = into.without(head)
				padded := s.elements(into) * p
				s.reach(n, Move{Kind: Scatter, Dim: d, Atoms: head, Into: into, Sent: total(padded*(p-1), head)})
			}
		}
	}
	s.reductions(n, size, total)
	if pairs, atoms, sends := s.permutation(l, s.to); pairs != nil {
		s.reach(n, Move{Kind: Permute, Atoms: atoms, Pairs: pairs, Into: s.to, Sent: total(size*int64(sends), atoms)})
	}
}

// reductions are the moves that end or begin partial values.
func (s *search) reductions(n *node, size int64, total func(int64, []int) int64) {
	l := n.layout
	same := len(s.to.Partial) == 0 || l.Reduce == s.to.Reduce
	var over []int
	for _, a := range l.Partial {
		if !same || !slices.Contains(s.to.Partial, a) {
			over = append(over, a)
		}
	}
	// All of them at once cost the least; some remain where they can be scattered.
	for mask := 1; mask < 1<<min(len(over), 8); mask++ {
		var some []int
		for i, a := range over {
			if i < 8 && mask>>i&1 == 1 {
				some = append(some, a)
			}
		}
		p := int64(s.Count(some))
		s.reach(n, Move{Kind: Reduce, Atoms: some, Into: l.without(some), Sent: total(2*size*(p-1), some)})
	}
	if len(over) > 0 || len(l.Partial) > 0 && l.Reduce != s.to.Reduce {
		return
	}
	var missing []int
	for _, a := range s.to.Partial {
		if !l.Uses(a) {
			missing = append(missing, a)
		}
	}
	if len(missing) > 0 {
		c := l.Clone()
		c.Partial = append(c.Partial, missing...)
		slices.Sort(c.Partial)
		c.Reduce = s.to.Reduce
		s.reach(n, Move{Kind: Part, Atoms: missing, Into: c})
	}
}

// without is l with atoms no longer partial.
func (l Layout) without(atoms []int) Layout {
	c := l.Clone()
	c.Partial = slices.DeleteFunc(c.Partial, func(a int) bool { return slices.Contains(atoms, a) })
	if len(c.Partial) == 0 {
		c.Partial, c.Reduce = nil, types.Add
	}
	return c
}

// permutation is how devices exchange whole pieces to get from l to k: pairs of positions
// along atoms, from and to, of which sends are of two devices; nil where that is not possible. A
// device that has the piece that it needs keeps it.
func (s *search) permutation(l, k Layout) (pairs [][2]int, atoms []int, sends int) {
	if !slices.Equal(l.Partial, k.Partial) || l.Reduce != k.Reduce {
		return nil, nil, 0
	}
	for d := range l.Dims {
		if s.Count(l.Dims[d]) != s.Count(k.Dims[d]) {
			return nil, nil, 0
		}
	}
	before, after := l.split(), k.split()
	for i := range s.Atoms {
		if slices.Contains(before, i) || slices.Contains(after, i) {
			atoms = append(atoms, i)
		}
	}
	rest := func(used []int) (out []int) {
		for _, a := range atoms {
			if !slices.Contains(used, a) {
				out = append(out, a)
			}
		}
		return out
	}
	restBefore, restAfter := rest(before), rest(after)
	if slices.ContainsFunc(atoms, func(a int) bool { return slices.Contains(l.Partial, a) }) || s.Count(restBefore) != s.Count(restAfter) {
		return nil, nil, 0
	}
	digits := make([]int, len(s.Atoms))
	number := func(list []int) int { // of the device with these digits along list
		n := 0
		for _, a := range list {
			n = n*s.Sizes[a] + digits[a]
		}
		return n
	}
	place := func(list []int, n int) {
		for _, a := range slices.Backward(list) {
			digits[a] = n % s.Sizes[a]
			n /= s.Sizes[a]
		}
	}
	for to := range s.Count(atoms) {
		place(atoms, to)
		piece, spare := number(after), number(restAfter)
		from := to
		if number(before) != piece {
			place(before, piece)
			place(restBefore, spare)
			from = number(atoms)
		}
		pairs = append(pairs, [2]int{from, to})
		if from != to {
			sends++
		}
	}
	if !bijective(pairs) {
		return nil, nil, 0
	}
	return pairs, atoms, sends
}

// bijective reports whether each device gives to one.
func bijective(pairs [][2]int) bool {
	gives := make([]bool, len(pairs))
	for _, p := range pairs {
		if gives[p[0]] {
			return false
		}
		gives[p[0]] = true
	}
	return true
}
