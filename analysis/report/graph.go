package report

import (
	"dmir/analysis/cost"
	"dmir/analysis/graph"
	"dmir/dialect/dim"
)

// graph is the movement graph of the function.
func (b *builder) graph() *Graph {
	g := graph.Build(b.p, b.f)
	out := &Graph{Nodes: make([]Node, len(g.Nodes)), Edges: make([]Edge, len(g.Edges))}
	for i, n := range g.Nodes {
		out.Nodes[i] = b.node(i, n)
	}
	for i, e := range g.Edges {
		x := Edge{
			From: e.From, To: e.To, Value: e.Value.Name, Type: shortType(e.Value), Back: e.Back,
			Size: number(e.Size), SizeLabel: bytesLabel(e.Size),
			Moved: number(e.Moved), MovedLabel: bytesLabel(e.Moved),
			Place: place(b.p.Src, e.Value.Span),
		}
		// Who calls does not know what of an operand is read, nor does anyone
		// of an op that is not known.
		if k := g.Nodes[e.To].Kind; k == graph.Call || k == graph.Opaque {
			x.Moved, x.MovedLabel = nil, unknownLabel
		}
		out.Edges[i] = x
	}
	return out
}

func (b *builder) node(id int, n graph.Node) Node {
	out := Node{ID: id, Parent: n.Parent, Kind: string(n.Kind), Region: n.Region, Idle: n.Idle, Rank: n.Rank}
	if n.Entry == nil {
		out.Result, out.Type = n.Value.Name, shortType(n.Value)
		out.Place = place(b.p.Src, n.Value.Span)
		out.Cost = costOf(dim.Dim{}, dim.Dim{}, dim.Dim{}, cost.Time{Known: true})
		return out
	}
	e := n.Entry
	out.Op, out.Result, out.Class, out.Detail = e.Op.Name, e.Results(), className(e), detail(e.Op)
	if len(e.Op.Results) > 0 {
		out.Type = shortType(e.Op.Results[0])
	}
	out.Place = b.placeOf(e.Op)
	out.Cost = b.entryCost(e)
	if t := e.Time(b.p.Target); t.Known && n.Parent == graph.None {
		out.Share = b.share(t.Ns)
	}
	if n.Kind == graph.Loop {
		out.Trips, out.TripsLabel = number(e.Trips), "×"+e.Trips.String()
	}
	return out
}
