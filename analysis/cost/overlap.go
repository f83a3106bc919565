package cost

import (
	"slices"

	"dmir/analysis/machine"
	"dmir/analysis/network"
	"dmir/dialect/ir"
)

// Overlap is the time of a function whose collectives run on a stream of their own, beside its
// kernels.
type Overlap struct {
	Ns        float64 // of the function
	Compute   float64 // ns of kernels
	Comm      float64 // ns of collectives
	ExposedNs float64 // ns of collectives in which no kernel runs
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

// Overlap is when f's ops run on m: kernels in the order of the text, collectives as soon as
// what they use is there (network.Timeline). A loop is one step, inside which its own
// collectives overlap with its own kernels.
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
		x, _ = f.overlap.LoadOrStore(m, timer{m}.overlap(f.Entries))
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

// steps are entries of one block as steps of a device, and what each holds of communication within; ok is false where
// a time is not known.
func (t timer) steps(entries []*Entry) (steps []network.Step, within []Overlap, ok bool) {
	at := make(map[*ir.Op]int, len(entries))
	steps = make([]network.Step, len(entries))
	within = make([]Overlap, len(entries))
	for i, e := range entries {
		x := t.entry(e)
		if !x.Known {
			return nil, nil, false
		}
		at[e.Op] = i
		alone := e.Comm != nil || e.parts != nil && !slices.ContainsFunc(e.parts, func(p *Entry) bool { return p.Comm == nil })
		step := network.Step{Communication: alone, Duration: x.Ns, After: before(e.Op, at, i)}
		if !alone && e.talks() {
			inner, times := e.Inner, 1.0
			if e.callee != nil {
				inner = e.callee.entries
			} else if e.parts != nil {
				inner = e.parts
			} else if n, ok := e.Trips.Int(); ok {
				times = float64(n)
			}
			w := t.overlap(inner)
			if !w.Known {
				return nil, nil, false
			}
			within[i] = Overlap{Comm: w.Comm * times, ExposedNs: w.ExposedNs * times}
			step.Duration = max(0, x.Ns-(w.Comm-w.ExposedNs)*times) // less what is hidden
		}
		steps[i] = step
	}
	return steps, within, true
}

// overlap is the time of entries of one block.
func (t timer) overlap(entries []*Entry) Overlap {
	out := Overlap{Known: true}
	steps, within, ok := t.steps(entries)
	if !ok {
		return Overlap{}
	}
	s, err := network.Timeline(steps)
	if err != nil {
		return Overlap{}
	}
	out.Ns, out.Compute, out.ExposedNs = s.Total, s.Compute, s.Exposed
	for i, span := range s.Spans {
		comm := steps[i].Communication
		out.Spans = append(out.Spans, Span{entries[i], comm, span.Start, span.End, span.Exposed + within[i].ExposedNs})
		if comm {
			out.Comm += steps[i].Duration
		}
		out.Comm += within[i].Comm
		out.ExposedNs += within[i].ExposedNs
		out.Compute -= within[i].ExposedNs
	}
	return out
}

// before are the steps that define what o uses, in its regions too.
func before(o *ir.Op, at map[*ir.Op]int, i int) []int {
	var out []int
	note := func(v *ir.Value) {
		if v.Op == nil {
			return
		}
		if k, ok := at[v.Op]; ok && k < i {
			for _, have := range out {
				if have == k {
					return
				}
			}
			out = append(out, k)
		}
	}
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for _, v := range p.Operands {
			note(v)
		}
		return true
	})
	return out
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
