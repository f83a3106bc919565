package feature

import (
	"cmp"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/syntax/source"
)

// Hint is the cost of a line in a few characters, and how its values are divided.
type Hint struct {
	Offset int   // in the text, the end of the line
	Label  Label // at most LabelWidth characters, and what is sent

	// Sharding is how the values that the line defines are divided over a mesh, "{data}·{model}";
	// "" where every device has them whole.
	Sharding string
	Tooltip  string // Markdown: the rest

	rows []row
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
// function: the time, which is the measured one where there is one, and what is
// moved. All else that is known of the line is in the tooltip. Where an error
// leaves no figure, or a total without a part, kept has the last one; it may be nil.
func Hints(p *program.Program, ran *Times, kept *Kept, span source.Span) []Hint {
	h := &hinter{p: p, ran: ran, kept: kept, span: lines(p, span), at: map[int]int{}}
	for _, f := range funcsIn(p, h.span) {
		if shown := Settled(f); shown != nil {
			h.function(shown)
			h.entries(shown, shown.Entries, false)
		}
		h.shardingHints(f)
	}
	h.kernels()
	kept.hints(h)
	slices.SortStableFunc(h.hints, func(a, b Hint) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := range h.hints {
		kept.doubt(&h.hints[i])
		h.hints[i].Tooltip = table(h.hints[i].rows)
	}
	return h.hints
}

type hinter struct {
	p     *program.Program
	ran   *Times
	kept  *Kept
	span  source.Span // whole lines
	hints []Hint
	at    map[int]int // index of a line's hint
}

func (h *hinter) function(f *cost.Func) {
	start := f.Func.Op.Span.Start
	if !h.shown(start) {
		return
	}
	if s, why := h.kept.of(h.p, f); why != "" {
		h.line(h.p.Src.Pos(start).Line).stale(s.label, []row{{"totals", s.title}, {"of the text", why}})
		return
	}
	if nothingKnown(f) {
		return
	}
	var ns int64
	if h.ran != nil && h.ran.Func == f.Func.Name {
		ns = h.ran.Ns
	}
	sent, _ := f.Sent()
	h.add(start, f.Moved(), f.Time(h.p.Target), sent, ns, funcRows(f, h.p.Target))
}

func (h *hinter) entries(f *cost.Func, es []*cost.Entry, fused bool) {
	if h.p.Imported {
		h.imported(f, entriesIn(es, h.span))
		return
	}
	in := entriesIn(es, h.span)
	h.p.Work().Add("hints", len(in))
	for _, e := range in {
		h.entry(f, e, fused)
		h.entries(f, e.Inner, fused || e.Fused)
	}
}

func (h *hinter) entry(f *cost.Func, e *cost.Entry, fused bool) {
	moved := e.Moved()
	switch {
	case fused || !h.shown(e.Op.Span.Start) || !e.Known:
		return // an op inside a kernel moves nothing and takes no time of its own
	case len(e.Op.Results) == 0 && len(e.Inner) == 0 && e.FLOP.IsZero() && moved.IsZero():
		return // terminators
	}
	var ns int64
	if h.ran != nil {
		ns = h.ran.Ops[h.p.Src.Pos(e.Op.Span.Start).Line+1]
	}
	sent, _ := e.Sent()
	h.add(e.Op.Span.Start, moved, e.Time(h.p.Target), sent, ns, entryRows(e, f, h.p.Target))
}

func (h *hinter) shown(off int) bool { return h.span.Start <= off && off <= h.span.End }

// add puts the cost of an op or a function on the line of an offset; a line of
// several ops has that of the first.
func (h *hinter) add(off int, moved dim.Dim, t cost.Time, sent []cost.Sent, measured int64, rows []row) {
	hint := h.line(h.p.Src.Pos(off).Line)
	if len(hint.rows) > 0 {
		return
	}
	hint.Label, hint.rows = labelOf(t, moved), rows
	if n := cost.TotalSent(sent); n > 0 {
		hint.Label.Sent = units.ShortBytes(n)
	}
	if measured > 0 {
		hint.Label.measured(float64(measured))
		hint.rows = append([]row{{"measured", units.Time(float64(measured))}}, rows...)
	}
}

// line is the hint of a 0-based line. It is valid until the next call.
func (h *hinter) line(n int) *Hint {
	i, ok := h.at[n]
	if !ok {
		i = len(h.hints)
		h.at[n] = i
		h.hints = append(h.hints, Hint{Offset: h.p.Src.LineStart(n) + len(h.p.Src.Line(n))})
	}
	return &h.hints[i]
}

// Text is the hint in one line: the sharding, and the cost.
func (h Hint) Text() string {
	label := h.Label.String()
	if h.Sharding == "" || label == "" {
		return h.Sharding + label
	}
	return h.Sharding + "  " + label
}
