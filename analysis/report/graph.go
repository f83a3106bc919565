package report

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/graph"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// graph is the movement graph of the function.
func (b *builder) graph() *Graph {
	g := graph.Build(b.p, b.f)
	out := &Graph{Nodes: make([]Node, len(g.Nodes)), Edges: make([]Edge, len(g.Edges))}
	for i := range g.Nodes {
		out.Nodes[i] = b.node(g, i)
	}
	b.sections(g, out.Nodes)
	for i, e := range g.Edges {
		x := Edge{
			From: e.From, To: e.To, Value: valueName(e.Value), Type: shortType(e.Value), Back: e.Back,
			Size: number(e.Size), SizeLabel: bytesLabel(e.Size),
			Moved: number(e.Moved), MovedLabel: bytesLabel(e.Moved),
			Place: place(b.p.Src, e.Value.Span),
		}
		// It is not known what of an operand a call reads whose inside is not shown, nor does anyone know
		// of an op that is not known.
		if e.Outer != nil {
			x.Outer = valueName(e.Outer)
		}
		if k := g.Nodes[e.To].Kind; (k == graph.Call && !g.IsGroup(e.To) || k == graph.Opaque) && g.Nodes[e.From].Parent != e.To {
			x.Moved, x.MovedLabel = nil, unknownLabel
		}
		out.Edges[i] = x
	}
	b.heaviest(g, out)
	return out
}

// heaviest marks the path through the ops of the function's body that takes
// longest, of the times that are known, and the edges along it; in a call on it
// the path of what it runs.
func (b *builder) heaviest(g *graph.Graph, out *Graph) {
	within := map[int][]int{graph.None: nil} // by the call around them, the nodes with costs
	for i, n := range g.Nodes {
		if n.Entry != nil && g.Once(i) {
			in := g.Around(i)
			within[in] = append(within[in], i)
		}
	}
	along := map[*ir.Value]map[int]bool{} // the values of the path, and the nodes at their ends with what holds these
	for calls := []int{graph.None}; len(calls) > 0; calls = calls[1:] {
		for _, i := range b.heaviestOf(g, within[calls[0]], along) {
			for p := i; p != graph.None && !out.Nodes[p].Heavy; p = g.Nodes[p].Parent {
				out.Nodes[p].Heavy = true
			}
			if within[i] != nil {
				calls = append(calls, i)
			}
		}
	}
	for i, e := range g.Edges {
		ends := along[e.Value]
		out.Edges[i].Heavy = ends[e.From] && ends[e.To]
	}
}

// heaviestOf is the path through nodes, which are the ops of one body, that takes longest. It adds to along the values of the path
// with the nodes at their ends and what holds these.
func (b *builder) heaviestOf(g *graph.Graph, nodes []int, along map[*ir.Value]map[int]bool) (path []int) {
	type step struct {
		ns     float64
		before *ir.Value // by which the path comes in; nil where it begins
	}
	at := make(map[*ir.Op]int, len(nodes))
	steps := make(map[*ir.Op]step, len(nodes))
	var last *ir.Op
	for _, i := range nodes {
		o := g.Nodes[i].Entry.Op
		at[o] = i
		var s step
		ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
			for _, v := range p.Operands {
				if before, ok := steps[v.Op]; v.Op != nil && ok && before.ns > s.ns {
					s.ns, s.before = before.ns, v
				}
			}
			return true
		})
		if t := g.Nodes[i].Entry.Time(b.p.Target); t.Known {
			s.ns += t.Ns
		}
		steps[o] = s
		if last == nil || s.ns > steps[last].ns {
			last = o
		}
	}
	if last == nil || steps[last].ns == 0 {
		return nil
	}
	path = append(path, at[last])
	for o := last; steps[o].before != nil; o = steps[o].before.Op {
		v := steps[o].before
		path = append(path, at[v.Op])
		if along[v] == nil {
			along[v] = map[int]bool{}
		}
		for _, i := range []int{at[o], at[v.Op]} {
			for ; i != graph.None; i = g.Nodes[i].Parent {
				along[v][i] = true
			}
		}
	}
	return path
}

// sections gives the groups that the text does not have the costs of what is in them.
func (b *builder) sections(g *graph.Graph, nodes []Node) {
	type sum struct {
		flop, read, written dim.Dim
		time                cost.Time
		unknown             bool
		first, longest      int // nodes
		most                float64
	}
	sums := make([]sum, len(nodes))
	for i, n := range slices.Backward(g.Nodes) { // what is in a group stands behind it
		s := &sums[i]
		switch {
		case n.Kind.Section():
			if s.unknown {
				nodes[i].Cost = unknownCost()
			} else {
				nodes[i].Cost = costOf(s.flop, s.read, s.written, s.time)
			}
			nodes[i].Class, nodes[i].Place = nodes[s.longest].Class, nodes[s.first].Place
			nodes[i].InLines, nodes[i].InModules = nil, nil // its nodes have them
			if s.time.Known && g.Once(i) {
				nodes[i].Share = b.share(s.time.Ns)
			}
		case n.Entry != nil:
			e := n.Entry
			*s = sum{flop: e.FLOP, read: e.Read, written: e.Written, time: e.Time(b.p.Target), unknown: !e.Known}
		}
		if n.Parent == graph.None || !g.Nodes[n.Parent].Kind.Section() {
			continue
		}
		into := &sums[n.Parent]
		if into.first == 0 { // the first of its nodes that is seen is the last one
			into.time.Known = true
		}
		into.flop, into.read, into.written = into.flop.Add(s.flop), into.read.Add(s.read), into.written.Add(s.written)
		into.time = cost.Time{Ns: into.time.Ns + s.time.Ns, Known: into.time.Known && s.time.Known}
		into.unknown = into.unknown || s.unknown
		into.first = i
		if s.time.Ns >= into.most {
			into.most, into.longest = s.time.Ns, i
		}
	}
}

func (b *builder) node(g *graph.Graph, id int) Node {
	n := g.Nodes[id]
	out := Node{ID: id, Parent: n.Parent, Kind: string(n.Kind), Region: n.Region, Idle: n.Idle, Rank: n.Rank}
	if n.Kind.Section() {
		out.Op = n.Name
		if n.Value != nil {
			out.Result = valueName(n.Value)
		}
		return out
	}
	if n.Entry == nil {
		out.Result, out.Type = valueName(n.Value), shortType(n.Value)
		out.Place = place(b.p.Src, n.Value.Span)
		out.Cost = costOf(dim.Dim{}, dim.Dim{}, dim.Dim{}, cost.Time{Known: true})
		return out
	}
	e := n.Entry
	out.Op, out.Result, out.Class, out.Detail = e.Op.Name, resultNames(e), className(e), detail(e.Op)
	if len(e.Op.Results) > 0 {
		out.Type = shortType(e.Op.Results[0])
	}
	out.Place = b.placeOf(e.Op)
	out.Cost = b.entryCost(e)
	if t := e.Time(b.p.Target); t.Known && g.Once(id) {
		out.Share = b.share(t.Ns)
	}
	if n.Kind == graph.Loop {
		out.Trips, out.TripsLabel = number(e.Trips), "×"+e.Trips.String()
	}
	return out
}
