package feature

import (
	"fmt"
	"maps"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Kept is what a document has shown of its functions while they had no error, for
// the time in which one has: of a text that someone is typing the totals would
// leave out the op that is not finished. It holds a line for each function and
// one for each line that was broken.
type Kept struct {
	// Doubt is why figures may not be those that the configuration asks for, "" where
	// they are: a dmir.toml has an error.
	Doubt string

	sums  map[string]sum // by name
	lines []keptLine     // by offset
}

// sum is the cost of a function as hints and lenses show it.
type sum struct {
	title string
	label Label
}

// keptLine is the hint of an op that is being changed.
type keptLine struct {
	at   int // where its line begins
	hint Hint
}

// maxKept bounds the functions and the lines of one edit that are kept, and the lines
// in all; of more than maxSums functions only those of the text stay.
const (
	maxKept = 64
	maxSums = 4 * maxKept
)

// Record takes in what is shown of the functions that the bytes from start to end
// touch, which are about to be replaced.
func (k *Kept) Record(p *program.Program, start, end int) {
	start, end = min(start, p.Src.Len()), min(end, p.Src.Len())
	span := source.Span{Start: start, End: end}
	fs := funcsIn(p, span)
	if k.sums == nil {
		k.sums = map[string]sum{}
	}
	for _, f := range fs[:min(len(fs), maxKept)] {
		if p.FirstError(f.Func.Op.Span) == nil && !nothingKnown(f) {
			if shown := Settled(f); shown != nil {
				k.sums[f.Func.Name] = sum{totals(p, f), labelOf(shown.Time(p.Target), shown.Moved())}
			}
		}
	}
	if len(k.sums) > maxSums {
		there := map[string]bool{}
		for _, f := range p.Funcs {
			there[f.Func.Name] = true
		}
		maps.DeleteFunc(k.sums, func(name string, _ sum) bool { return !there[name] })
	}
	if p.Src.Pos(end).Line-p.Src.Pos(start).Line < maxKept {
		for _, h := range Hints(p, nil, nil, span) {
			k.keep(keptLine{p.Src.LineStart(p.Src.Pos(h.Offset).Line), h})
		}
	}
	k.lines = slices.DeleteFunc(k.lines, func(l keptLine) bool { // those that go as a whole
		line := p.Src.Pos(l.at).Line
		return start <= l.at && p.Src.LineStart(line)+len(p.Src.Line(line)) < end
	})
	for n := len(k.lines); n > maxKept; n-- { // the one that is farthest from the edit
		if start-k.lines[0].at > k.lines[n-1].at-end {
			k.lines = k.lines[1:]
		} else {
			k.lines = k.lines[:n-1]
		}
	}
}

// Move moves the lines with the text: the bytes from start to end became n others.
func (k *Kept) Move(start, end, n int) {
	by := n - (end - start)
	k.lines = slices.DeleteFunc(k.lines, func(l keptLine) bool { return start < l.at && l.at < end })
	for i := range k.lines {
		if k.lines[i].at >= end && k.lines[i].at > start {
			k.lines[i].at += by
		}
	}
}

func (k *Kept) keep(l keptLine) {
	i, found := slices.BinarySearchFunc(k.lines, l.at, func(have keptLine, at int) int { return have.at - at })
	if found {
		k.lines[i] = l
		return
	}
	k.lines = slices.Insert(k.lines, i, l)
}

// of is what was shown of f while it had no error, and why it still is, "" where f
// has no error.
func (k *Kept) of(p *program.Program, f *cost.Func) (s sum, why string) {
	d := p.FirstError(f.Func.Op.Span)
	if k == nil || d == nil {
		return sum{}, ""
	}
	s, ok := k.sums[f.Func.Name]
	if !ok {
		return sum{}, ""
	}
	return s, Before(p, d)
}

// Before says of which text a figure is that is kept because of an error.
func Before(p *program.Program, d *diag.Diagnostic) string {
	return fmt.Sprintf("before the error in line %d", p.Src.Pos(d.Span.Start).Line+1)
}

// hints adds the hints of lines that have none because of an error.
func (k *Kept) hints(h *hinter) {
	if k == nil {
		return
	}
	for _, l := range k.lines {
		if l.at > h.p.Src.Len() || !h.shown(l.at) {
			continue
		}
		line := h.p.Src.Pos(l.at).Line
		start := h.p.Src.LineStart(line)
		d := h.p.FirstError(source.Span{Start: start, End: start + len(h.p.Src.Line(line))})
		if d == nil {
			continue
		}
		if hint := h.line(line); len(hint.rows) == 0 {
			hint.stale(l.hint.Label, append(slices.Clip(l.hint.rows), row{"of the text", Before(h.p, d)}))
		}
	}
}

// stale makes a hint that of a text without the error that it has now.
func (h *Hint) stale(l Label, rows []row) {
	l.Mark = MarkStale
	h.Label, h.rows = l, rows
}

// title is the totals of a function in one line.
func (k *Kept) title(p *program.Program, f *cost.Func) string {
	if s, why := k.of(p, f); why != "" {
		return Doubted(s.title, why)
	}
	return k.Doubted(totals(p, f))
}

// Doubted is a line of figures with the mark of doubt and its reason, the line itself
// where there is none.
func Doubted(figures, why string) string {
	if why == "" {
		return figures
	}
	return MarkStale + " " + figures + " · " + why
}

// Doubted is a line of figures, which the configuration has a part in.
func (k *Kept) Doubted(figures string) string {
	if k == nil {
		return figures
	}
	return Doubted(figures, k.Doubt)
}

// doubt marks the predictions of a hint, whose figures the configuration has a part in.
func (k *Kept) doubt(h *Hint) {
	if k == nil || k.Doubt == "" || h.Label == (Label{}) {
		return
	}
	if h.Label.Mark == "" {
		h.Label.Mark = MarkStale
	}
	h.rows = append(slices.Clip(h.rows), row{MarkStale, k.Doubt})
}
