package present

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/syntax/diag"
)

// Options adjust tables and charts.
type Options struct {
	Color bool // with ANSI colours
	Width int  // characters in a line of the terminal; 0 is no limit

	// Place is where line n of the program's text was traced from, "" where that is not known; may be nil.
	Place func(n int) string
}

const (
	faint = "2"
	bold  = "1"
)

func (o Options) paint(style, s string) string {
	if !o.Color || style == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// column is a column of a table. One with a lower rank is left out sooner where the terminal has
// less room.
type column struct {
	title string
	left  bool
	rank  int
	cell  func(*plan.Plan) string
}

// columns are those of the plans of r; what is the same for all, since there is no pipeline, is left out.
func columns(r *plan.Result) []column {
	any := func(f func(*plan.Plan) bool) bool { return slices.ContainsFunc(r.Plans, f) }
	cols := []column{
		{title: "time", rank: 9, cell: func(p *plan.Plan) string { return seconds(p.Time) }},
		{title: unit(r) + "s/s", rank: 6, cell: func(p *plan.Plan) string { return units.Count(perSecond(r, p)) }},
		{title: "MFU", rank: 5, cell: func(p *plan.Plan) string { return percent(p.MFU) }},
		{title: "memory", rank: 8, cell: func(p *plan.Plan) string { return units.Bytes(p.Memory.Total) }},
		{title: "sent", rank: 3, cell: func(p *plan.Plan) string { return units.Bytes(sent(p)) }},
	}
	if any(func(p *plan.Plan) bool { return len(p.Stages) > 1 }) {
		cols = append(cols,
			column{title: "bubble", rank: 4, cell: func(p *plan.Plan) string { return percent(p.Bubble) }},
			column{title: "stages", rank: 1, cell: func(p *plan.Plan) string { return count(len(p.Stages)) }})
	}
	if any(func(p *plan.Plan) bool { return p.Microbatches > 1 }) {
		cols = append(cols, column{title: "micro-batches", rank: 2, cell: func(p *plan.Plan) string { return count(p.Microbatches) }})
	}
	if any(func(p *plan.Plan) bool { return p.Schedule != "" }) {
		cols = append(cols, column{title: "schedule", left: true, rank: 7, cell: schedule})
	}
	if any(func(p *plan.Plan) bool { return p.Recompute != "" && p.Recompute != "none" }) {
		cols = append(cols, column{title: "recompute", left: true, rank: 2, cell: func(p *plan.Plan) string { return p.Recompute }})
	}
	return cols
}

// Table prints what the step of r is, its plans in the order of their time, and how far the best
// one may be from the best of the space.
func Table(w io.Writer, m *machine.Machine, r *plan.Result, o Options) {
	heading(w, m, r, o)
	plans(w, r, o)
	if len(r.Plans) == 0 {
		return
	}
	best := r.Plans[0]
	fmt.Fprintln(w)
	lines(w, o, "best: ", fmt.Sprintf("%s; %s a step", Sentence(best), seconds(best.Time)))
	lines(w, o, "bound: ", fmt.Sprintf("%s (%s)", Optimality(r), diag.Count(r.Searched, "setting")))
	if r.Modelled != "" {
		lines(w, o, "figures: ", "those of the model of the search, not of the compiled text: "+r.Modelled)
	}
}

func heading(w io.Writer, m *machine.Machine, r *plan.Result, o Options) {
	fmt.Fprint(w, o.paint(bold, escape.Terminal("@"+strings.TrimPrefix(r.Function, "@"))))
	escape.Fprintf(w, " on %d × %s of %s · %s\n\n", r.Devices, m.Title, units.Bytes(r.Limit), Headline(r))
	batch(w, r, o)
	if text := Stages(r); text != "" {
		lines(w, o, "stages: ", text)
		fmt.Fprintln(w)
	}
}

// batch says which arguments have samples, where others may be meant to.
func batch(w io.Writer, r *plan.Result, o Options) {
	if text := Batch(r); text != "" {
		lines(w, o, "batch: ", text)
		fmt.Fprintln(w)
	}
}

// plans prints two lines for each plan: figures, and what it does in words.
func plans(w io.Writer, r *plan.Result, o Options) {
	cols := columns(r)
	rows := make([][]string, len(r.Plans)+1)
	rows[0] = []string{"plan"}
	for i := range r.Plans {
		rows[i+1] = []string{fmt.Sprint(i + 1)}
	}
	for _, c := range cols {
		rows[0] = append(rows[0], c.title)
		for i, p := range r.Plans {
			rows[i+1] = append(rows[i+1], c.cell(p))
		}
	}
	widths := make([]int, len(cols)+1)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	left, hidden := fit(cols, widths, o.Width)
	for i, row := range rows {
		var b strings.Builder
		for k, cell := range row {
			if k > 0 && left[k-1] {
				continue
			}
			if k > 0 {
				b.WriteString("  ")
			}
			b.WriteString(aligned(cell, widths[k], k > 0 && cols[k-1].left))
		}
		style := ""
		if i == 0 {
			style = faint
		} else if i == 1 {
			style = bold
		}
		fmt.Fprintln(w, o.paint(style, escape.Terminal(strings.TrimRight(b.String(), " "))))
		if i > 0 {
			lines(w, o, strings.Repeat(" ", widths[0]+2), Sentence(r.Plans[i-1]))
		}
	}
	if len(hidden) > 0 {
		escape.Fprintf(w, "\nnot shown here: %s\n", strings.Join(hidden, ", "))
	}
}

// fit is which columns are left out so that a line is not wider than width, and their titles.
func fit(cols []column, widths []int, width int) (out []bool, hidden []string) {
	out = make([]bool, len(cols))
	total := widths[0]
	for _, n := range widths[1:] {
		total += n + 2
	}
	for width > 0 && total > width && len(hidden) < len(cols)-1 {
		least := -1
		for i, c := range cols {
			if !out[i] && (least < 0 || c.rank < cols[least].rank) {
				least = i
			}
		}
		out[least] = true
		total -= widths[least+1] + 2
		hidden = append(hidden, cols[least].title)
	}
	return out, hidden
}

// lines prints a text in lines of the width of the terminal, the first one behind a head and the
// others below it.
func lines(w io.Writer, o Options, head, text string) {
	n := utf8.RuneCountInString(head)
	width := 0
	if o.Width > 0 {
		width = max(o.Width-n, 20)
	}
	for i, line := range units.Wrap(text, width) {
		if i > 0 {
			head = strings.Repeat(" ", n)
		}
		escape.Fprintf(w, "%s%s\n", head, line)
	}
}
