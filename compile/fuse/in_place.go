package fuse

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// update is what a node moves that writes a part of its first operand in place,
// in the order of the text; in a kernel that computes or reads that operand, or
// reads the result, it is a copy all the same.
type update struct {
	of    int   // the value that is updated
	bytes int64 // of the part
	rest  int64 // bytes that a copy reads of the operand, or whole
}

// updates is what n updates in place, nil where it does not.
func (g *graph) updates(n *node, p *op.InPlace) *update {
	o := n.op
	if !op.Updates(o) || len(n.ins) == 0 || p.Copied(o) != nil {
		return nil
	}
	of, known := g.number[source(o.Operands[0])]
	if !known || n.ins[0] != of {
		return nil
	}
	_, part := op.TrafficOf(o, false)
	read, _ := op.TrafficOf(o, true)
	u := &update{of: of, rest: whole}
	var ok bool
	if u.bytes, ok = part.Int(); !ok {
		return nil
	}
	if rest, ok := read[0].Int(); ok && rest < g.values[of].size {
		u.rest = rest
	}
	return u
}

// inPlace reports whether node i of s, which has an update, does it in place
// there: the value comes from outside, nothing else in s reads it, and nothing
// in s reads the result, which s stores.
func (g *graph) inPlace(s *shape, i int) bool {
	n := g.nodes[i]
	if g.inside(s.nodes, g.values[n.update.of].def) || !slices.Contains(s.outs, n.results[0]) {
		return false
	}
	for _, u := range g.values[n.update.of].uses {
		if u != i && g.inside(s.nodes, u) {
			return false
		}
	}
	for _, u := range g.values[n.results[0]].uses {
		if g.inside(s.nodes, u) {
			return false
		}
	}
	return true
}

// stored is what s writes of v: all of it, or the part that it updates in place.
func (g *graph) stored(s *shape, v int) int64 {
	if d := g.values[v].def; g.inside(s.nodes, d) && g.nodes[d].update != nil && g.inPlace(s, d) {
		return g.nodes[d].update.bytes
	}
	return g.values[v].size
}

// over are the results of s that it writes over what they update.
func (g *graph) over(s *shape) map[*ir.Value]bool {
	var over map[*ir.Value]bool
	for _, i := range s.nodes {
		if n := g.nodes[i]; n.update != nil && g.inPlace(s, i) {
			if over == nil {
				over = map[*ir.Value]bool{}
			}
			over[g.values[n.results[0]].v] = true
		}
	}
	return over
}

// overwritten are the values that k writes over: what else reads them runs before it.
func (g *graph) overwritten(k *shape) (values []int) {
	for _, i := range k.nodes {
		if n := g.nodes[i]; n.update != nil && g.inPlace(k, i) {
			values = append(values, n.update.of)
		}
	}
	return values
}
