package cost

import (
	"slices"

	"dmir/analysis/machine"
	"dmir/base/streams"
	visited "dmir/base/work"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Overlap is the time of a function whose collectives run on a stream of their own, beside its
// kernels.
type Overlap struct {
	Ns        float64 // of the function
	Compute   float64 // ns of kernels
	Comm      float64 // ns of collectives
	ExposedNs float64 // ns of collectives in which no kernel runs
	SavedNs   float64 // ns that collectives take less as one than by themselves
	Spans     []Span  // of the steps, in the order of the text
	Known     bool    // false where a time is not
}

// Span is when an op of the function's own block runs.
type Span struct {
	Entry   *Entry
	Comm    bool
	Start   float64 // ns
	End     float64
	Exposed float64
}

// Overlap is when f's ops run on m: kernels on one stream, collectives on another (streams.Timeline). Of a function that is
// compiled the order is that of the text, with the waits in it; of one as it is written the best that the compiler tries
// (streams.Orders), with the collectives as one that it would make one (Buckets). A loop is one step, beside which nothing runs, and inside which its own collectives overlap with its own
// kernels.
func (f *Func) Overlap(m *machine.Machine) Overlap {
	if f.device != nil {
		return f.device.Overlap(m)
	}
	if !f.talks() {
		t := f.serial(m)
		return Overlap{Ns: t.Ns, Compute: t.Ns, Known: t.Known}
	}
	x, done := f.overlap.Load(m)
	if !done {
		f.visit("cost", len(f.Entries))
		var counts *visited.Counts
		if f.body.in.m != nil {
			counts = f.body.in.m.Work
		}
		x, _ = f.overlap.LoadOrStore(m, timer{m}.overlap(f.Entries, counts))
	}
	return x.(Overlap)
}

// talks reports whether running f sends something.
func (f *Func) talks() bool { return f.body != nil && f.body.in.mesh != nil && f.sends() }

func (f *Func) sends() bool {
	sent, known := f.Sent()
	return len(sent) > 0 || !known
}

func talk(entries []*Entry) bool {
	for _, e := range entries {
		if e.talks() {
			return true
		}
	}
	return false
}

func (e *Entry) talks() bool {
	switch {
	case communicates(e.Op) && e.parts == nil:
		return true
	case e.callee != nil:
		inner := e.callee.tally()
		return len(inner.sent) > 0 || !inner.known
	case e.parts != nil:
		return talk(e.parts)
	case e.Fused:
		return false
	}
	return talk(e.Inner)
}

// numbered are the ops of entries that have a place in a schedule, which dm.waits counts; none of a block without one.
func numbered(entries []*Entry) (ops []*ir.Op) {
	for _, e := range entries {
		if e.Op.Attr(op.StreamAttr) != nil {
			ops = append(ops, e.Op)
		}
	}
	return ops
}

// waitsOf are the steps that o waits for, of those that are numbered.
func waitsOf(o *ir.Op, numbered []*ir.Op) (ops []*ir.Op) {
	for _, w := range types.IntegersOf(o.Attr(op.WaitsAttr)) {
		if w >= 0 && w < int64(len(numbered)) {
			ops = append(ops, numbered[w])
		}
	}
	return ops
}

// program is entries of one block as steps of a device.
type program struct {
	steps  []streams.Step
	within []Overlap // of steps: what each holds of communication within
	at     []int     // of entries: the step; -1: it takes no time and no place on a stream, as a view does not
	after  [][]int   // of entries: the steps that each begins after
}

// program is entries of one block as steps; scheduled are the numbered ops of the block, and opaque are steps whatever they
// take. ok is false where a time is not known.
func (t timer) program(entries []*Entry, scheduled []*ir.Op, opaque func(*Entry) bool) (p program, ok bool) {
	at := make(map[*ir.Op]int, len(entries))
	p.at, p.after = make([]int, len(entries)), make([][]int, len(entries))
	for i, e := range entries {
		x := t.entry(e)
		if !x.Known {
			return program{}, false
		}
		at[e.Op] = i
		note := func(k int) {
			for _, n := range p.ends(k) {
				if !slices.Contains(p.after[i], n) {
					p.after[i] = append(p.after[i], n)
				}
			}
		}
		before(e.Op, at, i, note)
		for _, o := range waitsOf(e.Op, scheduled) {
			if k, ok := at[o]; ok && k < i {
				note(k)
			}
		}
		alone := e.Comm != nil || e.parts != nil && !slices.ContainsFunc(e.parts, func(p *Entry) bool { return p.Comm == nil })
		if p.at[i] = -1; x.Ns == 0 && !alone && !e.talks() && !opaque(e) {
			continue
		}
		p.at[i] = len(p.steps)
		step := streams.Step{Communication: alone, Duration: x.Ns, After: p.after[i], Alone: op.LoopBody(e.Op) != nil || e.Op.Name == op.If}
		within := Overlap{}
		if !alone && e.talks() {
			inner, times := e.Inner, 1.0
			if e.callee != nil {
				inner = e.callee.entries
			} else if e.parts != nil {
				inner = e.parts
			} else if n, ok := e.Trips.Int(); ok {
				times = float64(n)
			}
			w := t.overlap(inner, nil)
			if !w.Known {
				return program{}, false
			}
			within = Overlap{Comm: w.Comm * times, ExposedNs: w.ExposedNs * times, SavedNs: w.SavedNs * times}
			step.Duration = max(0, x.Ns-(w.SavedNs+w.Comm-w.ExposedNs)*times) // less what is hidden
		}
		p.steps, p.within = append(p.steps, step), append(p.within, within)
	}
	return p, true
}

// ends are the steps that have ended when entry k has.
func (p *program) ends(k int) []int {
	if n := p.at[k]; n >= 0 {
		return []int{n}
	}
	return p.after[k]
}

// span is when entry k runs.
func (p *program) span(k int, spans []streams.Span) streams.Span {
	if n := p.at[k]; n >= 0 {
		return spans[n]
	}
	end := 0.0
	for _, n := range p.after[k] {
		end = max(end, spans[n].End)
	}
	return streams.Span{Start: end, End: end}
}

// overlap is the time of entries of one block.
func (t timer) overlap(entries []*Entry, counts *visited.Counts) Overlap {
	out := Overlap{Known: true}
	scheduled := numbered(entries)
	p, ok := t.program(entries, scheduled, func(*Entry) bool { return false })
	if !ok {
		return Overlap{}
	}
	s, err := streams.Timeline(p.steps)
	if err == nil && scheduled == nil {
		s, err = streams.Hidden(p.steps, s, counts)
		if err == nil {
			s, err = t.bucketed(entries, &p, s, counts)
		}
	}
	if err != nil {
		return Overlap{}
	}
	out.Ns, out.Compute, out.ExposedNs = s.Total, s.Compute, s.Exposed
	for i, e := range entries {
		span, comm, exposed := p.span(i, s.Spans), false, 0.0
		if k := p.at[i]; k >= 0 {
			comm, exposed = p.steps[k].Communication, p.within[k].ExposedNs
			if comm {
				out.Comm += span.End - span.Start
				out.SavedNs += p.steps[k].Duration - (span.End - span.Start)
			}
			out.Comm += p.within[k].Comm
			out.SavedNs += p.within[k].SavedNs
			out.ExposedNs += exposed
			out.Compute -= exposed
		}
		out.Spans = append(out.Spans, Span{e, comm, span.Start, span.End, span.Exposed + exposed})
	}
	return out
}

// before calls note for the steps that define what o uses, in its regions too.
func before(o *ir.Op, at map[*ir.Op]int, i int, note func(int)) {
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for _, v := range p.Operands {
			if v.Op == nil {
				continue
			}
			if k, ok := at[v.Op]; ok && k < i {
				note(k)
			}
		}
		return true
	})
}

// NoLinks is why m has no times for the collectives of f: it lacks links, or devices; nil
// where it has them.
func (f *Func) NoLinks(m *machine.Machine) error {
	if f.device != nil {
		return f.device.NoLinks(m)
	}
	var err error
	f.Walk(func(e *Entry) {
		if e.Comm != nil && err == nil {
			_, err = e.Comm.Estimate(m)
		}
	})
	return err
}
