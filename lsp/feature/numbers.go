package feature

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
)

// maxLabel bounds the labels of hints, in characters; what does not fit is in
// the tooltip.
const maxLabel = 29

// joinFitting writes the parts that fit into a label, the most telling first.
func joinFitting(parts ...string) string {
	label := ""
	for _, p := range parts {
		next := label
		if next != "" && p != "" {
			next += " · "
		}
		next += p
		if utf8.RuneCountInString(next) <= maxLabel {
			label = next
		}
	}
	return label
}

// work is the part of a label with what is computed and moved.
func work(flop, moved dim.Dim) string {
	var parts []string
	if !flop.IsZero() {
		parts = append(parts, units.DimFLOP(flop))
	}
	if !moved.IsZero() || flop.IsZero() {
		parts = append(parts, units.DimBytes(moved))
	}
	if label := joinFitting(parts...); strings.Contains(label, parts[len(parts)-1]) {
		return label
	}
	// A formula too long for the line: name what it depends on.
	free := dim.Sum(flop, moved).Symbols()
	if label := joinFitting("depends on " + strings.Join(free, ", ")); label != "" {
		return label
	}
	return fmt.Sprintf("depends on %d sizes", len(free))
}

// duration is the part of a label with the time and its bound.
func duration(t cost.Time) string {
	switch {
	case !t.Known || t.Ns == 0:
		return ""
	case t.Bound == "":
		return units.Time(t.Ns)
	}
	return units.Time(t.Ns) + " " + t.Bound
}

// row is one line of the table of numbers.
type row struct{ name, value string }

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| | |\n|:--|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.name, escape(r.value))
	}
	return b.String()
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

func entryRows(e *cost.Entry, f *cost.Func, m *machine.Machine) []row {
	rows := counts(e.FLOP, e.Read, e.Written)
	t := e.Time(m)
	rows = append(rows, timeRows(t, m)...)
	rows = append(rows, row{"class", string(e.Class)})
	if total := f.Time(m); t.Known && total.Known && total.Ns > 0 {
		rows = append(rows, row{"share of @" + escape(f.Func.Name), units.Percent(t.Ns, total.Ns)})
	}
	return rows
}

func counts(flop, read, written dim.Dim) []row {
	moved := read.Add(written)
	rows := []row{
		{"FLOP", exact(flop, units.DimFLOP, "FLOP")},
		{"read", exact(read, units.DimBytes, "B")},
		{"written", exact(written, units.DimBytes, "B")},
		{"moved", exact(moved, units.DimBytes, "B")},
	}
	if n, ok := flop.Int(); ok {
		if b, ok := moved.Int(); ok && b > 0 {
			rows = append(rows, row{"intensity", units.Intensity(float64(n) / float64(b))})
		}
	}
	return rows
}

func timeRows(t cost.Time, m *machine.Machine) []row {
	if !t.Known || m == nil {
		return nil
	}
	rows := []row{{"time on " + escape(m.Name), units.Time(t.Ns)}}
	if t.Bound != "" {
		rows = append(rows, row{"bound", t.Bound})
	}
	if t.Bound == cost.Latency {
		rows = append(rows, row{"latency", m.LaunchText()})
	}
	return rows
}

func funcRows(f *cost.Func, m *machine.Machine) []row {
	rows := counts(f.FLOP, f.Read, f.Written)
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
	rows = append(rows, timeRows(f.Time(m), m)...)
	if free := f.Unbound(); len(free) > 0 {
		rows = append(rows, row{"depends on", strings.Join(free, ", ")})
	}
	if f.Unknown > 0 {
		rows = append(rows, row{"not counted", plural(f.Unknown, "op") + " that dmir does not know"})
	}
	return rows
}
