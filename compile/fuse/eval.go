package fuse

import (
	"encoding/binary"
	"math"
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// price is the predicted time of a kernel or a plan and, to break ties, the
// bytes it moves.
type price struct {
	fs    int64 // time in femtoseconds
	bytes int64
}

var infeasible = price{math.MaxInt64 / 4, 0}

func (p price) plus(q price) price {
	if p.fs >= infeasible.fs || q.fs >= infeasible.fs {
		return infeasible
	}
	return price{p.fs + q.fs, p.bytes + q.bytes}
}

func (p price) minus(q price) price { return price{p.fs - q.fs, p.bytes - q.bytes} }

func (p price) less(q price) bool { return p.fs < q.fs || p.fs == q.fs && p.bytes < q.bytes }

// candidate is a kernel that a plan may have: its nodes, ascending, and the
// values that it stores.
type candidate struct {
	nodes []int
	outs  []int
	price price
	ins   []int // values that it reads
	// read and written are the bytes that it moves, computeNs a lower bound on the time that it computes, and delay the part of it that
	// is its contractions' for their operands.
	read, written    int64
	computeNs, delay float64

	checked, legal bool
}

// key identifies a kernel in the memo. It is appended to b.
func key(b []byte, nodes, outs []int) []byte {
	for _, n := range nodes {
		b = binary.AppendUvarint(b, uint64(n)+1)
	}
	b = append(b, 0)
	for _, v := range outs {
		b = binary.AppendUvarint(b, uint64(v)+1)
	}
	return b
}

// kernel is the kernel of nodes that stores outs; both are ascending. It need
// not be legal; see valid.
func (g *graph) kernel(nodes, outs []int) *candidate {
	g.checkContext()
	g.key = key(g.key[:0], nodes, outs)
	s := g.memo[string(g.key)]
	if s == nil {
		s = &candidate{nodes: slices.Clone(nodes), outs: slices.Clone(outs)}
		g.counts.Add("fuse", len(nodes))
		g.evaluate(s)
		g.memo[string(g.key)] = s
	}
	return s
}

// valid reports whether s can be a kernel, and gives it the time that it has on
// the target. Until then the price of s is a lower bound.
func (g *graph) valid(s *candidate) bool {
	if !s.checked {
		s.checked = true
		n := g.nodes[s.nodes[0]]
		if n.unfusible {
			s.legal = len(s.nodes) == 1
		} else {
			if !g.splitsDropout(s) && !g.readsOverwritten(s) {
				l := g.legality(s)
				if s.legal = l.ok; s.legal {
					s.reprice(g, l)
				}
			}
			if !s.legal && len(s.nodes) == 1 {
				s.legal = true // without the constants and views around it; what no kernel computes is reported by code generation
			}
		}
	}
	return s.legal
}

// splitsDropout reports whether s computes a dropout's mask and its operand,
// but not its result. The rules, which see the whole op, would make the mask
// depend on the operand.
func (g *graph) splitsDropout(s *candidate) bool {
	for _, i := range s.nodes {
		if n := g.nodes[i]; len(n.ins) == 0 && drawn(n.op, 1) && n.results[0] != g.number[n.op.Results[0]] {
			x, ok := g.number[g.source(n.op.Operands[0])]
			if ok && g.inside(s.nodes, g.values[x].def) && !g.inside(s.nodes, i-1) {
				return true
			}
		}
	}
	return false
}

// evaluate computes the inputs and the price of s.
func (g *graph) evaluate(s *candidate) {
	var tensor, vector float64
	touched := map[int]int64{}
	var last *ir.Op
	for _, i := range s.nodes {
		n := g.nodes[i]
		if n.op != last { // a dropout's two nodes are adjacent
			tensor += n.tensor
			vector += n.vector
		}
		last = n.op
		for j, v := range n.ins {
			if g.inside(s.nodes, g.values[v].def) {
				continue
			}
			t, seen := touched[v]
			if !seen {
				s.ins = append(s.ins, v)
			}
			size, read := g.values[v].size, n.read[j]
			if j == 0 && n.update != nil && !g.inPlace(s, i) {
				read = n.update.rest
			}
			if read == allBytes || t+read > size {
				touched[v] = size
			} else {
				touched[v] = t + read
			}
		}
	}
	for _, n := range touched {
		s.read += n
	}
	for _, v := range s.outs {
		s.written += g.stored(s, v)
	}
	slices.Sort(s.ins)
	if n := g.nodes[s.nodes[0]]; n.unfusible && n.entry != nil { // at the cost of the text
		t := n.entry.Time(g.m)
		moved, _ := n.entry.Moved().Int()
		s.price = price{int64(math.Round(min(t.Ns, longest) * 1e6)), min(moved, largest)}
		return
	}
	operands, threads := g.prologue(s)
	s.delay = operands
	s.computeNs = max(tensor+operands+threads, vector)
	s.reprice(g, legality{})
}

// reprice computes the price of s: the time that package cost gives its kernel
// where it is known how that runs, and no less than its roofline. What is
// bounded from below is the roofline.
func (s *candidate) reprice(g *graph, l legality) {
	read, written := s.read+l.how.Read, s.written+l.how.Written
	bytes := read + written
	if bytes == 0 && s.computeNs == 0 {
		return
	}
	ns := max(s.computeNs, float64(bytes)/g.m.Reach()*1e9) + g.m.Start()*1e9
	if l.known && !g.m.CPU {
		k := cost.Planned{Ops: make([]*cost.Entry, 0, len(s.nodes)), Read: s.read, Written: s.written, Running: l.how, Prologue: s.delay}
		for _, i := range s.nodes {
			if e := g.nodes[i].entry; len(k.Ops) == 0 || e != k.Ops[len(k.Ops)-1] { // a dropout's two nodes are adjacent
				k.Ops = append(k.Ops, e)
			}
		}
		if t, ok := k.Ns(g.m); ok {
			ns = max(ns, t)
		}
	}
	s.price = price{int64(math.Round(min(ns, longest) * 1e6)), bytes}
}

// readsOf is what a kernel of ops reads of a value, in bytes.
func (g *graph) readsOf(ops []*ir.Op) func(v *ir.Value) int64 {
	return func(v *ir.Value) int64 {
		if v == nil {
			return 0
		}
		var uses []ir.Use
		for _, u := range v.Uses {
			if slices.ContainsFunc(ops, func(o *ir.Op) bool { return u.Op == o || u.Op.Inside(o) }) {
				uses = append(uses, u)
			}
		}
		n, _ := g.flow.Captured(v, uses).Int()
		return n
	}
}

// Upper bounds on the time in ns and the bytes of a loop, about a minute and a
// pebibyte, so that sums do not overflow.
const (
	longest = 1 << 36
	largest = 1 << 50
)

// prologue is the time that recomputing their operands adds to the contractions
// of s: a tile of an operand is computed for each tile of the result that reads
// it, and of a convolution's for each place of the window. Package cost, in whose model every op of a kernel runs once, leaves that
// out; without it, plans would fuse the backward pass of a normalization into
// each contraction that reads its result. threads is the time for which the tensor cores are slower at least, as no tensor map brings
// what is computed; the tile of the kernel has it.
func (g *graph) prologue(s *candidate) (ns, threads float64) {
	for _, c := range s.nodes {
		n := g.nodes[c]
		if n.again == nil || len(s.nodes) == 1 {
			continue
		}
		computed := false
		for j, v := range n.ins {
			seen, turned := map[int]bool{}, false
			var back func(v int)
			back = func(v int) {
				d := g.values[v].def
				if !g.inside(s.nodes, d) || seen[d] {
					return
				}
				seen[d] = true
				ns += g.nodes[d].effort * n.again[j]
				turned = turned || turns(g.nodes[d].op)
				m := op.MoveOf(g.nodes[d].op)
				computed = computed || m == nil || len(m.Pieces) != 1
				for _, w := range g.nodes[d].ins {
					back(w)
				}
			}
			if back(v); turned {
				ns += n.gather[j]
			}
		}
		if computed {
			threads += n.threads
		}
	}
	return ns, threads
}

// turns reports whether o permutes dimensions such that other elements are neighbours.
func turns(o *ir.Op) bool {
	m := op.MoveOf(o)
	if m == nil {
		return false
	}
	dims, ok := m.Permutes()
	to := -1
	if ok {
		to = cost.Innermost(o.Out(0))
	}
	return to >= 0 && cost.Innermost(o.In(0)) != dims[to]
}

// tile is the number of rows and of columns of a contraction's result that one
// block computes.
const tile = 128

func (g *graph) inside(nodes []int, n int) bool {
	_, found := slices.BinarySearch(nodes, n)
	return found && n >= 0
}

// members are the ops of a kernel in the order of the text; those that surround it, if
// they can be in its kernel.
func (g *graph) members(s *candidate) []*ir.Op {
	if g.bare(s) {
		return []*ir.Op{g.nodes[s.nodes[0]].op}
	}
	return g.surrounded(s)
}

// bare reports whether s is a single op whose kernel reads constants and views from
// memory, since it cannot hold them.
func (g *graph) bare(s *candidate) bool {
	return len(s.nodes) == 1 && !g.nodes[s.nodes[0]].unfusible && !g.splitsDropout(s) && !g.legality(s).ok
}

// surrounded are the nodes of s, the numbers they use, and the views inside it: those
// of values computed in s, and of inputs that are used in several shapes.
func (g *graph) surrounded(s *candidate) []*ir.Op {
	in := map[*ir.Op]bool{}
	shapes := map[*ir.Value]map[*ir.Value]bool{}
	for _, i := range s.nodes {
		in[g.nodes[i].op] = true
	}
	g.operandsOf(s, func(v *ir.Value) {
		r := g.source(v)
		if shapes[r] == nil {
			shapes[r] = map[*ir.Value]bool{}
		}
		shapes[r][v] = true
	})
	for r, vs := range shapes {
		if g.isNumber(r) {
			in[r.Op] = true
		} else if len(vs) < 2 && !g.inside(s.nodes, g.values[g.number[r]].def) {
			continue
		}
		for v := range vs {
			for ; v != r; v = v.Op.Operands[0] {
				in[v.Op] = true
			}
		}
	}
	ops := make([]*ir.Op, 0, len(in))
	for o := range in {
		ops = append(ops, o)
	}
	slices.SortFunc(ops, func(a, b *ir.Op) int { return g.position[a] - g.position[b] })
	return ops
}

// operandsOf visits the operands of the nodes of s.
func (g *graph) operandsOf(s *candidate, visit func(*ir.Value)) {
	for _, i := range s.nodes {
		n := g.nodes[i]
		if len(n.ins) == 0 && drawn(n.op, 1) {
			continue // a dropout's mask
		}
		for _, v := range ir.UsedValues(n.op) {
			visit(v)
		}
	}
}
