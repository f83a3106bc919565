package cost

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/units"
	"dmir/base/escape"
)

// ANSI parameters.
const (
	bold  = "1"
	faint = "2"
)

var boundStyle = map[string]string{Compute: "32", Memory: "33", L2: "33", Latency: "35", Launch: "35", Tail: "31", Network: "36"}

func (p *printer) paint(style, s string) string {
	s = escape.Terminal(s)
	if !p.o.Color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// The columns that are dropped, in this order, if the terminal is narrow, and
// how far.
var narrow = []struct{ column, least int }{
	{colShare, 0}, {colResult, 6}, {colFLOP, 12}, {colRead, 9}, {colWritten, 9}, {colOp, 12}, {colClass, 0}, {colResult, 0},
}

// widest bounds columns whose content has no natural limit, however much room
// there is: formulas, which take more lines instead, results of large kernels, deep
// nesting.
var widest = map[int]int{colOp: 48, colResult: 32, colFLOP: 40, colRead: 40, colWritten: 40}

// grid prints aligned columns; empty ones are left out.
func (p *printer) grid(rows []row) {
	var width [columns]int
	for i, r := range rows {
		for c, s := range r.cells {
			if i == 0 {
				continue
			}
			width[c] = max(width[c], utf8.RuneCountInString(s))
		}
	}
	for c := range width {
		if width[c] > 0 {
			width[c] = max(width[c], utf8.RuneCountInString(titles[c]))
		}
		if slices.Contains(formulas, c) {
			width[c] = min(width[c], widestFormula)
		}
		if most := widest[c]; most > 0 && (p.o.Width > 0 || !slices.Contains(formulas, c)) {
			width[c] = min(width[c], most)
		}
	}
	for _, n := range narrow {
		if over := lineWidth(width) - p.o.Width; p.o.Width > 0 && over > 0 && width[n.column] > n.least {
			width[n.column] = max(width[n.column]-over, n.least)
			if n.least == 0 {
				width[n.column] = 0
			}
		}
	}
	if width[colClass] == 0 {
		for i, r := range rows {
			if r.ofClass {
				rows[i].cells[colOp] = r.cells[colClass]
				width[colOp] = max(width[colOp], utf8.RuneCountInString(r.cells[colClass]))
			}
		}
	}
	for _, r := range rows {
		if r.rule {
			fmt.Fprintln(p.w, p.paint(faint, strings.Repeat("─", lineWidth(width))))
		}
		for _, line := range r.lines(width) {
			p.line(line, width)
		}
	}
}

// formulas are the columns that are never cut; a line has this much of one where
// there is no terminal.
var formulas = []int{colFLOP, colRead, colWritten}

const widestFormula = 80

// lines are r and, below it, what its formulas have no room for there.
func (r row) lines(width [columns]int) []row {
	out := []row{r}
	for _, c := range formulas {
		for i, part := range units.Wrap(r.cells[c], width[c]) {
			if i == len(out) {
				out = append(out, row{style: r.style})
			}
			out[i].cells[c] = part
		}
	}
	return out
}

func (p *printer) line(r row, width [columns]int) {
	var line strings.Builder
	blanks := 0
	for c, s := range r.cells {
		if width[c] == 0 {
			continue
		}
		s = truncate(s, width[c])
		pad := width[c] - utf8.RuneCountInString(s)
		if rightAligned[c] {
			blanks += pad
			pad = 0
		}
		if s != "" {
			line.WriteString(strings.Repeat(" ", blanks))
			line.WriteString(p.paint(r.style[c], s))
			blanks = 0
		}
		blanks += pad + 2
	}
	fmt.Fprintln(p.w, line.String())
}

func lineWidth(width [columns]int) int {
	total := -2
	for _, w := range width {
		if w > 0 {
			total += w + 2
		}
	}
	return total
}

// truncate cuts s to at most n characters, the last of them "…" where
// something is missing.
func truncate(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}
