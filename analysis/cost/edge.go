package cost

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
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

// minimum is what fn would move as one kernel. An argument handed back as it is
// moves nothing.
func (s *scope) minimum(fn *ir.Func) dim.Dim {
	var total dim.Dim
	for _, t := range s.minimumTerms(fn) {
		total = total.Add(t.Bytes)
	}
	return total
}

// minimumTerms are the used arguments and then the results.
func (s *scope) minimumTerms(fn *ir.Func) []Term {
	var out []Term
	add := func(v *ir.Value, n dim.Dim) {
		if !n.IsZero() {
			out = append(out, Term{v, n, !n.Equal(s.size(v))})
		}
	}
	for _, v := range fn.Args {
		if uses := v.Uses; len(uses) > 0 {
			add(v, s.touched(v, uses))
		}
	}
	arg := func(v *ir.Value) bool { return v.Block == fn.Body }
	seen := map[*ir.Value]bool{}
	for _, v := range returned(fn) {
		if !seen[v] && !arg(source(v)) {
			add(v, s.stored(v, arg))
		}
		seen[v] = true
	}
	return out
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
			case u.Op.Name == "func.return":
			case d.Is(op.Terminator):
				return whole
			case op.IsView(u.Op):
				if !views[u.Op] {
					views[u.Op] = true
					work = append(work, u.Op.Results[0].Uses)
				}
			case d != nil && d.Traffic != nil && op.Sound(u.Op):
				if box, ok := op.Taken(u.Op); ok {
					sliced = addPart(sliced, u.Op.Operands[0], box)
					continue
				}
				read, _ := d.Traffic(u.Op)
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

// stored is how much of v is written when it leaves: all of it, or, where it is
// a value from outside that ops inside updated in place, the updates.
func (s *scope) stored(v *ir.Value, outside func(*ir.Value) bool) dim.Dim {
	whole := s.size(v)
	var sum dim.Dim
	seen := map[*ir.Value]bool{}
	for v = source(v); !seen[v]; v = source(v.Op.Operands[0]) {
		seen[v] = true
		if w := yielded(v); w != nil {
			v = source(w)
		}
		if outside(v) {
			if sum.IsZero() || !whole.AtLeast(sum) {
				return whole
			}
			return sum
		}
		n, ok := inPlace(v)
		if !ok {
			return whole
		}
		sum = sum.Add(n.Subst(s.env))
	}
	return whole
}

// yielded is the value inside a kernel that its result v stands for, nil where
// v is something else.
func yielded(v *ir.Value) *ir.Value {
	if v.Op == nil || v.Op.Name != kernel {
		return nil
	}
	if t := v.Op.Body(0).Terminator(); t != nil && v.Index < len(t.Operands) {
		return t.Operands[v.Index]
	}
	return nil
}

// inPlace is what the op that gives v writes into its first operand; ok is
// false where it makes a value of its own.
func inPlace(v *ir.Value) (n dim.Dim, ok bool) {
	d := op.Of(v.Op)
	if d == nil || d.Traffic == nil || !op.Sound(v.Op) || len(v.Op.Operands) == 0 || len(v.Op.Results) != 1 || v.Tensor() == nil {
		return dim.Dim{}, false
	}
	_, n = d.Traffic(v.Op)
	return n, !n.Equal(v.Tensor().Bytes())
}

// maxViews ends the walk over views of views in a broken text, where a value
// may be a view of itself.
const maxViews = 1 << 10

// free reports whether o moves nothing because its result is its operand.
func free(o *ir.Op) bool { return op.IsView(o) }

// updates reports whether o writes a part of its first operand.
func updates(o *ir.Op) bool {
	if len(o.Results) != 1 {
		return false
	}
	_, ok := inPlace(o.Results[0])
	return ok
}

// source is the value that v is a view of, v itself where it is none.
func source(v *ir.Value) *ir.Value {
	for range maxViews {
		if v.Op == nil || !op.IsView(v.Op) {
			break
		}
		v = v.Op.Operands[0]
	}
	return v
}

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
