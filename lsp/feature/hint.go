package feature

import (
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/syntax/source"
)

// Hint is a note behind a line.
type Hint struct {
	Offset  int    // in the text, the end of the line
	Label   string // under 30 characters
	Tooltip string // Markdown
}

// Times are measured durations of a run.
type Times struct {
	Func   string // without "@"
	Device string
	Ns     int64         // 0: not measured
	Ops    map[int]int64 // nanoseconds by 1-based line

	Kernels []KernelTime // in the order in which they ran
}

// Hints are the cost of each line that begins in span, and the totals of each
// function, first what is computed and moved, then how long it takes. Measured
// times, where there are any, stand beside the predicted ones.
func Hints(p *program.Program, ran *Times, span source.Span) []Hint {
	h := &hinter{p: p, ran: ran, span: lines(p, span)}
	for _, f := range funcsIn(p, h.span) {
		h.function(f)
		h.entries(f, f.Entries, false)
	}
	h.kernels()
	return h.hints
}

type hinter struct {
	p     *program.Program
	ran   *Times
	span  source.Span // whole lines
	hints []Hint
}

func (h *hinter) function(f *cost.Func) {
	if f.Unknown > 0 && f.FLOP.IsZero() && f.Moved().IsZero() {
		return // nothing of it is known
	}
	start := f.Func.Op.Span.Start
	if !h.shown(start) {
		return
	}
	measured := ""
	if h.ran != nil && h.ran.Func == f.Func.Name && h.ran.Ns > 0 {
		measured = "ran " + units.Time(float64(h.ran.Ns))
	}
	h.add(start, f.FLOP, f.Moved(), f.Time(h.p.Target), measured, funcRows(f, h.p.Target))
}

func (h *hinter) entries(f *cost.Func, es []*cost.Entry, fused bool) {
	for _, e := range entriesIn(es, h.span) {
		h.entry(f, e, fused)
		h.entries(f, e.Inner, fused || e.Fused)
	}
}

func (h *hinter) entry(f *cost.Func, e *cost.Entry, fused bool) {
	moved := e.Moved()
	switch {
	case !h.shown(e.Op.Span.Start) || !e.Known:
		return
	case len(e.Op.Results) == 0 && len(e.Inner) == 0 && e.FLOP.IsZero() && moved.IsZero():
		return // terminators
	case fused && e.FLOP.IsZero():
		return
	}
	t := cost.Time{}
	if fused {
		moved = dim.Dim{}
	} else {
		t = e.Time(h.p.Target)
	}
	measured := ""
	if h.ran != nil {
		if ns, ok := h.ran.Ops[h.p.Src.Pos(e.Op.Span.Start).Line+1]; ok {
			measured = "ran " + units.Time(float64(ns))
		}
	}
	h.add(e.Op.Span.Start, e.FLOP, moved, t, measured, entryRows(e, f, h.p.Target))
}

func (h *hinter) shown(off int) bool { return h.span.Start <= off && off <= h.span.End }

// add puts one or two hints behind the line of an offset.
func (h *hinter) add(at int, flop, moved dim.Dim, t cost.Time, measured string, all []row) {
	line := h.p.Src.Pos(at).Line
	off := h.p.Src.LineStart(line) + len(h.p.Src.Line(line))
	if measured != "" {
		all = append(all, row{"measured", measured[len("ran "):]})
	}
	tip := table(all)
	first, second := work(flop, moved), joinFitting(duration(t), measured)
	if second != "" && utf8.RuneCountInString(first) <= maxLabel-len(" .") {
		first += " ·" // editors put hardly any space between the hints of one line
	}
	h.hints = append(h.hints, Hint{off, first, tip})
	if second != "" {
		h.hints = append(h.hints, Hint{off, second, tip})
	}
}
