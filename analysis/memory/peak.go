package memory

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Sizes are what Peak asks its caller.
type Sizes struct {
	Value func(*ir.Value) dim.Dim     // bytes that a value takes; 0 where it lies elsewhere
	View  func(*ir.Op) bool           // the op's result is its first operand in another shape
	Over  func(*ir.Op, int) *ir.Value // the value that the op writes that result over; nil for one with bytes of its own
	Extra func(*ir.Op) []dim.Dim      // candidates for what an op holds beyond operands and results; may be nil
}

// maxWork bounds the terms of formulas that are added before Peak gives up.
const maxWork = 500_000

// Peak is the largest number of bytes live at any op of fn. Where that depends
// on unbound symbols it is the list of the candidates that no other exceeds for
// all their values, and nil where there are too many.
func Peak(fn *ir.Func, sizes Sizes) []dim.Dim {
	if fn.Body == nil {
		return nil
	}
	p := &peak{sizes: sizes, slots: map[*ir.Value]*slot{}, ends: map[*ir.Op]*slot{}}
	p.scan(fn.Body.Region, nil)
	for _, s := range p.order {
		if s.last != nil {
			s.next, p.ends[s.last] = p.ends[s.last], s
		}
	}
	for _, v := range fn.Args {
		p.add(sizes.Value(v))
	}
	p.record(p.live)
	p.region(fn.Body.Region)
	if p.work > maxWork {
		return nil
	}
	return p.most
}

type peak struct {
	sizes Sizes
	slots map[*ir.Value]*slot
	order []*slot          // in the order of the text
	ends  map[*ir.Op]*slot // list of the storage that the op is the last to use
	live  dim.Dim
	most  []dim.Dim
	work  int
}

// slot is the storage of a value, or of several that share it.
type slot struct {
	of   *ir.Value
	last *ir.Op // last op that uses it
	held bool   // it is taken, and can be given back
	lent bool   // it is that of an argument, which stays
	next *slot  // in the list it is in
}

// slot is the storage of v.
func (p *peak) slot(v *ir.Value) *slot {
	s := p.slots[v]
	if s == nil {
		s = &slot{of: v}
		p.slots[v] = s
		p.order = append(p.order, s)
	}
	return s
}

// scan finds the last use of every storage. Uses in regions that run as part of
// their op (owner) are uses by that op.
func (p *peak) scan(r *ir.Region, owner *ir.Op) {
	if r == nil {
		return
	}
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			user := o
			if owner != nil {
				user = owner
			}
			for _, v := range o.Operands {
				s := p.slot(v)
				s.last = around(user, s.of)
			}
			if len(o.Results) == 1 && len(o.Operands) > 0 && p.sizes.View(o) {
				p.slots[o.Results[0]] = p.slot(o.Operands[0])
			}
			inner := owner
			if inner == nil && !runsRegions(o) {
				inner = o
			}
			for _, r := range o.Regions {
				p.scan(r, inner)
			}
		}
	}
}

// around is the op that o is or lies in and that stands in the region that
// defines v: the one after which v is no longer needed.
func around(o *ir.Op, v *ir.Value) *ir.Op {
	home := v.Block
	if v.Op != nil {
		home = v.Op.Parent
	}
	for p := o; home != nil && p.Parent != nil; p = p.Parent.Region.Op {
		if p.Parent.Region == home.Region {
			return p
		}
		if p.Parent.Region.Op == nil {
			break
		}
	}
	return o
}

// runsRegions reports whether the ops in o's regions run one by one, each with
// results of its own in memory: those of an if, a loop and an unknown op do,
// those of a kernel and of a map do not.
func runsRegions(o *ir.Op) bool {
	return o.Name == op.If || op.LoopBody(o) != nil || op.Of(o) == nil
}

// region runs the blocks; what is still held at the end is given back.
func (p *peak) region(r *ir.Region) {
	if r == nil {
		return
	}
	before := p.live
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			if p.op(b, o); p.work > maxWork {
				return
			}
		}
	}
	p.live = before
}

// op takes memory for the results of o, runs it and releases what it was the
// last to use.
func (p *peak) op(b *ir.Block, o *ir.Op) {
	ends := p.ends[o]
	for i, v := range o.Results {
		s := p.slot(v)
		if s.of != v {
			continue
		}
		if over := p.overwritten(o, i); over != nil {
			s.take(over)
		} else {
			p.add(p.sizes.Value(v))
			s.held = true
		}
		if s.last == nil {
			s.next, ends = ends, s
		}
	}
	p.record(p.live)
	if p.sizes.Extra != nil {
		for _, e := range p.sizes.Extra(o) {
			p.record(p.live.Add(e))
		}
	}
	if runsRegions(o) {
		for _, r := range o.Regions {
			p.region(r)
		}
	}
	for s := ends; s != nil; s = s.next {
		if s.held {
			s.held = false
			p.add(p.sizes.Value(s.of).Scale(-1))
		}
	}
}

// overwritten is the storage that result i of o takes over, nil where it takes
// some of its own.
func (p *peak) overwritten(o *ir.Op, i int) *slot {
	if p.sizes.Over == nil {
		return nil
	}
	v := p.sizes.Over(o, i)
	if v == nil {
		return nil
	}
	s := p.slot(v)
	if v.Op != nil && !s.held && !s.lent {
		return nil
	}
	return s
}

// take makes s, a new value's, what over was.
func (s *slot) take(over *slot) {
	s.held = over.held
	s.lent = over.lent || over.of.Op == nil
	over.held = false
}

func (p *peak) add(d dim.Dim) {
	p.live = p.live.Add(d)
	p.work += p.live.Terms()
}

// record keeps d unless another candidate is at least as large for all sizes.
func (p *peak) record(d dim.Dim) {
	switch {
	case len(p.most) > 0 && p.most[0].Overflow():
		return
	case d.Overflow():
		p.most = []dim.Dim{d}
		return
	}
	kept := p.most[:0]
	for _, m := range p.most {
		p.work += m.Terms() + d.Terms()
		if m.AtLeast(d) {
			return
		}
		if !d.AtLeast(m) {
			kept = append(kept, m)
		}
	}
	p.most = append(kept, d)
}
