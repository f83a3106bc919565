package lint

import (
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// A change of a function that several devices run together saves what a schedule of two streams
// and a partitioner make of it, one of a step in micro-batches what each of them repeats; no sum over ops gives that. Its promise is
// the cost of the changed text.

// maxTrials bounds how many changes of one function are tried: each is analysed as a whole.
const maxTrials = 16

// distributed reports whether several devices run the function together.
func (c *Context) distributed() bool { return c.mesh() != nil }

// shown is the cost of the function that promises are about: that of each device, with all micro-batches.
func (c *Context) shown() *cost.Func { return c.Cost.PerDevice() }

// trial is what the edits save, or what another function loses by them that they make slower; nil where the changed text has errors, or
// after many trials.
func (c *Context) trial(edits []diag.Edit) *Saving {
	if c.trials++; c.trials > maxTrials || c.ctx.Err() != nil {
		return nil
	}
	p, q := c.program, c.changed(edits)
	if q == nil {
		return nil
	}
	var s *Saving
	for i, f := range p.Funcs {
		before, after := f.PerDevice(), q.Funcs[i].PerDevice()
		if f == c.Cost {
			s = difference(c, before, after)
			continue
		}
		if before == f {
			continue
		}
		if other := difference(c, before, after); other.loses() {
			return other
		}
	}
	return s
}

// changed is the program with the edits, nil where they overlap or where it has errors.
func (c *Context) changed(edits []diag.Edit) *program.Program {
	p := c.program
	var text strings.Builder
	at := 0
	for _, e := range slices.SortedFunc(slices.Values(edits), func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start }) {
		if e.Span.Start < at {
			return nil
		}
		text.WriteString(p.Src.Text()[at:e.Span.Start] + e.Text)
		at = e.Span.End
	}
	text.WriteString(p.Src.Text()[at:])
	q := program.Load(source.New(p.Src.Path, text.String()), program.Options{Target: p.Target, F32Products: p.F32Products, Bind: p.Bind, Config: p.Config, Arrays: p.Arrays})
	if q.HasErrors() || len(q.Funcs) != len(p.Funcs) {
		return nil
	}
	return q
}

func difference(c *Context, before, after *cost.Func) *Saving {
	s := &Saving{Bytes: before.Moved().Sub(after.Moved())}
	t, u := before.Time(c.Machine), after.Time(c.Machine)
	if s.timed = t.Known && u.Known; s.timed {
		s.Ns = t.Ns - u.Ns
	}
	sent, ok1 := before.Sent()
	less, ok2 := after.Sent()
	if ok1 && ok2 {
		s.Sent = cost.TotalSent(sent) - cost.TotalSent(less)
	}
	return s
}

// loses reports whether a change makes a function slower.
func (s *Saving) loses() bool { return s != nil && s.timed && s.Ns < 0 }

// better reports whether a change sends less, or takes less time and sends no more.
func (s *Saving) better() bool {
	return s != nil && (s.Sent > 0 && (!s.timed || s.Ns > 0) || s.Sent == 0 && s.timed && s.Ns > 0)
}

// collectives visits the ops of a function that one device runs which communicate.
func (c *Context) collectives(visit func(*ir.Op)) {
	if !op.PerDevice(c.Fn.Op) || c.Cost.Mesh() == nil {
		return
	}
	c.ops(func(o *ir.Op) {
		if d := op.Of(o); d != nil && d.Is(op.Collective) && op.Valid(o) {
			visit(o)
		}
	})
}

// sameAttrs reports whether two ops of one name have the same attributes.
func sameAttrs(a, b *ir.Op) bool {
	if a.Name != b.Name || len(a.Attrs) != len(b.Attrs) {
		return false
	}
	for i, x := range a.Attrs {
		if y := b.Attrs[i]; x.Name != y.Name || x.Value.String() != y.Value.String() {
			return false
		}
	}
	return true
}
