package attribution

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmir/analysis/units"
)

// Change is what became of a line, a function or a module between two versions of a program.
type Change struct {
	Old, New *Row // one of them nil: only one version has it
}

// Grown is by how much longer it takes, in nanoseconds, and how many more bytes it moves.
func (c Change) Grown() (ns, bytes int64) {
	if c.New != nil {
		ns, bytes = c.New.TimeNs, c.New.Moved()
	}
	if c.Old != nil {
		ns, bytes = ns-c.Old.TimeNs, bytes-c.Old.Moved()
	}
	return ns, bytes
}

// Compare matches what old and new cost by lines, functions or modules: lines of a file by their text, wherever they moved to. It
// gives those that differ, the greatest changes of time first.
func Compare(by By, old, new *Function, in, now *Sources) []Change {
	type key struct {
		file, name string
		line       int
	}
	moved := map[*File][]int{}
	files := map[string]*File{}
	was, is := old.Rows(by, in), new.Rows(by, now)
	for _, r := range is {
		if r.File != nil {
			files[r.File.Path] = r.File
		}
	}
	keyOf := func(r *Row, line int) key {
		switch {
		case by.Tree():
			return key{name: r.Path}
		case by == ByFunction:
			return key{file: r.Name(), name: r.Function}
		}
		return key{file: r.Name(), line: line}
	}
	changes := map[key]*Change{}
	add := func(k key) *Change {
		if changes[k] == nil {
			changes[k] = &Change{}
		}
		return changes[k]
	}
	for _, r := range is {
		add(keyOf(r, r.Line)).New = r
	}
	for _, r := range was {
		line := r.Line
		if f := r.File; by == ByLine && f != nil && len(f.Lines) > 0 && files[f.Path] != nil && len(files[f.Path].Lines) > 0 {
			if moved[f] == nil {
				moved[f] = MapLines(f.Lines, files[f.Path].Lines)
			}
			if line < len(moved[f]) {
				line = moved[f][line]
			}
			if line == 0 {
				line = -r.Line // it is gone
			}
		}
		add(keyOf(r, line)).Old = r
	}
	var out []Change
	for _, c := range changes {
		if c.Old == nil || c.New == nil || c.Old.Amount != c.New.Amount {
			out = append(out, *c)
		}
	}
	row := func(c Change) *Row {
		if c.New != nil {
			return c.New
		}
		return c.Old
	}
	slices.SortFunc(out, func(a, b Change) int {
		x, n := a.Grown()
		y, m := b.Grown()
		return cmp.Or(cmp.Compare(max(y, -y), max(x, -x)), cmp.Compare(max(m, -m), max(n, -n)), inOrder(row(a), row(b)))
	})
	return out
}

// Comparison is what is printed of two versions of a function.
type Comparison struct {
	By       By
	Name     string
	Old, New *Function
	Changes  []Change
	Top      int // changes, the greatest; 0: all
}

// Text prints c; was and is are what the versions are called.
func (c *Comparison) Text(w io.Writer, l *Listing, was, is string) error {
	out := bufio.NewWriter(w)
	a, b := c.Old.Total, c.New.Total
	fmt.Fprintf(out, "@%s · %s → %s · %s → %s moved\n", c.Name, units.Time(float64(a.TimeNs)), units.Time(float64(b.TimeNs)), units.Bytes(a.Moved()), units.Bytes(b.Moved()))
	if len(c.Changes) == 0 {
		fmt.Fprintf(out, "no %s costs anything else\n", c.By)
		return out.Flush()
	}
	t := &columns{total: b, rows: [][]string{{"time", was, is, "moved", was, is, ""}}, shares: []float64{0}}
	shown := c.Changes
	if c.Top > 0 && len(shown) > c.Top {
		shown = shown[:c.Top]
	}
	for _, x := range shown {
		ns, bytes := x.Grown()
		row, old, new := x.New, Row{}, Row{}
		if x.Old != nil {
			old = *x.Old
			row = cmp.Or(row, x.Old)
		}
		if x.New != nil {
			new = *x.New
		}
		mark := "  "
		switch {
		case x.Old == nil:
			mark = "+ "
		case x.New == nil:
			mark = "- "
		}
		t.rows = append(t.rows, []string{
			signed(ns, func(n int64) string { return units.Time(float64(n)) }), units.Time(float64(old.TimeNs)), units.Time(float64(new.TimeNs)),
			signed(bytes, units.Bytes), units.Bytes(old.Moved()), units.Bytes(new.Moved()), mark + l.place(row) + l.code(row),
		})
		t.shares = append(t.shares, 0)
	}
	if n := len(c.Changes) - len(shown); n > 0 {
		t.blank(fmt.Sprintf("%d more", n))
	}
	t.flush(out, l.Color)
	return out.Flush()
}

func signed(n int64, text func(int64) string) string {
	switch {
	case n > 0:
		return "+" + text(n)
	case n < 0:
		return "−" + strings.TrimPrefix(text(-n), "-")
	}
	return "0"
}

// CompareJSON is a Comparison as data.
type CompareJSON struct {
	Name    string       `json:"name"`
	Old     Figures      `json:"old_total"`
	New     Figures      `json:"new_total"`
	Changes []ChangeJSON `json:"changes"`
	LeftOut int          `json:"changes_left_out,omitempty"` // by --top
}

// ChangeJSON is a Change; old or new is absent where only one version has it.
type ChangeJSON struct {
	Old *RowJSON `json:"old,omitempty"`
	New *RowJSON `json:"new,omitempty"`
}

// JSON is c as data; old and new are how the versions are listed.
func (c *Comparison) JSON(old, new *Listing) CompareJSON {
	r := CompareJSON{Name: c.Name, Old: figures(c.Old.Total), New: figures(c.New.Total), Changes: []ChangeJSON{}}
	shown := c.Changes
	if c.Top > 0 && len(shown) > c.Top {
		r.LeftOut = len(shown) - c.Top
		shown = shown[:c.Top]
	}
	for _, x := range shown {
		var j ChangeJSON
		if x.Old != nil {
			row := old.row(c.Old, x.Old)
			j.Old = &row
		}
		if x.New != nil {
			row := new.row(c.New, x.New)
			j.New = &row
		}
		r.Changes = append(r.Changes, j)
	}
	return r
}
