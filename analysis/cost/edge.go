package cost

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// edge is what crosses the boundary of a kernel: each captured value once, in
// full or as far as the slices inside touch it, and what is yielded.
func (s *scope) edge(o *ir.Op) (read, written dim.Dim) {
	c := crossing(o)
	for _, v := range c.captured.order {
		read = read.Add(s.touched(v, c.captured.of[v]))
	}
	for _, v := range c.yields {
		written = written.Add(s.stored(v, c.outside))
	}
	return read, written
}

// crosses are the values at the boundary of a kernel: those from outside with
// their uses inside, and those that it yields.
type crosses struct {
	captured *uses
	yields   []*ir.Value
	defined  map[*ir.Value]bool
}

func (c *crosses) outside(v *ir.Value) bool { return !c.defined[v] }

func crossing(o *ir.Op) *crosses {
	c := &crosses{captured: newUses(), defined: map[*ir.Value]bool{}}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			if t := b.Terminator(); t != nil && op.Of(t).Is(op.Terminator) {
				c.yields = append(c.yields, t.Operands...)
			}
		}
		walkBlocks(r.Blocks, func(b *ir.Block) {
			for _, v := range b.Args {
				c.defined[v] = true
			}
		}, func(p *ir.Op) {
			for _, v := range p.Results {
				c.defined[v] = true
			}
			for i, v := range p.Operands {
				if !c.defined[v] {
					c.captured.add(v, ir.Use{Op: p, Index: i})
				}
			}
		})
	}
	return c
}

// minimum is what fn would move as one kernel. An argument returned unchanged
// moves nothing.
func (s *scope) minimum(fn *ir.Func) dim.Dim {
	var total dim.Dim
	for _, t := range s.minimumTerms(fn) {
		total = total.Add(t.Bytes)
	}
	return total
}

// minimumTerms are the used arguments, the constants in files, and then the results.
func (s *scope) minimumTerms(fn *ir.Func) []Term {
	var out []Term
	add := func(v *ir.Value, n dim.Dim) {
		if !n.IsZero() {
			out = append(out, Term{v, n, !n.Equal(s.size(v))})
		}
	}
	if grouped(fn) {
		fn, _ = flatten.Func(fn)
	}
	for _, v := range fn.Args {
		if len(v.Uses) > 0 {
			add(v, s.touched(v, v.Uses))
		}
	}
	if s.files.Load() {
		for _, o := range fn.Body.Ops {
			if op.InFile(o) && len(o.Results[0].Uses) > 0 {
				add(o.Results[0], s.touched(o.Results[0], o.Results[0].Uses))
			}
		}
	}
	arg := func(v *ir.Value) bool { return v.Block == fn.Body }
	seen := map[*ir.Value]bool{}
	for _, v := range returned(fn) {
		if !seen[v] && !arg(op.Source(v)) {
			add(v, s.stored(v, arg))
		}
		seen[v] = true
	}
	return out
}

// grouped reports whether tuples are among the arguments and results of fn, or
// arguments become members of one. Other ops are not looked at: edits of a long
// function ask too.
func grouped(fn *ir.Func) bool {
	packed := func(u ir.Use) bool { return u.Op.Name == op.Pack }
	for _, v := range fn.Args {
		if types.IsTuple(v.Type) || slices.ContainsFunc(v.Uses, packed) {
			return true
		}
	}
	return slices.ContainsFunc(returned(fn), func(v *ir.Value) bool {
		return types.IsTuple(v.Type) || v.Op != nil && v.Op.Name == op.Unpack
	})
}

// touched is how much of v the given uses read, at most all of it. What several
// slices take counts once; what lies where is not known before the program runs
// counts each time.
func (s *scope) touched(v *ir.Value, uses []ir.Use) dim.Dim {
	whole := s.size(v)
	var sum dim.Dim
	views := map[*ir.Op]bool{}
	var sliced []*parts
	work := [][]ir.Use{uses}
	for len(work) > 0 {
		us := work[len(work)-1]
		work = work[:len(work)-1]
		for _, u := range us {
			d := op.Of(u.Op)
			switch {
			case u.Op.Parent == v.Block && op.Ends(u.Op): // handed back as it is
			case d.Is(op.Terminator):
				return whole
			case op.IsView(u.Op):
				if !views[u.Op] {
					views[u.Op] = true
					work = append(work, u.Op.Results[0].Uses)
				}
			case d != nil && d.Traffic != nil && op.Valid(u.Op):
				if box, ok := op.Taken(u.Op); ok {
					sliced = addPart(sliced, u.Op.Operands[0], box)
					continue
				}
				read, _ := s.traffic(u.Op)
				if u.Index < len(read) {
					sum = sum.Add(read[u.Index].Subst(s.env))
				}
				if sum.AtLeast(whole) {
					return whole
				}
			default:
				return whole
			}
		}
	}
	for _, p := range sliced {
		n, ok := p.bytes()
		if !ok {
			n = p.each()
		}
		sum = sum.Add(n.Subst(s.env))
	}
	if whole.AtLeast(sum) {
		return sum
	}
	return whole
}

// stored is how much of v is written when it leaves: all of it, or, where ops
// inside updated a value from outside in place, the updates.
func (s *scope) stored(v *ir.Value, outside func(*ir.Value) bool) dim.Dim {
	whole := s.size(v)
	var sum dim.Dim
	seen := map[*ir.Value]bool{}
	for v = op.Source(v); !seen[v]; v = op.Source(v.Op.Operands[0]) {
		seen[v] = true
		if w := yielded(v); w != nil {
			v = op.Source(w)
		}
		if outside(v) {
			if sum.IsZero() || !whole.AtLeast(sum) {
				return whole
			}
			return sum
		}
		if !op.Updates(v.Op) || s.copied(v.Op) {
			return whole
		}
		_, n := s.traffic(v.Op)
		sum = sum.Add(n.Subst(s.env))
	}
	return whole
}

// copied reports whether o, an update, makes a copy of its operand.
func (s *scope) copied(o *ir.Op) bool {
	s.asked = true
	return s.over.Copied(o) != nil
}

// traffic is what o, which has traffic of its own, reads of each operand and writes.
func (s *scope) traffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	return op.TrafficOf(o, op.Updates(o) && s.copied(o))
}

// yielded is the value inside a kernel that its result v stands for, nil where
// v is something else.
func yielded(v *ir.Value) *ir.Value {
	if v.Op == nil || v.Op.Name != op.Kernel {
		return nil
	}
	if t := v.Op.Body(0).Terminator(); t != nil && v.Index < len(t.Operands) {
		return t.Operands[v.Index]
	}
	return nil
}

// free reports whether o moves nothing because its result is its operand.
func free(o *ir.Op) bool { return op.IsView(o) }

// uses keeps the order in which values were met, so that sums do not depend on
// the order of a map.
type uses struct {
	order []*ir.Value
	of    map[*ir.Value][]ir.Use
}

func newUses() *uses { return &uses{of: map[*ir.Value][]ir.Use{}} }

func (u *uses) add(v *ir.Value, use ir.Use) {
	if _, seen := u.of[v]; !seen {
		u.order = append(u.order, v)
	}
	u.of[v] = append(u.of[v], use)
}

func walkBlocks(blocks []*ir.Block, block func(*ir.Block), visit func(*ir.Op)) {
	for _, b := range blocks {
		block(b)
		for _, o := range b.Ops {
			visit(o)
			for _, r := range o.Regions {
				walkBlocks(r.Blocks, block, visit)
			}
		}
	}
}
