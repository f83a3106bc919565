package cost

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Trips is the symbol of the number of iterations of a while that is not known.
const Trips = op.TripsSymbol

// kernel: the ops inside compute, only what crosses the edge moves.
func (s *scope) kernel(e *Entry, o *ir.Op, fused bool) {
	s.inner(e, o, true)
	e.Fused = true
	e.strongest()
	e.FLOP = sum(e.Inner).flop
	e.known()
	if !fused {
		var link dim.Dim
		if e.Read, e.Written, link = s.edge(o); !link.IsZero() {
			e.own().link = link
		}
	}
	if members := op.Bucket(o); members != nil {
		e.own().Comm = s.bucket(members)
	}
}

// branch: the costlier of the two, by bytes moved and then by FLOP; the first
// where that depends on unbound symbols.
func (s *scope) branch(e *Entry, o *ir.Op, fused bool) {
	var best total
	for i := range o.Regions {
		var arm []*Entry
		for _, b := range o.Regions[i].Blocks {
			for j, p := range b.Ops {
				if counts(p, j == len(b.Ops)-1) {
					arm = append(arm, s.entry(p, fused))
				}
			}
		}
		t := sum(arm)
		if i == 0 || t.costlier(best) {
			s.extra = append(s.extra, e.Inner...)
			e.own().Inner, best = arm, t
		} else {
			s.extra = append(s.extra, arm...)
		}
	}
	e.strongest()
	e.known()
	w := e.own()
	w.round = nil
	if !fused {
		for _, v := range o.Results {
			w.round = append(w.round, s.handed(o, v))
		}
	}
	t := sum(w.round)
	e.FLOP, e.Read, e.Written = best.flop, best.read.Add(t.read), best.written.Add(t.written)
}

// handed is a copy of v, a value that o begins with or hands on.
func (s *scope) handed(o *ir.Op, v *ir.Value) *Entry {
	n := s.size(v)
	return &Entry{Op: o, Known: true, Class: op.ClassMovement, Read: n, Written: n, Within: nothing}
}

// carries finds the copies of o, a while or a scan: of what it begins with where
// something else needs that, and of what the body hands on where it was not made
// in the place of what was (op.InPlace). A carried value that takes another's place
// is put aside first. What a scan stacks is copied unless the body makes it for
// that alone.
func (s *scope) carries(e *Entry, o *ir.Op) {
	body := op.LoopBody(o)
	if body == nil || body.Terminator() == nil {
		return
	}
	s.asked = true
	w := e.own()
	next := body.Terminator().Operands
	carried := min(op.Carries(o), len(o.Results), len(body.Args), len(next))
	for i := range carried {
		if s.over.Kept(o, i) != nil {
			w.begin = append(w.begin, s.handed(o, o.Results[i]))
		}
		place := 0
		for _, v := range packed(next[i]) {
			from, at := member(s.over.Storage(v))
			if made := v.Op; made != nil && made.Parent == body {
				if w := s.over.StateOver(made, v.Index); w != nil {
					from, at = member(w)
				}
			}
			if from != body.Args[i] || at != place {
				w.round = append(w.round, s.handed(o, v))
				if from.Block == body {
					w.round = append(w.round, s.handed(o, v))
				}
			}
			place += tensors(v)
		}
	}
	made := map[*ir.Value]bool{} // is written where it is stacked, in place of memory of its own
	for i := carried; i < min(len(o.Results), len(next)); i++ {
		v := next[i]
		if v.Op != nil && v.Op.Parent == body && !op.IsView(v.Op) && !made[v] && !slices.Contains(next[:carried], v) {
			made[v] = true
			continue
		}
		w.round = append(w.round, s.handed(o, v))
	}
}

// packed are the values that v, a tuple, is made of, as far as the block shows it.
func packed(v *ir.Value) []*ir.Value {
	if v.Op == nil || v.Op.Name != op.Pack || !types.IsTuple(v.Type) {
		return []*ir.Value{v}
	}
	var out []*ir.Value
	for _, m := range v.Op.Operands {
		out = append(out, packed(m)...)
	}
	return out
}

// member is the tuple that v is a part of, and its place among the tensors of that;
// of another value the value itself.
func member(v *ir.Value) (of *ir.Value, place int) {
	for v.Op != nil && v.Op.Name == op.Unpack {
		place += tensors(v.Op.Results[:v.Index]...)
		v = v.Op.Operands[0]
	}
	return v, place
}

func (t total) costlier(than total) bool {
	a, b := t.moved(), than.moved()
	if a.Equal(b) {
		return !t.flop.Equal(than.flop) && t.flop.AtLeast(than.flop)
	}
	return a.AtLeast(b)
}

// loop: the regions, and what they hand on, as often as the body runs. Nothing asks for the condition of a loop whose number of turns
// its text tells.
func (s *scope) loop(e *Entry, o *ir.Op, fused bool) {
	s.inner(e, o, fused)
	if _, counted := op.TripCount(o); counted {
		asks := func(x *Entry) bool { return x.Op.Parent == o.Body(0) }
		for _, x := range e.Inner {
			if asks(x) {
				s.extra = append(s.extra, x)
			}
		}
		e.own().Inner = slices.DeleteFunc(e.Inner, asks)
	}
	e.strongest()
	e.known()
	w := e.own()
	w.Trips = dim.Sym(Trips).Subst(s.env)
	if n, ok := op.Trips(o); ok {
		w.Trips = n.Subst(s.env)
	}
	if !fused {
		s.carries(e, o)
	}
	t := sum(slices.Concat(e.Inner, e.round)).times(e.Trips)
	begin := sum(e.begin)
	e.FLOP, e.Read, e.Written = t.flop, t.read.Add(begin.read), t.written.Add(begin.written)
}

// call: the cost of the callee's body, or of its gradient's, with the sizes of the operands for the
// symbols of its arguments.
func (s *scope) call(e *Entry, o *ir.Op) {
	b := s.callee(o)
	if b == nil {
		e.Known = false
		return
	}
	e.own().callee = b
	e.FLOP, e.Read, e.Written = b.total.flop, b.total.read, b.total.written
	if b.lead != nil {
		e.Class, e.Elem = b.lead.Class, b.lead.Elem
	}
	e.Known = b.odd == 0
}

// callee is the body that o calls, nil where there is none or where it leads
// back to itself.
func (s *scope) callee(o *ir.Op) *body {
	if b, ok := s.calls[o]; ok {
		return b
	}
	var b *body
	if s.m != nil {
		fn := s.m.Func(o.Str("callee"))
		if o.Name == op.Grad {
			fn = s.gradient(o)
		}
		if fn != nil && fn.Body != nil {
			s.called[fn] = true
			b = s.body(fn, s.passed(fn, o))
		}
	}
	s.calls[o] = b
	return b
}

// passed is the sizes that a call gives to the callee's symbols, those of the
// caller in place of its own; the bindings give the rest.
func (s *scope) passed(fn *ir.Func, o *ir.Op) map[string]dim.Dim {
	var given []types.Type
	for _, v := range o.Operands {
		t := types.Sized(v.Type, s.env)
		if o.Name != op.Grad || !types.Compound(t) {
			given = append(given, t)
			continue
		}
		for _, part := range types.Parts(t) { // a gradient has no tuples
			given = append(given, part.Tensor)
		}
	}
	b, _ := op.Bound(fn, given, s.bind)
	return b.Sizes
}

// tensors is how many tensors vs are, those of a tuple counted each.
func tensors(vs ...*ir.Value) (n int) {
	for _, v := range vs {
		n += len(op.Leaves(v))
	}
	return n
}

// calleePeak is what a call holds in memory beyond its operands and results.
func (s *scope) calleePeak(o *ir.Op) []dim.Dim {
	if o.Name != op.Call && o.Name != op.Grad {
		return nil
	}
	b := s.callee(o)
	if b == nil {
		return nil
	}
	peaks := b.peaks()
	out := make([]dim.Dim, len(peaks))
	for i, p := range peaks {
		out[i] = p.Sub(b.fixed)
	}
	return out
}

// strongest takes the class of the strongest op inside, and the element type
// it computes on.
func (e *Entry) strongest() { e.Class, e.Elem = strongest(e.Inner) }

func strongest(entries []*Entry) (class op.Class, elem types.Elem) {
	if e := leading(entries); e != nil {
		return e.Class, e.Elem
	}
	return op.ClassMovement, elem
}

// leading is the first entry of the strongest class; nil where there are none.
func leading(entries []*Entry) (first *Entry) {
	for _, e := range entries {
		if first == nil || strength[e.Class] > strength[first.Class] {
			first = e
		}
	}
	return first
}

var strength = map[op.Class]int{
	op.ClassMovement:      0,
	op.ClassElementwise:   1,
	op.ClassNormalization: 2,
	op.ClassContraction:   3,
}

// known: an entry is known if all of its inner ops are.
func (e *Entry) known() {
	for _, i := range e.Inner {
		e.Known = e.Known && i.Known
	}
}
