package autodiff

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// segment is forward ops whose values the derivative computes again together: those of a call that was inlined,
// or a run of ops that the text marks one by one.
type segment struct {
	ops    []*ir.Op
	called bool // its results are kept, else all of its values are computed again
	done   bool
}

// recomputation replaces in the backward part of a block the values of segments by copies of the ops that
// compute them (Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv 1604.06174). What a segment
// reads, and what a call gives, is kept.
type recomputation struct {
	block  *ir.Block
	of     map[*ir.Op]*segment
	kept   map[*ir.Value]bool
	copies map[*ir.Value]*ir.Value
	made   []*ir.Op // the ops behind the forward part, in their new order
}

// recompute does so for b, of which the first n ops are the forward part, whose results are outs; results is
// how many results the marked ops had before derivatives asked for more.
func recompute(b *ir.Block, n int, outs []*ir.Value, results map[*ir.Op]int) {
	if len(results) == 0 {
		return
	}
	x := &recomputation{block: b, of: map[*ir.Op]*segment{}, kept: map[*ir.Value]bool{}, copies: map[*ir.Value]*ir.Value{}}
	forward, behind := b.Ops[:n:n], b.Ops[n:]
	x.segments(forward)
	for _, v := range outs {
		x.kept[v] = true
	}
	x.results(forward)
	for _, o := range behind {
		x.need(o)
		ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
			for i, v := range p.Operands {
				if c := x.copies[v]; c != nil {
					p.SetOperand(i, c)
				}
			}
			return true
		})
		x.made = append(x.made, o)
	}
	b.Ops = append(forward, x.made...)
	for o, had := range results {
		for i := len(o.Results) - 1; i >= had; i-- {
			switch {
			case len(o.Results[i].Uses) > 0:
			case o.Name == op.Scan:
				op.DropStacked(o, i)
			case i == len(o.Results)-1:
				op.DropResult(o, i)
			}
		}
	}
}

// segments finds the segments among the forward ops.
func (x *recomputation) segments(forward []*ir.Op) {
	calls := map[int64]*segment{}
	var run *segment
	for _, o := range forward {
		switch mark := o.Attr(op.RecomputeAttr).(type) {
		case types.Int:
			run = nil
			if calls[mark.V] == nil {
				calls[mark.V] = &segment{called: true}
			}
			x.join(calls[mark.V], o)
		case nil:
			run = nil
		default:
			if run == nil {
				run = &segment{}
			}
			x.join(run, o)
		}
	}
}

// join adds o to s, but for an op that has an effect or computes nothing.
func (x *recomputation) join(s *segment, o *ir.Op) {
	if !op.HasEffect(o) && o.Name != op.Constant {
		s.ops = append(s.ops, o)
		x.of[o] = s
	}
}

// results marks what calls give to other forward ops as kept.
func (x *recomputation) results(forward []*ir.Op) {
	for _, o := range forward {
		for _, v := range ir.UsedValues(o) {
			if s := x.segment(v); s != nil && s.called && x.of[o] != s {
				x.kept[v] = true
			}
		}
	}
}

// segment is that which computes v and does not keep it; nil where there is none.
func (x *recomputation) segment(v *ir.Value) *segment {
	if v.Op == nil || x.kept[v] {
		return nil
	}
	return x.of[v.Op]
}

// need puts in front of o the copies of the segments whose values o reads.
func (x *recomputation) need(o *ir.Op) {
	for _, v := range ir.UsedValues(o) {
		if s := x.segment(v); s != nil && !s.done {
			x.copy(s)
		}
	}
}

// copy writes the ops of s again, behind the copies of what they read.
func (x *recomputation) copy(s *segment) {
	s.done = true
	for _, o := range s.ops {
		x.need(o)
	}
	to := &ir.Builder{Block: &ir.Block{}}
	again := loc.Under(loc.Recomputed)
	for _, o := range s.ops {
		if !slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return !x.kept[v] }) {
			continue
		}
		for _, c := range ir.CloneOps(to, []*ir.Op{o}, x.copies) {
			c.Parent = x.block
			c.RemoveAttr(op.RecomputeAttr)
			c.SetAttr(op.RecomputedAttr, types.Unit{})
			ir.Relocate([]*ir.Op{c}, again)
		}
		for _, v := range o.Results {
			if x.kept[v] {
				delete(x.copies, v)
			}
		}
	}
	x.made = append(x.made, to.Block.Ops...)
}
