package cost

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Term is one summand of what an entry reads or writes: a value, and how much
// of it crosses.
type Term struct {
	Value *ir.Value // nil for what the op's kernels move among themselves
	Bytes dim.Dim
	Part  bool // less than the whole value: a slice, a gather, an update in place
}

// Terms are the summands of an entry's bytes and the factors of its FLOP. The
// bytes of what sums up its inner ops (a call, an if, a while) have none.
type Terms struct {
	Read    []Term // in the order of the operands, or of the uses in a kernel
	Written []Term

	// FLOP = Each × Over: so many for each point of the
	// iteration space Loops, or for each element where Loops is nil. Each is 0
	// where the FLOP is no such product.
	Each  int64
	Over  dim.Dim
	Loops *op.Iteration
}

// Explain is how the numbers of e, an entry of fn, which m holds, come about
// with the sizes of bind. The terms add up to e.Read and e.Written.
func Explain(m *ir.Module, fn *ir.Func, bind map[string]int64, e *Entry) Terms {
	return newCoster(m, bind).scope(sizes(fn, bind)).explain(e)
}

func (s *scope) explain(e *Entry) Terms {
	var t Terms
	o := e.Op
	d := op.Of(o)
	if !e.Known || d == nil || o.Name == op.If || op.LoopBody(o) != nil || o.Name == op.Call || o.Name == op.Grad {
		return t
	}
	if e.parts != nil {
		for _, p := range e.parts {
			of := s.explain(p)
			t.Read, t.Written = append(t.Read, of.Read...), append(t.Written, of.Written...)
		}
		return t
	}
	if !e.Read.IsZero() {
		t.Read = s.readTerms(o, d)
	}
	if !e.Written.IsZero() {
		t.Written = s.writtenTerms(o, d, e.Written.Sub(scratch(o, ScratchWrittenAttr)))
	}
	if n := scratch(o, ScratchReadAttr); !n.IsZero() {
		t.Read = append(t.Read, Term{Bytes: n})
	}
	if n := scratch(o, ScratchWrittenAttr); !n.IsZero() {
		t.Written = append(t.Written, Term{Bytes: n})
	}
	if o.Name != op.Kernel {
		t.factor(s, o, d, e.FLOP)
	}
	return t
}

// ExplainMinimum is what the minimum of fn, which m holds, adds up from: its used
// arguments, its constants that are data, and its results.
func ExplainMinimum(m *ir.Module, fn *ir.Func, bind map[string]int64) []Term {
	if fn.Body == nil {
		return nil
	}
	c := newCoster(m, bind)
	c.data.Store(true)
	return c.scope(sizes(fn, bind)).minimumTerms(fn, fn.Body.Ops)
}

func (s *scope) readTerms(o *ir.Op, d *op.Def) []Term {
	var out []Term
	add := func(v *ir.Value, n dim.Dim) {
		if !n.IsZero() {
			out = append(out, Term{v, n, !n.Equal(s.size(v))})
		}
	}
	switch {
	case o.Name == op.Kernel:
		c := crossing(o)
		for _, v := range c.read.order {
			add(v, s.touched(v, c.read.of[v]))
		}
	case op.HasTraffic(o):
		read, _ := s.traffic(o)
		for i, v := range o.Operands {
			if i < len(read) {
				add(v, s.part(o, i, read))
			}
		}
	default:
		for i, v := range o.Operands {
			if !earlier(o, i) {
				add(v, s.size(v))
			}
		}
	}
	return out
}

func (s *scope) writtenTerms(o *ir.Op, d *op.Def, all dim.Dim) []Term {
	var out []Term
	add := func(i int, n dim.Dim) {
		if v := o.Results[i]; !n.IsZero() {
			out = append(out, Term{v, n, !n.Equal(s.size(v))})
		}
	}
	switch {
	case o.Name == op.Kernel:
		c := crossing(o)
		for i, v := range c.yields {
			if i < len(o.Results) {
				add(i, s.stored(v, c.outside))
			}
		}
	case op.HasTraffic(o) && len(o.Results) == 1:
		add(0, all)
	default:
		for i, v := range o.Results {
			n := s.size(v)
			if t := v.Tensor(); i > 0 && d.Sparse != nil && d.Sparse.Shares { // positions and coordinates are those of the first
				n = t.Elem.Size(t.Values()).Subst(s.env)
			}
			add(i, n)
		}
	}
	return out
}

// factor writes flop as so many for each point of the iteration space, else for
// each element of the largest tensor.
func (t *Terms) factor(s *scope, o *ir.Op, d *op.Def, flop dim.Dim) {
	if flop.IsZero() {
		return
	}
	try := func(over dim.Dim, loops *op.Iteration) bool {
		q, ok := flop.Div(over)
		if !ok {
			return false
		}
		n, ok := q.Int()
		if ok && n > 0 {
			t.Each, t.Over, t.Loops = n, over, loops
		}
		return t.Each > 0
	}
	if d.Maps != nil {
		if it := d.Maps(o); it != nil && len(it.Loops) > 0 {
			c := *it
			c.Loops = make([]dim.Dim, len(it.Loops))
			for i, l := range it.Loops {
				c.Loops[i] = l.Subst(s.env)
			}
			if try(dim.Prod(c.Loops...), &c) {
				return
			}
		}
	}
	var largest dim.Dim
	for _, v := range slices.Concat(o.Operands, o.Results) {
		if x := v.Tensor(); x != nil {
			if n := x.Elements().Subst(s.env); !largest.AtLeast(n) {
				largest = n
			}
		}
	}
	if !largest.IsZero() {
		try(largest, nil)
	}
}
