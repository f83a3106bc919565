package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dmir/analysis/units"
	"dmir/base/escape"
)

// TextOptions adjust what Text draws.
type TextOptions struct {
	Color bool // with ANSI colours
	Width int  // characters in a line of the terminal; 0 is no limit
}

// Text prints what changed: for each function that differs a row for each op
// that does, and its totals.
func (d *Diff) Text(w io.Writer, o TextOptions) error {
	out := bufio.NewWriter(w)
	if d.Same {
		escape.Fprintf(out, "no function of %s moves, computes, takes or holds anything else than in %s\n", d.New, d.Old)
		return out.Flush()
	}
	p := painter{out, o}
	same := 0
	first := true
	for _, f := range d.Functions {
		if f.Status == StatusSame {
			same++
			continue
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		p.function(f)
	}
	if same > 0 {
		fmt.Fprintf(out, "\n%s\n", p.paint(faint, "unchanged: "+count(same, "function")))
	}
	return out.Flush()
}

type painter struct {
	w io.Writer
	o TextOptions
}

// ANSI parameters.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

func (p painter) paint(style, s string) string {
	s = escape.Terminal(s)
	if !p.o.Color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// cell is a text and its style.
type cell struct{ text, style string }

// change is a cell that is green where less is needed and red where more is.
func change(d Delta) cell {
	c := cell{text: d.ChangeLabel}
	switch {
	case c.text == "0":
		c = cell{"–", faint}
	case strings.HasPrefix(c.text, "−"):
		c.style = green
	case strings.HasPrefix(c.text, "+"):
		c.style = red
	}
	return c
}

var marks = map[string]cell{StatusAdded: {"+", green}, StatusRemoved: {"-", red}, StatusChanged: {"~", ""}, StatusFused: {"-", red}, StatusUnfused: {"+", green}}

func (p painter) function(f FunctionDiff) {
	head := p.paint(bold, "@"+f.Name)
	switch {
	case f.OldName != "":
		head += p.paint("", ", before @"+f.OldName)
	case f.Status == StatusAdded || f.Status == StatusRemoved:
		head += " " + p.paint(marks[f.Status].style, f.Status)
	}
	fmt.Fprintf(p.w, "%s\n", head)
	if f.Status == StatusChanged && len(f.Ops) > 0 {
		fmt.Fprintln(p.w)
		p.ops(f.Ops)
	}
	if f.SameOps > 0 && f.Status == StatusChanged {
		fmt.Fprintf(p.w, "%s\n", p.paint(faint, "   "+count(f.SameOps, "op")+" as before"))
	}
	fmt.Fprintln(p.w)
	var rows [][]cell
	for _, q := range []struct {
		name string
		d    Delta
	}{{"moved", f.Moved}, {"minimum", f.Minimum}, {"FLOP", f.FLOP}, {"time", f.Time}, {"peak", f.Peak}, {"sent", f.Sent}} {
		if q.name == "sent" && !f.sends() {
			continue
		}
		row := []cell{{}, {q.name, ""}, {q.d.NewLabel, ""}, {}, {}}
		switch {
		case q.d.NewLabel == "":
			row[2].text = q.d.OldLabel
		case q.d.OldLabel != "" && q.d.changed():
			row[2].text = q.d.OldLabel + " → " + q.d.NewLabel
			row[3], row[4] = change(q.d), cell{q.d.PercentLabel, ""}
		}
		rows = append(rows, row)
	}
	p.grid(rows, []bool{false, false, false, true, true})
}

// sends reports whether devices send something in one of the versions.
func (f *FunctionDiff) sends() bool {
	some := func(n *int64) bool { return n != nil && *n > 0 }
	return some(f.Sent.Old) || some(f.Sent.New) || f.Sent.changed()
}

func (p painter) ops(ops []OpDiff) {
	rows := [][]cell{{{}, {"line", faint}, {"op", faint}, {"result", faint}, {"moved", faint}, {"change", faint}, {"FLOP", faint}, {"time", faint}, {"change", faint}, {}}}
	for _, o := range ops {
		moved, time := o.Moved.NewLabel, o.Time.NewLabel
		if moved == "" {
			moved, time = o.Moved.OldLabel, o.Time.OldLabel
		}
		name := strings.Repeat("  ", o.Depth) + o.Op
		note := o.Note
		if o.OldOp != "" {
			note = "before " + o.OldOp
		} else if o.OldResult != "" {
			note = "before " + o.OldResult
		}
		flop := change(o.FLOP)
		rows = append(rows, []cell{
			marks[o.Status],
			{strconv.Itoa(o.At()), faint},
			{name, ""},
			{o.Result, ""},
			{moved, ""},
			change(o.Moved), flop,
			{time, ""},
			change(o.Time),
			{note, faint},
		})
	}
	right := []bool{false, true, false, false, true, true, true, true, true, false}
	p.grid(rows, right, soft{colResult, 16}, soft{colNote, 0}, soft{colResult, 6})
}

// widest bounds a column that has no natural limit: formulas, many results.
const widest = 40

// The columns of ops that shrink if the terminal is narrow.
const (
	colResult = 3
	colNote   = 9
)

// wrapped are rows with the formulas that are wider than their column continued below.
func wrapped(rows [][]cell, width []int) [][]cell {
	var out [][]cell
	for _, r := range rows {
		lines := [][]cell{slices.Clone(r)}
		for i, c := range r {
			if !strings.Contains(c.text, " + ") || width[i] == 0 {
				continue
			}
			for k, part := range units.Wrap(c.text, width[i]) {
				if k == len(lines) {
					lines = append(lines, make([]cell, len(r)))
				}
				lines[k][i] = cell{part, c.style}
			}
		}
		out = append(out, lines...)
	}
	return out
}

// soft is a column that may shrink, and how far; one that cannot be had in full
// and may go goes.
type soft struct{ column, least int }

// grid prints aligned columns after two blanks; soft ones shrink in their
// order where the terminal is narrow.
func (p painter) grid(rows [][]cell, right []bool, soft ...soft) {
	width := make([]int, len(right))
	for _, r := range rows {
		for i, c := range r {
			width[i] = min(max(width[i], utf8.RuneCountInString(c.text)), widest)
		}
	}
	total := 0
	for _, w := range width {
		if w > 0 {
			total += w + 2
		}
	}
	for _, c := range soft {
		over := total - p.o.Width
		if p.o.Width <= 0 || over <= 0 || width[c.column] <= c.least {
			continue
		}
		before := width[c.column]
		if width[c.column] = max(before-over, c.least); c.least == 0 {
			width[c.column] = 0
		}
		total -= before - width[c.column]
	}
	for _, r := range wrapped(rows, width) {
		var line strings.Builder
		blanks := 2
		for i, c := range r {
			if width[i] == 0 {
				continue
			}
			text := cut(c.text, width[i])
			pad := width[i] - utf8.RuneCountInString(text)
			if right[i] {
				blanks += pad
				pad = 0
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", blanks) + p.paint(c.style, text))
				blanks = 0
			}
			blanks += pad + 2
		}
		fmt.Fprintln(p.w, line.String())
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
