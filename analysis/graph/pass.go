package graph

import (
	"cmp"
	"slices"

	"dmir/dialect/op"
)

// pass fills in what moves into groups, from the inside out: what a kernel
// touches, and for a loop, a branch or a call the sum of what its nodes read.
func (b *builder) pass() {
	slices.SortStableFunc(b.Edges, func(x, y Edge) int { return cmp.Compare(x.To, y.To) })
	into := make(map[edgeKey]int, len(b.Edges))
	for i, e := range b.Edges {
		if b.outwards(e) {
			continue
		}
		into[edgeKey{e.Value, e.To, false}] = i
		if uses := b.inside[capture{e.To, e.Value}]; uses != nil {
			b.Edges[i].Moved = b.flow.Captured(e.Value, uses)
		}
	}
	for _, e := range slices.Backward(b.Edges) {
		group := e.From
		if b.Nodes[e.To].Parent != group || b.outwards(e) || b.off[e.To] || group == None {
			continue
		}
		n := b.Nodes[group]
		moved, outer := e.Moved, e.Value
		switch {
		case n.Kind == Call:
			outer = e.Outer
		case n.Kind == Loop && e.Value.Block != nil && e.Value.Block.Region.Op == n.Entry.Op && e.Value.Index < len(n.Entry.Op.Operands):
			outer = n.Entry.Op.Operands[e.Value.Index]   // carried: the first round reads it
			if e.Value.Index >= op.Carries(n.Entry.Op) { // a slice
				moved = moved.Mul(n.Entry.Trips)
			}
		case n.Kind == Loop:
			moved = moved.Mul(n.Entry.Trips)
		case n.Kind != Branch && !n.Kind.Section():
			continue
		}
		if i, ok := into[edgeKey{outer, group, false}]; ok {
			b.Edges[i].Moved = b.Edges[i].Moved.Add(moved)
		}
	}
}

// outwards reports whether e leaves the group that it leads to.
func (b *builder) outwards(e Edge) bool { return b.Nodes[e.From].Parent == e.To }

// rank numbers the nodes so that edges between nodes of a group lead upwards.
// An edge that goes back in the text, which only a broken one has, is marked.
func (b *builder) rank() {
	last := 0
	for i := range b.Edges { // by To
		e := &b.Edges[i]
		from, to := &b.Nodes[e.From], &b.Nodes[e.To]
		switch {
		case from.Parent != to.Parent:
		case e.From >= e.To:
			e.Back = true
		default:
			to.Rank = max(to.Rank, from.Rank+1)
		}
		if to.Parent == None {
			last = max(last, to.Rank)
		}
	}
	for i := range b.Nodes {
		if b.Nodes[i].Kind == Result {
			b.Nodes[i].Rank = last
		}
	}
}
