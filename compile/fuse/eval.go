package fuse

import (
	"math"
	"slices"

	"dmir/dialect/ir"
)

// price is what a kernel, or a plan, costs: its predicted time and, where that
// is equal, the bytes it moves.
type price struct {
	fs    int64 // time in femtoseconds
	bytes int64
}

var never = price{math.MaxInt64 / 4, 0}

func (p price) plus(q price) price {
	if p.fs >= never.fs || q.fs >= never.fs {
		return never
	}
	return price{p.fs + q.fs, p.bytes + q.bytes}
}

func (p price) less(q price) bool { return p.fs < q.fs || p.fs == q.fs && p.bytes < q.bytes }

// shape is a kernel: its nodes, ascending, and the values that it stores.
type shape struct {
	nodes []int
	outs  []int
	price price
	ins   []int   // values that it reads
	bytes int64   // that it moves
	busy  float64 // ns that it computes

	asked, legal bool
}

// key names a kernel.
func key(nodes, outs []int) string {
	b := make([]byte, 0, 2*(len(nodes)+len(outs))+2)
	for _, n := range nodes {
		b = append(b, byte(n), byte(n>>8))
	}
	b = append(b, 0xff, 0xff)
	for _, v := range outs {
		b = append(b, byte(v), byte(v>>8))
	}
	return string(b)
}

// kernel is the kernel of nodes that stores outs; both are ascending. Whether it
// is legal is not asked yet.
func (g *graph) kernel(nodes, outs []int) *shape {
	g.look()
	k := key(nodes, outs)
	s := g.memo[k]
	if s == nil {
		s = &shape{nodes: slices.Clone(nodes), outs: slices.Clone(outs)}
		g.evaluate(s)
		g.memo[k] = s
	}
	return s
}

// possible asks, once, whether s can be a kernel. What it hands on in memory of
// its own is known then: the price of a shape that was not asked about is a bound.
func (g *graph) possible(s *shape) bool {
	if !s.asked {
		s.asked = true
		n := g.nodes[s.nodes[0]]
		if n.single {
			s.legal = len(s.nodes) == 1
		} else {
			outs := make([]*ir.Value, len(s.outs))
			for i, v := range s.outs {
				outs[i] = g.values[v].v
			}
			if !g.entangled(s) {
				var handed int64
				if handed, s.legal = g.rules.Legal(g.members(s), outs, g.over(s)); s.legal {
					s.bytes += handed
					s.reprice(g)
				}
			}
			if !s.legal && len(s.nodes) == 1 {
				s.legal = true // an op that no kernel computes stands alone, and code generation says so
			}
		}
	}
	return s.legal
}

// entangled reports whether s draws a dropout's mask and computes what is
// dropped, but not the dropout's value: the rules, who are asked about the op as
// it stands, would take the mask for something that depends on its operand.
func (g *graph) entangled(s *shape) bool {
	for _, i := range s.nodes {
		if n := g.nodes[i]; len(n.ins) == 0 && drawn(n.op, 1) && n.results[0] != g.number[n.op.Results[0]] {
			x, ok := g.number[source(n.op.Operands[0])]
			if ok && g.inside(s.nodes, g.values[x].def) && !g.inside(s.nodes, i-1) {
				return true
			}
		}
	}
	return false
}

// evaluate computes what s reads and costs.
func (g *graph) evaluate(s *shape) {
	var bytes int64
	var tensor, vector float64
	touched := map[int]int64{}
	var last *ir.Op
	for _, i := range s.nodes {
		n := g.nodes[i]
		if n.op != last { // a dropout's two nodes stand side by side
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
			if read == whole || t+read > size {
				touched[v] = size
			} else {
				touched[v] = t + read
			}
		}
	}
	for _, n := range touched {
		bytes += n
	}
	for _, v := range s.outs {
		bytes += g.stored(s, v)
	}
	slices.Sort(s.ins)
	busy := max(tensor+g.prologue(s), vector)
	if n := g.nodes[s.nodes[0]]; n.single && n.entry != nil { // as it is written
		t := n.entry.Time(g.m)
		moved, _ := n.entry.Moved().Int()
		s.price = price{int64(math.Round(min(t.Ns, longest) * 1e6)), min(moved, largest)}
		return
	}
	s.busy, s.bytes = busy, bytes
	s.reprice(g)
}

// reprice is the price by what s computes and moves.
func (s *shape) reprice(g *graph) {
	if s.bytes == 0 && s.busy == 0 {
		return
	}
	ns := max(s.busy, float64(s.bytes)/g.m.Reach()*1e9) + g.m.Launch*1e9
	s.price = price{int64(math.Round(ns * 1e6)), s.bytes}
}

// The time in ns and the bytes that a loop counts as at most, so that sums of
// them do not wrap: about a minute, and a pebibyte.
const (
	longest = 1 << 36
	largest = 1 << 50
)

// prologue is how long the contractions of s are held up by what their operands
// are computed from: a tile of an operand is computed again for each tile of the
// result that needs it. The model of package cost, in which every op of a kernel
// runs once, does not know this; without it, plans would put whole backward
// passes of a normalization in front of each contraction.
func (g *graph) prologue(s *shape) float64 {
	var ns float64
	for _, c := range s.nodes {
		n := g.nodes[c]
		if n.tensor == 0 || len(s.nodes) == 1 {
			continue
		}
		for _, v := range n.ins {
			elements := g.values[v].elements
			again := math.Ceil(n.products / (elements * tile))
			seen := map[int]bool{}
			var back func(v int)
			back = func(v int) {
				d := g.values[v].def
				if !g.inside(s.nodes, d) || seen[d] {
					return
				}
				seen[d] = true
				ns += g.nodes[d].effort * again
				for _, w := range g.nodes[d].ins {
					back(w)
				}
			}
			back(v)
		}
	}
	return ns
}

// tile is the rows and columns of a contraction's result that one block computes.
const tile = 128

func (g *graph) inside(nodes []int, n int) bool {
	_, found := slices.BinarySearch(nodes, n)
	return found && n >= 0
}

// members are the ops of a kernel in the order of the text: its nodes, the
// constants they use, and the views that lie inside: those of values computed
// here, and of values from outside that are seen in more than one shape.
func (g *graph) members(s *shape) []*ir.Op {
	in := map[*ir.Op]bool{}
	shapes := map[*ir.Value]map[*ir.Value]bool{}
	for _, i := range s.nodes {
		in[g.nodes[i].op] = true
	}
	g.operandsOf(s, func(v *ir.Value) {
		r := source(v)
		if shapes[r] == nil {
			shapes[r] = map[*ir.Value]bool{}
		}
		shapes[r][v] = true
	})
	for r, vs := range shapes {
		if isConstant(r) {
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

// operandsOf visits what the nodes of s use.
func (g *graph) operandsOf(s *shape, visit func(*ir.Value)) {
	for _, i := range s.nodes {
		n := g.nodes[i]
		if len(n.ins) == 0 && drawn(n.op, 1) {
			continue // the mask alone
		}
		for _, v := range ir.UsedValues(n.op) {
			visit(v)
		}
	}
}
