package fuse

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// update is the traffic of a node that updates a part of its first operand in
// place, in the order of the text. In a kernel that computes or reads that
// operand, or reads the result, it is a copy.
type update struct {
	of    int   // the updated value
	bytes int64 // of the updated part
	rest  int64 // bytes that a copy reads of the operand, or whole
}

// updates is the update of n, nil if n does not update in place.
func (g *graph) updates(n *node, p *op.InPlace) *update {
	o := n.op
	if !op.Updates(o) || len(n.ins) == 0 || p.Copied(o) != nil {
		return nil
	}
	of, known := g.number[g.source(o.Operands[0])]
	if !known || n.ins[0] != of {
		return nil
	}
	_, part := op.TrafficOf(o, false)
	read, _ := op.TrafficOf(o, true)
	u := &update{of: of, rest: allBytes}
	var ok bool
	if u.bytes, ok = part.Int(); !ok {
		return nil
	}
	if rest, ok := read[0].Int(); ok && rest < g.values[of].size {
		u.rest = rest
	}
	return u
}

// inPlace reports whether node i of s, which has an update, is done in place
// there: it is one of several that update different parts, each of what the one
// before made, which no other node reads. The operand of the first is an input that
// no other node of s reads, and s stores the result of the last and does not read it.
func (g *graph) inPlace(s *candidate, i int) bool {
	updates := g.updatesIn(s, i)
	if updates == nil {
		return false
	}
	of := g.nodes[updates[0]].update.of
	for _, u := range g.values[of].uses {
		if u != updates[0] && g.inside(s.nodes, u) {
			return false
		}
	}
	last := g.nodes[updates[len(updates)-1]].results[0]
	return slices.Contains(s.outs, last) && !slices.ContainsFunc(g.values[last].uses, func(u int) bool { return g.inside(s.nodes, u) })
}

// updatesIn are the updates of s with node i, first to last, of which each but the first
// updates what the one before made; nil where one of them makes a copy.
func (g *graph) updatesIn(s *candidate, i int) []int {
	updates := []int{i}
	for {
		of := g.nodes[updates[0]].update.of
		d := g.values[of].def
		if !g.inside(s.nodes, d) {
			break
		}
		if g.nodes[d].update == nil || len(g.values[of].uses) != 1 || g.values[of].out {
			return nil
		}
		updates = slices.Insert(updates, 0, d)
	}
	for {
		made := g.nodes[updates[len(updates)-1]].results[0]
		uses := g.values[made].uses
		if len(uses) != 1 || g.values[made].out || !g.inside(s.nodes, uses[0]) {
			break
		}
		if n := g.nodes[uses[0]]; n.update == nil || n.update.of != made {
			return nil
		}
		updates = append(updates, uses[0])
	}
	if len(updates) > op.MaxParts {
		return nil
	}
	for k, a := range updates {
		for _, b := range updates[:k] {
			if !op.Disjoint(g.nodes[a].op, g.nodes[b].op) {
				return nil
			}
		}
	}
	return updates
}

// stored is the number of bytes of v that s writes: all, or the parts that it
// updates in place.
func (g *graph) stored(s *candidate, v int) (bytes int64) {
	d := g.values[v].def
	if !g.inside(s.nodes, d) || g.nodes[d].update == nil || !g.inPlace(s, d) {
		return g.values[v].size
	}
	for _, u := range g.updatesIn(s, d) {
		bytes += g.nodes[u].update.bytes
	}
	return bytes
}

// over are the results of s that it writes over their operands.
func (g *graph) over(s *candidate) map[*ir.Value]bool {
	var over map[*ir.Value]bool
	for _, v := range s.outs {
		if d := g.values[v].def; g.inside(s.nodes, d) && g.nodes[d].update != nil && g.inPlace(s, d) {
			if over == nil {
				over = map[*ir.Value]bool{}
			}
			over[g.values[v].v] = true
		}
	}
	return over
}

// overwritten are the values that k overwrites; their other readers run before
// it.
func (g *graph) overwritten(k *candidate) (values []int) {
	for _, i := range k.nodes {
		if n := g.nodes[i]; n.update != nil && !g.inside(k.nodes, g.values[n.update.of].def) && g.inPlace(k, i) {
			values = append(values, n.update.of)
		}
	}
	return values
}

// readsOverwritten reports whether s reads a value and what depends on the value's
// update in another kernel: it would run before the update and after it.
func (g *graph) readsOverwritten(s *candidate) bool {
	for _, i := range g.overwriting {
		if g.inside(s.nodes, i) || !slices.Contains(s.ins, g.nodes[i].update.of) {
			continue
		}
		for _, j := range s.nodes {
			if g.nodes[j].before.has(i) {
				return true
			}
		}
	}
	return false
}

// copyInstead makes copies of the updates that the kernels ks do in place. Plans
// made before do not hold.
func (g *graph) copyInstead(ks []*candidate) {
	for _, k := range ks {
		for _, i := range k.nodes {
			if n := g.nodes[i]; n.update != nil && g.inPlace(k, i) {
				n.read[0], n.update = n.update.rest, nil
			}
		}
	}
	g.overwriting = slices.DeleteFunc(g.overwriting, func(i int) bool { return g.nodes[i].update == nil })
	g.memo = map[string]*candidate{}
	g.repeats = g.repeated()
}
