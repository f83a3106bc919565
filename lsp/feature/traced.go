package feature

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	esc "dmir/base/escape"
	"dmir/dialect/op"
)

// TracedLabel is what is due to a line of a Python program for the margin: as compiled where that is known, otherwise as written.
func TracedLabel(written, compiled *attribution.Row) Label {
	r := cmp.Or(compiled, written)
	l := Label{Bytes: units.ShortBytes(r.Moved())}
	if r.TimeNs > 0 {
		l.Time = units.ShortTime(float64(r.TimeNs))
	}
	return l
}

// TracedLevel is the heat of a part of whole, of a program with so many lines.
func TracedLevel(part, whole int64, lines int) int {
	if whole <= 0 {
		return 0
	}
	return level(float64(part)/float64(whole), lines)
}

// TracedTitle is the sum of a function or a class for a lens, or of a whole program, of which it has no share.
func TracedTitle(a, total attribution.Amount, form string) string {
	text := units.Time(float64(a.TimeNs))
	if a != total {
		text += " · " + units.Percent(float64(a.TimeNs), float64(total.TimeNs)) + " of the program"
	}
	return text + " · " + units.Bytes(a.Moved()) + " moved, " + form
}

// TracedHover is what is known of a line of a Python program, as Markdown.
type TracedHover struct {
	Written, Compiled *attribution.Row // the latter may be nil
	Trace             *attribution.Trace
	Sources           *attribution.Sources
	Program           *program.Program
	Total             attribution.Amount // of the program, in the form of the row that is shown first
	Peak              int64
	Stale             string // why the figures are not of this text, or ""
}

// mostParts bounds the kernels, places and ops that a hover lists.
const mostParts = 5

// Text is the hover.
func (h *TracedHover) Text() string {
	r, form := h.Written, "as written"
	if h.Compiled != nil {
		r, form = h.Compiled, "as compiled"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**, %s of the program · %s moved · %s, %s on %s\n\n", units.Time(float64(r.TimeNs)),
		units.Percent(float64(r.TimeNs), float64(h.Total.TimeNs)), units.Bytes(r.Moved()), units.FLOP(r.FLOP), form, h.Program.Target.Title)
	b.WriteString("| | time | read | written | FLOP |\n|---|---:|---:|---:|---:|\n")
	line := func(name string, a attribution.Amount) {
		if (a != attribution.Amount{}) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, units.Time(float64(a.TimeNs)), units.Bytes(a.Read), units.Bytes(a.Written), units.FLOP(a.FLOP))
		}
	}
	if h.Compiled != nil {
		h.phases(h.Compiled, line)
		line("as written", h.Written.Amount)
	} else {
		h.phases(h.Written, line)
	}
	b.WriteByte('\n')
	for _, row := range []struct{ name, text string }{
		{"kernels", h.kernels(r)},
		{"memory", h.memory(r)},
		{"inside", h.inside(r)},
		{"ops", h.ops(h.Written)},
		{"with ops of", h.also(r)},
		{"trace", h.trace()},
		{MarkStale, h.Stale},
	} {
		if row.text != "" {
			fmt.Fprintf(&b, "- %s: %s\n", row.name, row.text)
		}
	}
	return b.String()
}

func (h *TracedHover) phases(r *attribution.Row, line func(string, attribution.Amount)) {
	if r.Phases[attribution.Backward] == (attribution.Amount{}) && r.Phases[attribution.Update] == (attribution.Amount{}) {
		line("forward", r.Amount)
		return
	}
	for p, a := range r.Phases {
		line(attribution.Phase(p).String(), a)
	}
}

// kernels are the kernels that the row has a part in, or ops that run by themselves, the longest parts first, and what bounds each.
func (h *TracedHover) kernels(r *attribution.Row) string {
	part := map[*cost.Entry]int64{}
	var steps []*cost.Entry
	for _, s := range r.Shares {
		if part[s.Step] == 0 && !slices.Contains(steps, s.Step) {
			steps = append(steps, s.Step)
		}
		part[s.Step] += s.TimeNs
	}
	slices.SortStableFunc(steps, func(a, b *cost.Entry) int { return cmp.Compare(part[b], part[a]) })
	var out []string
	for _, e := range steps[:min(len(steps), mostParts)] {
		if part[e] > 0 {
			out = append(out, h.kernel(e, part[e]))
		}
	}
	return listed(out, len(steps))
}

func (h *TracedHover) kernel(e *cost.Entry, part int64) string {
	t := e.Time(h.Program.Target)
	text := inline(stepName(e)) + " " + units.Time(float64(part))
	if whole := int64(math.Round(t.Ns)); whole > part {
		text += " of " + units.Time(t.Ns)
	}
	if t.Bound != "" {
		text += ", bound by " + t.Bound
	}
	return text
}

func stepName(e *cost.Entry) string {
	if name := e.Op.Str(op.NameAttr); name != "" {
		return name
	}
	return e.Op.Name
}

func (h *TracedHover) memory(r *attribution.Row) string {
	if r.Held == 0 || h.Peak == 0 {
		return ""
	}
	return fmt.Sprintf("its values take %s of %s at the peak", units.Bytes(r.Held), units.Bytes(h.Peak))
}

// inside are the places in libraries that the line's ops come from.
func (h *TracedHover) inside(r *attribution.Row) string {
	all := r.Library(h.Sources)
	var out []string
	for _, x := range all[:min(len(all), mostParts)] {
		path := h.Sources.File(x.Frame.File).Path
		if i := strings.LastIndex(filepath.ToSlash(path), "-packages/"); i >= 0 {
			path = path[i+len("-packages/"):]
		}
		out = append(out, fmt.Sprintf("%s in %s, %s", inline(fmt.Sprintf("%s:%d", path, x.Frame.Line)), inline(x.Frame.Function), units.Time(float64(x.TimeNs))))
	}
	return listed(out, len(all))
}

// ops are those that the line was traced to, by their names, with the lines of the program.
func (h *TracedHover) ops(r *attribution.Row) string {
	times, first := map[string]int{}, map[string]int{}
	var names []string
	for _, s := range r.Shares {
		name := s.Op.Name
		if times[name]++; times[name] == 1 {
			names = append(names, name)
			first[name], _ = h.Program.Src.Human(s.Op.Span.Start)
		}
	}
	var out []string
	for _, name := range names[:min(len(names), 2*mostParts)] {
		text := inline(name)
		if n := times[name]; n > 1 {
			text += fmt.Sprintf(" ×%d", n)
		}
		out = append(out, text+fmt.Sprintf(" (line %d)", first[name]))
	}
	text := listed(out, len(names))
	if text != "" {
		text += " of " + inline(h.Trace.Program)
	}
	return text
}

// also are other lines whose ops became part of this one's.
func (h *TracedHover) also(r *attribution.Row) string {
	all := r.Also(h.Sources)
	var out []string
	for _, place := range all[:min(len(all), 2*mostParts)] {
		out = append(out, inline(place))
	}
	return listed(out, len(all))
}

func (h *TracedHover) trace() string {
	parts := []string{inline(h.Trace.Name)}
	if h.Trace.Framework != "" {
		parts = append(parts, escape(esc.Terminal(h.Trace.Framework)))
	}
	if day, _, _ := strings.Cut(h.Trace.Created, "T"); day != "" {
		parts = append(parts, escape(esc.Terminal(day)))
	}
	return strings.Join(parts, " · ")
}

// listed is a list, and how many there are more.
func listed(list []string, all int) string {
	text := strings.Join(list, "; ")
	if n := all - len(list); n > 0 && text != "" {
		text += fmt.Sprintf("; %d more", n)
	}
	return text
}

// inline is a name as code that nothing in it ends.
func inline(name string) string { return "`" + strings.ReplaceAll(esc.Terminal(name), "`", "'") + "`" }
