package cost

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Waster attributes the waste of a function to entries: what an entry moves
// other than the first read of an argument or a constant, reads of parts of these, and
// the write of a result. It is not safe for concurrent use.
type Waster struct {
	s        *scope
	fn       *ir.Func
	returned map[*ir.Value]bool   // and what they are views of
	first    map[*ir.Value]*ir.Op // that reads an argument
}

// NewWaster is for the entries of fn, which m holds, with the sizes of bind.
func NewWaster(m *ir.Module, fn *ir.Func, bind map[string]int64) *Waster {
	w := &Waster{
		s: newCoster(m, bind).scope(sizes(fn, bind)), fn: fn,
		returned: map[*ir.Value]bool{}, first: map[*ir.Value]*ir.Op{},
	}
	if fn.Body != nil {
		for _, v := range returned(fn) {
			w.returned[op.Source(v)] = true
		}
	}
	return w
}

// Of is the waste of an entry that runs so many times, in the loops that it is in.
func (w *Waster) Of(e *Entry, runs int64) dim.Dim {
	moved := e.Moved().Scale(runs)
	needed := w.needed(e)
	if needed.AtLeast(moved) {
		return dim.Dim{}
	}
	return moved.Sub(needed)
}

func (w *Waster) needed(e *Entry) dim.Dim {
	var n dim.Dim
	read := func(v *ir.Value, bytes dim.Dim, part bool) {
		if arg := op.Source(v); (arg.Block == w.fn.Body || op.IsData(arg.Op)) && (part || w.reads(e.Op, arg)) {
			n = n.Add(bytes)
		}
	}
	t := w.s.explain(e)
	for _, x := range t.Read {
		read(x.Value, x.Bytes, x.Part)
	}
	for _, x := range t.Written {
		if w.returned[x.Value] {
			n = n.Add(x.Bytes)
		}
	}
	if t.Read != nil || t.Written != nil {
		return n
	}
	// A call, an if or a while: what it takes from outside, and what it gives.
	for _, v := range slices.Concat(e.Op.Operands, crossing(e.Op).read.order) {
		read(v, w.s.size(v), false)
	}
	for _, v := range e.Op.Results {
		if w.returned[v] {
			n = n.Add(w.s.size(v))
		}
	}
	return n
}

// reads reports whether o, or an op inside it, is the first that reads arg.
func (w *Waster) reads(o *ir.Op, arg *ir.Value) bool {
	first, known := w.first[arg]
	if !known {
		first = firstReader(arg)
		w.first[arg] = first
	}
	for ; first != nil; first = owner(first) {
		if first == o {
			return true
		}
	}
	return false
}

// firstReader is the first op in the text that reads v, views apart.
func firstReader(v *ir.Value) *ir.Op {
	var first *ir.Op
	work, seen := []*ir.Value{v}, map[*ir.Value]bool{}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		for _, u := range v.Uses {
			switch {
			case free(u.Op):
				work = append(work, u.Op.Results[0])
			case first == nil || u.Op.Span.Start < first.Span.Start:
				first = u.Op
			}
		}
	}
	return first
}

// owner is the op in whose region o is, nil for none.
func owner(o *ir.Op) *ir.Op {
	if o.Parent == nil || o.Parent.Region == nil {
		return nil
	}
	return o.Parent.Region.Op
}
