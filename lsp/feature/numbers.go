package feature

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// row is one line of the table of numbers.
type row struct{ name, value string }

// table writes rows as aligned text: most editors show Markdown tables as they are
// written, with their bars.
func table(rows []row) string {
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.name))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s  %s\n", width, r.name, r.value)
	}
	return fenced(b.String())
}

// fenced is text, whole lines, as a block of code that nothing in it ends.
func fenced(text string) string {
	return "```text\n" + strings.ReplaceAll(text, "```", "'''") + "```\n"
}

// escape keeps formulas (b*n) from being read as emphasis.
func escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer("*", `\*`, "|", `\|`, "<", `\<`, "_", `\_`)

// exact is a size in short, and in full where short rounds.
func exact(d dim.Dim, short func(dim.Dim) string, unit string) string {
	s := short(d)
	if n, ok := d.Int(); ok && n >= 1000 {
		return s + " (" + group(n) + " " + unit + ")"
	}
	return s
}

// group writes n with thin spaces between groups of three digits.
func group(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// entryRows are the numbers of an op, the time first.
func entryRows(e *cost.Entry, f *cost.Func, m *machine.Machine) []row {
	t := e.Time(m)
	rows := timeRows(t, m, latencyOf(e, m))
	if total := f.Time(m); t.Known && total.Known && total.Ns > 0 {
		rows = append(rows, row{"share of @" + f.Func.Name, units.Percent(t.Ns, total.Ns)})
	}
	rows = append(rows, counts(e.FLOP, e.Read, e.Written)...)
	if rows = append(rows, sentRows(e.Sent())...); m != nil {
		rows = append(rows, collectiveRows(e, m)...)
	}
	return append(append(rows, row{"class", string(e.Class)}), originRows(e.Op)...)
}

// originRows is where o was traced from, none where that is not known.
func originRows(o *ir.Op) []row {
	if from := attribution.OriginText(o.Loc); from != "" {
		return []row{{"traced from", from}}
	}
	return nil
}

func counts(flop, read, written dim.Dim) []row {
	moved := read.Add(written)
	rows := []row{
		{"moved", exact(moved, units.DimBytes, "B")},
		{"read", exact(read, units.DimBytes, "B")},
		{"written", exact(written, units.DimBytes, "B")},
		{"FLOP", exact(flop, units.DimFLOP, "FLOP")},
	}
	if n, ok := flop.Int(); ok {
		if b, ok := moved.Int(); ok && b > 0 {
			rows = append(rows, row{"intensity", units.Intensity(float64(n) / float64(b))})
		}
	}
	return rows
}

// latencyOf describes the latency of e's launch, or of any where e is nil.
func latencyOf(e *cost.Entry, m *machine.Machine) string {
	if m == nil {
		return ""
	}
	if e != nil {
		if t, ok := e.TimeTerms(m); ok {
			return t.LaunchText(m)
		}
	}
	return m.LaunchText()
}

// timeRows are the rows of a time; latency describes that of its launches.
func timeRows(t cost.Time, m *machine.Machine, latency string) []row {
	if !t.Known || m == nil {
		return nil
	}
	rows := []row{{"time on " + m.Name, units.Time(t.Ns)}}
	if t.Bound != "" {
		rows = append(rows, row{"bound", t.Bound})
	}
	if t.Bound == cost.Launch {
		rows = append(rows, row{"launch", latency})
	}
	return rows
}

func funcRows(f *cost.Func, m *machine.Machine) []row {
	rows := append(timeRows(f.Time(m), m, latencyOf(nil, m)), counts(f.FLOP, f.Read, f.Written)...)
	rows = append(rows,
		row{"minimum", exact(f.Minimum(), units.DimBytes, "B")},
	)
	if f.Unknown > 0 {
		rows = append(rows, row{"waste", "not known"})
	} else {
		rows = append(rows, row{"waste", exact(f.Waste(), units.DimBytes, "B")})
	}
	switch len(f.Peaks()) {
	case 0:
		rows = append(rows, row{"peak", cost.PeakNotKnown})
	case 1:
		rows = append(rows, row{"peak", exact(f.Peak(), units.DimBytes, "B")})
	default:
		rows = append(rows, row{"peak", f.PeakFormula() + " B"})
	}
	if m != nil {
		rows = append(rows, deviceRows(f, m)...)
	}
	if free := f.Unbound(); len(free) > 0 {
		rows = append(rows, row{"depends on", strings.Join(free, ", ")})
	}
	if f.Unknown > 0 {
		rows = append(rows, row{"not counted", plural(f.Unknown, "op") + " that dmir does not know"})
	}
	return rows
}
