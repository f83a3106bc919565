package cost

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// TableOptions adjust what Table draws.
type TableOptions struct {
	Color    bool             // with ANSI colours
	Width    int              // characters in a line of the terminal; 0 is no limit
	Measured map[*ir.Op]int64 // nanoseconds that ops took in a run; a column where not nil
	Device   string           // on which they ran
	Order    Order

	// Compiled gives the figures of a function as it is compiled, shown below those as written, or why
	// there are none; nil: nothing is shown.
	Compiled func(*Func) (Figures, error)
}

// Table prints the cost of each function: one row for each op, totals by class
// and of the function, and what the function could do without.
func Table(w io.Writer, m *machine.Machine, funcs []*Func, o TableOptions) error {
	out := bufio.NewWriter(w)
	for i, f := range funcs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p := printer{w: out, m: m, f: f.PerDevice(), o: o, t: timer{m}}
		p.print()
		if o.Compiled == nil || f.planned() {
			continue
		}
		if err := out.Flush(); err != nil { // a plan may take long
			return err
		}
		p.compiled(o.Compiled(f))
	}
	return out.Flush()
}

type printer struct {
	w io.Writer
	m *machine.Machine
	f *Func
	o TableOptions
	t timer
}

// The columns of the table.
const (
	colLine = iota
	colOp
	colResult
	colClass
	colFLOP
	colRead
	colWritten
	colSent
	colTime
	colBound
	colMeasured
	colShare
	columns
)

var titles = [columns]string{"line", "op", "result", "class", "FLOP", "read", "written", "sent", "time", "bound", "measured", "share of time"}

var rightAligned = [columns]bool{colLine: true, colFLOP: true, colRead: true, colWritten: true, colSent: true, colTime: true, colMeasured: true}

type row struct {
	cells [columns]string
	style [columns]string // ANSI parameters, "" for none
	rule  bool            // a line across the table stands above

	ofClass bool // sums up a class, which takes the op's place where classes have no column
}

func (p *printer) print() {
	p.heading()
	rows := []row{{cells: titles}}
	for c := range rows[0].style {
		rows[0].style[c] = faint
	}
	total := p.f.serial(p.m)
	shown, left := p.o.Order.of(p.f.Entries, p.t)
	for _, e := range shown {
		rows = p.entry(rows, e, 0, total)
	}
	if left > 0 {
		var r row
		r.cells[colOp], r.style[colOp] = "… "+ops(left)+" more", faint
		rows = append(rows, r)
	}
	rows = p.totals(rows, total)
	p.grid(rows)
	p.summary()
}

func (p *printer) heading() {
	fmt.Fprint(p.w, p.paint(bold, "@"+p.f.Func.Name))
	if p.m != nil {
		escape.Fprintf(p.w, " on %s · %s", p.m.Title, Reached(p.m.Reach(), p.m.Bandwidth, units.Bandwidth))
		for _, c := range slices.Backward(p.m.Caches) {
			escape.Fprintf(p.w, " · %s in %s", units.Bandwidth(c.Bandwidth), c.Name)
		}
		if e, rate, peak := p.peak(); rate > 0 {
			fmt.Fprintf(p.w, " · %s in %s", Reached(rate, peak, units.Rate), e)
		}
	}
	fmt.Fprint(p.w, "\n\n")
}

// peak is the highest rate among the units and element types that f computes on.
func (p *printer) peak() (name string, rate, peak float64) {
	p.f.Walk(func(e *Entry) {
		if !e.Known || e.FLOP.IsZero() || !e.Elem.IsFloat() || e.callee != nil || len(e.Inner) > 0 {
			return
		}
		if r := p.m.Rate(e.Class == op.ClassContraction, e.Elem, path(e.Op)); r > rate {
			name, rate, peak = e.Elem.String(), r, p.m.Peak(e.Class == op.ClassContraction, e.Elem)
		}
	})
	return name, rate, peak
}

// Reached is the rate that times are computed with: what was measured "of" what
// the datasheet states, where they differ.
func Reached(rate, peak float64, show func(float64) string) string {
	if rate == peak {
		return show(rate)
	}
	have, of := show(rate), show(peak)
	if number, unit, ok := strings.Cut(have, " "); ok && strings.HasSuffix(of, " "+unit) {
		have = number
	}
	return have + " of " + of
}

func (p *printer) entry(rows []row, e *Entry, depth int, total Time) []row {
	var r row
	if n := e.Line(); n > 0 {
		r.cells[colLine] = strconv.Itoa(n)
	}
	r.cells[colOp] = strings.Repeat("  ", depth) + e.Op.Name
	if n, ok := e.Trips.Int(); !ok || n != 1 {
		r.cells[colOp] += " ×" + e.Trips.String()
	}
	r.cells[colResult] = resultNames(e.Op)
	r.style[colLine] = faint
	switch {
	case !e.Known && len(e.Inner) == 0:
		r.cells[colClass] = "unknown"
		r.style[colClass] = faint
	case e.inside:
		if !e.FLOP.IsZero() {
			r.cells[colFLOP] = units.DimFLOP(e.FLOP)
		}
		for c := range r.style {
			r.style[c] = faint
		}
	default:
		r.cells[colClass] = string(e.Class)
		p.numbers(&r, e.FLOP, e.Read, e.Written)
		p.timing(&r, p.t.entry(e), total)
		p.sent(&r, []*Entry{e})
	}
	if p.o.Measured != nil {
		if ns, ok := p.o.Measured[e.Op]; ok {
			r.cells[colMeasured] = units.Time(float64(ns))
		}
	}
	rows = append(rows, r)
	for _, i := range e.Inner {
		rows = p.entry(rows, i, depth+1, total)
	}
	return rows
}

const none = "–"

func (p *printer) numbers(r *row, flop, read, written dim.Dim) {
	for c, s := range map[int]string{colFLOP: units.DimFLOP(flop), colRead: units.DimBytes(read), colWritten: units.DimBytes(written)} {
		r.cells[c] = s
	}
	for c, d := range map[int]dim.Dim{colFLOP: flop, colRead: read, colWritten: written} {
		if d.IsZero() {
			r.cells[c], r.style[c] = none, faint
		}
	}
}

func (p *printer) timing(r *row, t, total Time) {
	if p.m == nil {
		return
	}
	switch {
	case !t.Known:
		r.cells[colTime] = "?"
	case t.Ns == 0:
		r.cells[colTime], r.style[colTime] = none, faint
	default:
		r.cells[colTime], r.cells[colBound] = units.Time(t.Ns), t.Bound
		r.style[colBound] = boundStyle[t.Bound]
		if total.Known && total.Ns > 0 {
			r.cells[colShare] = bar(t.Ns/total.Ns) + " " + units.Percent(t.Ns, total.Ns)
			r.style[colShare] = boundStyle[t.Bound]
		}
	}
}

const barCells = 20

// bar is a horizontal bar, 20 cells for 1, in eighths of a cell.
func bar(share float64) string {
	eighths := min(max(int(share*barCells*8+0.5), 1), barCells*8)
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s + strings.Repeat(" ", barCells-(eighths+7)/8)
}

// totals adds a row for each class, strongest first, and one for the function.
func (p *printer) totals(rows []row, all Time) []row {
	byClass := map[op.Class][]*Entry{}
	for _, e := range p.f.Entries {
		byClass[e.Class] = append(byClass[e.Class], e)
	}
	first := true
	if len(byClass) > 1 {
		for _, class := range []op.Class{op.ClassContraction, op.ClassNormalization, op.ClassElementwise, op.ClassMovement} {
			if len(byClass[class]) == 0 {
				continue
			}
			t := sum(byClass[class])
			r := row{rule: first, ofClass: true}
			r.cells[colOp] = ops(len(byClass[class]))
			r.cells[colClass] = string(class)
			p.numbers(&r, t.flop, t.read, t.written)
			p.timing(&r, p.t.sum(byClass[class]), all)
			p.sent(&r, byClass[class])
			p.measured(&r, byClass[class])
			rows, first = append(rows, r), false
		}
	}
	r := row{rule: true}
	r.cells[colOp] = "total"
	p.numbers(&r, p.f.FLOP, p.f.Read, p.f.Written)
	p.timing(&r, p.f.Time(p.m), Time{})
	p.sent(&r, p.f.Entries)
	p.measured(&r, p.f.Entries)
	for c := range r.style {
		r.style[c] = bold
	}
	return append(rows, r)
}

// sent fills in what a device sends to run entries.
func (p *printer) sent(r *row, entries []*Entry) {
	t := &sentTally{known: true}
	for _, e := range entries {
		t.entry(e, 1)
	}
	switch n := TotalSent(t.sent); {
	case !t.known:
		r.cells[colSent] = "?"
	case n > 0:
		r.cells[colSent] = units.Bytes(n)
	}
}

func (p *printer) measured(r *row, entries []*Entry) {
	var ns int64
	for _, e := range entries {
		ns += p.o.Measured[e.Op]
	}
	if ns > 0 {
		r.cells[colMeasured] = units.Time(float64(ns))
	}
}
