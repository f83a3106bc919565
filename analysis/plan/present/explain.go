package present

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/plan"
	"dmir/analysis/units"
	"dmir/base/escape"
)

// Explain prints what the best plan of r consists of, and why the next one takes longer: the terms
// of both, and their differences.
func Explain(w io.Writer, r *plan.Result, o Options) {
	if len(r.Plans) == 0 {
		return
	}
	best := r.Plans[0]
	stages(w, best, o)
	if len(r.Plans) < 2 {
		return
	}
	next := r.Plans[1]
	fmt.Fprintln(w)
	why := next.Why
	if why == "" {
		why = reason(best, next)
	}
	lines(w, o, "plan 2 loses: ", why)
	fmt.Fprintln(w)
	grid(w, o, []bool{true, false, false, false}, append([][]string{{"", "plan 1", "plan 2", "difference"}}, terms(best, next)...))
}

// share is a part of the time of a step.
type share struct {
	name string
	of   func(*plan.Plan) float64
}

// shares add up to the time of a step.
var shares = []share{
	{"compute", func(p *plan.Plan) float64 { return p.Compute }},
	{"exposed communication", func(p *plan.Plan) float64 { return p.Exposed }},
	{"bubble", func(p *plan.Plan) float64 { return p.Bubble * p.Time }},
	{"other", other},
}

// other is what the rest leaves of the time of a step: waits of stages that take shorter than the
// longest one.
func other(p *plan.Plan) float64 {
	return max(p.Time-p.Compute-p.Exposed-p.Bubble*p.Time, 0)
}

// reason names the share that makes b slower than a by most.
func reason(a, b *plan.Plan) string {
	most, name := 0.0, ""
	for _, s := range shares {
		if d := s.of(b) - s.of(a); d > most {
			most, name = d, s.name
		}
	}
	if name == "" {
		return "it takes as long as the best plan"
	}
	return fmt.Sprintf("its %s takes %s more", name, seconds(most))
}

// terms are the terms of two plans and their differences.
func terms(a, b *plan.Plan) [][]string {
	rows := [][]string{{"time", seconds(a.Time), seconds(b.Time), signed(b.Time-a.Time, seconds)}}
	for _, s := range shares {
		x, y := s.of(a), s.of(b)
		if x == 0 && y == 0 {
			continue
		}
		rows = append(rows, []string{"  " + s.name, seconds(x), seconds(y), signed(y-x, seconds)})
	}
	bytes := func(x float64) string { return units.Bytes(int64(x)) }
	add := func(name string, x, y int64) {
		if x != 0 || y != 0 {
			rows = append(rows, []string{name, units.Bytes(x), units.Bytes(y), signed(float64(y-x), bytes)})
		}
	}
	add("memory", a.Memory.Total, b.Memory.Total)
	for _, part := range []struct {
		name string
		of   func(plan.Memory) int64
	}{
		{"parameters", func(m plan.Memory) int64 { return m.Parameters }},
		{"gradients", func(m plan.Memory) int64 { return m.Gradients }},
		{"optimizer states", func(m plan.Memory) int64 { return m.States }},
		{"activations", func(m plan.Memory) int64 { return m.Activations }},
		{"working", func(m plan.Memory) int64 { return m.Working }},
	} {
		add("  "+part.name, part.of(a.Memory), part.of(b.Memory))
	}
	add("sent", sent(a), sent(b))
	axes := maps.Clone(a.Sent)
	if axes == nil {
		axes = map[string]int64{}
	}
	maps.Copy(axes, b.Sent)
	for _, axis := range slices.Sorted(maps.Keys(axes)) {
		add("  along "+axis, a.Sent[axis], b.Sent[axis])
	}
	return rows
}

func signed(x float64, show func(float64) string) string {
	switch {
	case x > 0:
		return "+" + show(x)
	case x < 0:
		return "−" + show(-x)
	}
	return none
}

// stages prints what the devices at each place of a pipeline run.
func stages(w io.Writer, p *plan.Plan, o Options) {
	if len(p.Stages) < 2 {
		return
	}
	rows := [][]string{{"stage of plan 1", "from line", "layers", "forward", "backward", "sends on", "once", "memory"}}
	for i, s := range p.Stages {
		rows = append(rows, []string{
			fmt.Sprint(i), o.place(s.Line), fmt.Sprint(s.Layers), seconds(s.Forward), seconds(s.Backward), seconds(s.Transfer),
			seconds(s.Once), units.Bytes(s.Memory),
		})
	}
	fmt.Fprintln(w)
	grid(w, o, make([]bool, len(rows[0])), rows)
}

// place is line n, and where it was traced from.
func (o Options) place(n int) string {
	text := fmt.Sprint(n)
	if o.Place != nil {
		if from := o.Place(n); from != "" {
			text += ", " + from
		}
	}
	return text
}

// grid prints rows in columns, the first row as their titles; left are those that are aligned so. The
// last column takes several lines where it is one of them and the terminal has no room.
func grid(w io.Writer, o Options, left []bool, rows [][]string) {
	last := len(left) - 1
	widths := make([]int, len(left))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	used := 2 * last
	for _, n := range widths[:last] {
		used += n
	}
	room := 0
	if o.Width > 0 && left[last] {
		room = max(o.Width-used, 20)
	}
	for i, row := range rows {
		var b strings.Builder
		for k, cell := range row[:last] {
			b.WriteString(aligned(cell, widths[k], left[k]) + "  ")
		}
		rest := []string{aligned(row[last], widths[last], false)}
		if left[last] {
			rest = units.Wrap(row[last], room)
		}
		style := ""
		if i == 0 {
			style = faint
		}
		for k, part := range rest {
			head := b.String()
			if k > 0 {
				head = strings.Repeat(" ", used)
			}
			fmt.Fprintln(w, o.paint(style, escape.Terminal(strings.TrimRight(head+part, " "))))
		}
	}
}

// aligned is a cell with blanks to a width.
func aligned(cell string, width int, left bool) string {
	pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if left {
		return cell + pad
	}
	return pad + cell
}
