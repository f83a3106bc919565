package feature

import (
	"fmt"
	"math"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/syntax/source"
)

// What lines are coloured by.
const (
	HeatTime  = "time"
	HeatBytes = "bytes"
	HeatWaste = "waste"
)

// Heat is how much of its function a line takes.
type Heat struct {
	Span  source.Span // of the op, on its first line
	Level int         // 0 to MaxHeat
	Text  string      // "71.3 % of the time of @ffn: 34.7 µs"
}

// MaxHeat is the hottest level.
const MaxHeat = 9

// Heats are the levels of the ops that begin on the lines of span, by time,
// bytes or waste, in the order of the text.
//
// The scale is logarithmic. Level 9 is a line that takes all that its function
// takes; level 0 one that takes an eighth of the average or less; the levels
// between are equal factors. In a function of few lines each of them takes much,
// which says little: below four lines the hottest level is lower, and the only line
// of a function is in the middle of the scale. It depends on the function's total and
// the number of its lines alone, so that a level does not change with what is in view.
// What a line takes in a loop counts as often as the loop runs.
//
// The waste of a line is what it moves other than the first read of an argument
// of the function and the write of a result. Lines whose cost depends on an
// unbound symbol, or is not known, have no level, and so do the lines of a
// function whose total is not known, those that take nothing, and those inside a
// kernel: the kernel's own line stands for them.
func Heats(p *program.Program, by string, span source.Span) ([]Heat, error) {
	switch by {
	case HeatTime, HeatBytes, HeatWaste:
	default:
		return nil, fmt.Errorf("lines cannot be coloured by %q; by %s, %s or %s", by, HeatTime, HeatBytes, HeatWaste)
	}
	h := &heater{p: p, by: by, span: lines(p, span)}
	for _, f := range funcsIn(p, h.span) {
		shown := Settled(f)
		if shown == nil {
			continue
		}
		if by != HeatWaste { // what is wasted is that of the whole
			f = shown
		}
		total, ok := h.total(f)
		if !ok || total <= 0 {
			continue
		}
		h.f, h.whole, h.lines = f, total, 0
		for _, e := range f.Entries {
			if len(e.Op.Results) > 0 { // others, such as return, take nothing
				h.lines++
			}
		}
		if by == HeatWaste {
			h.waste = cost.NewWaster(moduleOf(p, f.Func), f.Func, p.Bind)
		}
		h.entries(f.Entries, 1)
	}
	return h.out, nil
}

type heater struct {
	p     *program.Program
	by    string
	span  source.Span
	f     *cost.Func
	whole float64 // what f takes
	lines int     // of f, which have results
	waste *cost.Waster
	out   []Heat
}

func (h *heater) total(f *cost.Func) (float64, bool) {
	switch h.by {
	case HeatTime:
		t := f.Time(h.p.Target)
		return t.Ns, t.Known
	case HeatBytes:
		n, ok := f.Moved().Int()
		return float64(n), ok
	}
	n, ok := f.Waste().Int()
	return float64(n), ok && f.Unknown == 0
}

// entries takes the ops of a region that runs so many times.
func (h *heater) entries(es []*cost.Entry, runs int64) {
	for _, e := range entriesIn(es, h.span) {
		if at := e.Op.Span.Start; h.span.Start <= at && at <= h.span.End {
			if n, ok := h.takes(e, runs); ok && n > 0 {
				h.add(e, n)
			}
		}
		if n, ok := dim.Const(runs).Mul(e.Trips).Int(); ok && !e.Fused {
			h.entries(e.Inner, n)
		}
	}
}

// takes is what all runs of an entry take.
func (h *heater) takes(e *cost.Entry, runs int64) (float64, bool) {
	if h.by == HeatTime {
		t := e.Time(h.p.Target)
		return t.Ns * float64(runs), t.Known
	}
	moved := e.Moved().Scale(runs)
	if h.by == HeatWaste {
		moved = h.waste.Of(e, runs)
	}
	n, ok := moved.Int()
	return float64(n), ok && e.Known
}

// add puts the level of an entry that takes n.
func (h *heater) add(e *cost.Entry, n float64) {
	amount := units.Time(n)
	if h.by != HeatTime {
		amount = units.Bytes(int64(n))
	}
	start := e.Op.Span.Start
	line := h.p.Src.Pos(start).Line
	h.out = append(h.out, Heat{
		Span:  source.Span{Start: start, End: min(e.Op.Span.End, h.p.Src.LineStart(line)+len(h.p.Src.Line(line)))},
		Level: level(n/h.whole, h.lines),
		Text:  fmt.Sprintf("%s of the %s of @%s: %s", units.Percent(n, h.whole), h.by, h.f.Func.Name, amount),
	})
}

// level is the place of a share on the scale of a function with so many lines.
func level(share float64, lines int) int {
	const (
		coldest = 8 // parts of the average
		few     = 4 // lines below which one that takes all is not the hottest
	)
	average := share * float64(max(lines, 1))
	return int(math.Round(min(max(math.Log(coldest*average)/math.Log(float64(coldest*max(lines, few))), 0), 1) * MaxHeat))
}
