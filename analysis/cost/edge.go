package cost

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// edge is what crosses the boundary of a kernel: each value in memory that it reads once,
// in full or as far as the slices inside touch it, and what is yielded.
func (s *scope) edge(o *ir.Op) (read, written, link dim.Dim) {
	c := crossing(o)
	for _, v := range c.read.order {
		n := s.touched(v, c.read.of[v])
		if read = read.Add(n); onHost(v) {
			link = link.Add(n)
		}
	}
	for _, v := range c.yields {
		n := s.stored(v, c.outside)
		if written = written.Add(n); onHost(v) {
			link = link.Add(n)
		}
	}
	return read, written, link
}

// crosses are the values at the boundary of a kernel: those in memory, from outside and
// constants inside, with their uses inside, and those that it yields.
type crosses struct {
	read    *uses
	yields  []*ir.Value
	defined map[*ir.Value]bool
}

func (c *crosses) outside(v *ir.Value) bool { return !c.defined[v] }

func crossing(o *ir.Op) *crosses {
	c := &crosses{read: newUses(), defined: map[*ir.Value]bool{}}
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
				u := ir.Use{Op: p, Index: i}
				switch constant := v.Op != nil && v.Op.Name == op.Constant; {
				case constant && (op.Loads(v, u) || !c.defined[v] && op.Ends(p)), !constant && !c.defined[v]:
					c.read.add(v, u)
				}
			}
		})
	}
	return c
}

// minimum is what fn would move as one kernel. An argument or a constant returned unchanged
// moves nothing.
func (s *scope) minimum(fn *ir.Func, marked []*ir.Op) dim.Dim {
	var total dim.Dim
	for _, t := range s.minimumTerms(fn, marked) {
		total = total.Add(t.Bytes)
	}
	return total
}

// minimumTerms are the used arguments, the constants that are data, and then the results, of sparse ones that store the elements of
// another value the values alone; marked
// are the ops of fn's body that are or hold such constants or are dm.pack, and maybe others.
func (s *scope) minimumTerms(fn *ir.Func, marked []*ir.Op) []Term {
	var out []Term
	add := func(v *ir.Value, n dim.Dim) {
		if !n.IsZero() {
			out = append(out, Term{v, n, !n.Equal(s.size(v))})
		}
	}
	if grouped(fn, marked) {
		fn, _ = flatten.Func(fn)
		marked = fn.Body.Ops
	}
	for _, v := range fn.Args {
		if len(v.Uses) > 0 {
			add(v, s.touched(v, v.Uses))
		}
	}
	if s.data.Load() {
		for _, same := range constants(marked) {
			var all []ir.Use
			for _, v := range same {
				all = append(all, v.Uses...)
			}
			if len(all) > 0 {
				add(same[0], s.touched(same[0], all))
			}
		}
	}
	arg := func(v *ir.Value) bool { return v.Block == fn.Body }
	seen, patterns := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	results := returned(fn)
	for i, p := range op.PatternsOf(results) {
		v := results[i]
		from := op.Source(v)
		if constant := from.Op != nil && from.Op.Name == op.Constant; !seen[v] && !arg(from) && !constant {
			n := s.stored(v, arg)
			if p != nil && (arg(p) || patterns[p]) {
				parts := op.Parts(v)
				n = s.size(parts[len(parts)-1])
			}
			add(v, n)
		}
		seen[v], patterns[p] = true, true
	}
	return out
}

// outline is what literals that are equal have in common and others rarely do: their type, and a few elements.
type outline struct {
	typ  *types.Tensor
	file string
	some [8]float64
}

func outlineOf(d *types.Dense) outline {
	o := outline{typ: d.Type}
	if f := d.File(); f != nil {
		o.file = f.String()
		return o
	}
	n := d.Len()
	for i := range min(n, len(o.some)) {
		at := i * n / len(o.some)
		if n <= len(o.some) {
			at = i
		}
		if d.Elem.IsFloat() {
			o.some[i] = d.Float(at)
		} else {
			o.some[i] = float64(d.Int(at))
		}
		if o.some[i] != o.some[i] {
			o.some[i] = 0 // it is equal to no key
		}
	}
	return o
}

// constants are the constants among ops, and inside them, that are data: equal ones together, in the order of the text.
func constants(ops []*ir.Op) [][]*ir.Value {
	var out [][]*ir.Value
	alike := map[outline][]int{}
	literal := func(o *ir.Op) *types.Dense { return o.Attr("value").(*types.Dense) }
	ir.Walk(ops, func(o *ir.Op) bool {
		if !op.IsData(o) || len(o.Results) != 1 {
			return true
		}
		d := literal(o)
		key := outlineOf(d)
		for _, i := range alike[key] {
			if types.EqualAttr(d, literal(out[i][0].Op)) {
				out[i] = append(out[i], o.Results[0])
				return true
			}
		}
		alike[key] = append(alike[key], len(out))
		out = append(out, []*ir.Value{o.Results[0]})
		return true
	})
	return out
}

// holdsData reports whether o is a constant that is data, or holds one in a region.
func holdsData(o *ir.Op) bool {
	found := false
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		found = found || op.IsData(p)
		return !found
	})
	return found
}

// grouped reports whether tuples are among the arguments and results of fn, or
// arguments become members of one. Other ops are not looked at: edits of a long
// function ask too.
func grouped(fn *ir.Func, marked []*ir.Op) bool {
	for _, v := range fn.Args {
		if types.IsTuple(v.Type) {
			return true
		}
	}
	for _, o := range marked {
		if o.Name == op.Pack && slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return v.Block == fn.Body }) {
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
	seen := 0
	defer func() {
		if s.m != nil {
			s.m.Work.Add("cost", seen)
		}
	}()
	var sliced []*parts
	work := [][]ir.Use{uses}
	for len(work) > 0 {
		us := work[len(work)-1]
		work = work[:len(work)-1]
		for _, u := range us {
			seen++
			d := op.Of(u.Op)
			switch {
			case op.Ends(u.Op) && (u.Op.Parent == v.Block || u.Op.Name == op.Return && v.Op != nil && v.Op.Name == op.Constant): // handed back as it is
			case d.Is(op.Terminator):
				return whole
			case op.IsView(u.Op):
				if !views[u.Op] {
					views[u.Op] = true
					work = append(work, u.Op.Results[0].Uses)
				}
			case op.HasTraffic(u.Op) && op.Valid(u.Op):
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
	if op.IsSparse(o) {
		return s.written(o).Traffic()
	}
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
