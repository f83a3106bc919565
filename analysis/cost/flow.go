package cost

import (
	"dmir/analysis/memory"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Flow is what crosses memory value by value: what the costs of a function's
// entries are the sums of. It is not safe for concurrent use.
type Flow struct {
	s  *scope
	fn *ir.Func
}

// NewFlow is the flow of fn, which m holds, with the sizes of bind.
func NewFlow(fn *ir.Func, m *ir.Module, bind map[string]int64) *Flow {
	c := newCoster(m, bind)
	c.data.Store(true)
	return &Flow{c.scope(sizes(fn, bind)), fn}
}

// Called is what e, a call or a gradient, runs: the function, its entries as ByOp has them, and its flow. All are
// nil for other ops, and where what runs is not known.
func (e *Entry) Called() (fn *ir.Func, entries map[*ir.Op]*Entry, flow *Flow) {
	b := e.callee
	if b == nil {
		return nil, nil, nil
	}
	c := newCoster(b.in.m, b.in.bind)
	c.data.Store(true)
	return b.fn, byOp(b.entries, b.extra), &Flow{c.scope(b.in.env), b.fn}
}

// Runs is how many ops e, a call or a gradient, runs, those that it calls in turn among them: 0 for other ops, and more than
// most where these are more. It takes time in proportion to most.
func (e *Entry) Runs(most int) int {
	if e.callee == nil {
		return 0
	}
	n := 0
	var count func(entries []*Entry)
	count = func(entries []*Entry) {
		for _, inner := range entries {
			if n++; n > most {
				return
			}
			count(inner.Inner)
			n += inner.Runs(most - n)
		}
	}
	count(e.callee.entries)
	return n
}

// Size is the bytes of v, 0 for what is no tensor.
func (f *Flow) Size(v *ir.Value) dim.Dim { return f.s.size(v) }

// Reads is what o, outside any kernel, reads of each of its operands; a value
// that is named twice is read by the first of them. Nothing for control flow,
// kernels, calls and what dmir does not know.
func (f *Flow) Reads(o *ir.Op) []dim.Dim {
	out := make([]dim.Dim, len(o.Operands))
	d := op.Of(o)
	if d == nil || !op.Valid(o) || o.Name == op.Kernel || o.Name == op.If || op.LoopBody(o) != nil || op.IsView(o) {
		return out
	}
	if op.HasTraffic(o) {
		read, _ := f.s.traffic(o)
		for i := range min(len(read), len(out)) {
			out[i] = f.s.part(o, i, read)
		}
		return out
	}
	for i, v := range o.Operands {
		if !earlier(o, i) {
			out[i] = f.s.size(v)
		}
	}
	return out
}

// Captured is what a kernel reads of v, a value from outside that uses, inside
// the kernel, touch.
func (f *Flow) Captured(v *ir.Value, uses []ir.Use) dim.Dim { return f.s.touched(v, uses) }

// Lay is the plan of the function's memory, without tuples: a member of one is a
// value of its own. from gives the ops of the function for those of the plan.
func (f *Flow) Lay() (plan *memory.Plan, from flatten.From, err error) {
	fn, from := flatten.Func(f.fn)
	plan, err = memory.Lay(fn, f.s.memory(from))
	return plan, from, err
}

// Sizes is what package memory asks of the values and ops of the function, which has
// no tuples.
func (f *Flow) Sizes() memory.Sizes { return f.s.memory(nil) }

// memory is what package memory asks of the ops of a function that flatten made from
// others.
func (s *scope) memory(from flatten.From) memory.Sizes {
	extra := func(o *ir.Op) []dim.Dim {
		if o.Name == op.Kernel && s.data.Load() && o.Body(0) != nil {
			return s.holds(o)
		}
		return s.calleePeak(from.Of(o))
	}
	value := func(v *ir.Value) dim.Dim {
		if s.between(v, from) {
			return dim.Dim{}
		}
		return s.resident(v)
	}
	return memory.Sizes{Value: value, View: free, Over: s.over.Over, Extra: extra}
}

// between reports whether v passes from one to another of the dense ops that an op on sparse
// tensors is written out as. That op is one kernel here, as its bytes are: what is in memory
// are its operands and results.
func (s *scope) between(v *ir.Value, from flatten.From) bool {
	o := from[v.Op]
	if o == nil || !op.IsSparse(o) || len(v.Uses) == 0 {
		return false
	}
	for _, u := range v.Uses {
		if from[u.Op] != o {
			return false
		}
		for i, r := range u.Op.Results {
			if (op.IsView(u.Op) || s.over.Over(u.Op, i) == v) && !s.between(r, from) {
				return false // the result lies in the memory of v
			}
		}
	}
	return true
}

// holds is what a kernel holds beyond its operands and results: the constants inside that are
// data.
func (s *scope) holds(o *ir.Op) []dim.Dim {
	var n dim.Dim
	ir.Walk(o.Body(0).Ops, func(p *ir.Op) bool {
		if op.IsData(p) && len(p.Results) == 1 {
			n = n.Add(s.resident(p.Results[0]))
		}
		return true
	})
	if n.IsZero() {
		return nil
	}
	return []dim.Dim{n}
}

// ByOp is the entry of every op that has one, at any depth, those in branches
// that are not taken among them: what Find finds, for who asks for all.
func (f *Func) ByOp() map[*ir.Op]*Entry { return byOp(f.Entries, f.extra) }

// Block is the entry of every op of b, a block of fn, and in the regions of these
// ops, as ByOp has them.
func Block(b *ir.Block, fn *ir.Func, m *ir.Module, bind map[string]int64) map[*ir.Op]*Entry {
	s := newCoster(m, bind).scopeOf(fn, sizes(fn, bind))
	entries := s.block(b.Ops, nil)
	return byOp(entries, s.extra)
}

func byOp(entries, extra []*Entry) map[*ir.Op]*Entry {
	out := make(map[*ir.Op]*Entry, len(entries))
	add := func(e *Entry) { out[e.Op] = e }
	walk(extra, add)
	walk(entries, add)
	return out
}

// Results is what the results of e's op are called in the text: "%y",
// "%y, %mask", "%r:2"; "" for none.
func (e *Entry) Results() string { return resultNames(e.Op) }
