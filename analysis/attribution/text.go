package attribution

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/dialect/loc"
	"dmir/dialect/train"
)

// Listing is what is printed of functions.
type Listing struct {
	By        By
	Target    string // the machine's title
	Level     string // "as written" or "as compiled"
	Functions []*Function
	Sources   *Sources
	Top       int // rows, the heaviest; 0: all, lines in the order of the source
	Color     bool
}

// around is how many lines of a function without cost are shown in one piece; longer ones are cut.
const around = 3

// Text prints l.
func (l *Listing) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	for i, f := range l.Functions {
		if i > 0 {
			fmt.Fprintln(out)
		}
		l.heading(out, f)
		rows := f.Rows(l.By, l.Sources)
		t := newColumns(f, rows)
		switch {
		case l.By.Tree() && l.Top == 0:
			l.tree(out, t, rows)
		case l.By == ByLine && l.Top == 0:
			l.source(out, t, rows)
		default:
			l.list(out, t, rows)
		}
		t.flush(out, l.Color)
		l.notes(out, f, rows)
	}
	return out.Flush()
}

func (l *Listing) heading(w io.Writer, f *Function) {
	escape.Fprintf(w, "@%s on %s, %s · %s · %s · %s moved", f.Name, l.Target, l.Level, units.Time(float64(f.Total.TimeNs)), units.FLOP(f.Total.FLOP), units.Bytes(f.Total.Moved()))
	if f.Total.Sent > 0 {
		fmt.Fprintf(w, " · %s sent", units.Bytes(f.Total.Sent))
	}
	if f.Held != nil {
		fmt.Fprintf(w, " · %s held at the peak, %s of it by arguments and constants", units.Bytes(f.Peak), units.Bytes(f.Given))
	}
	fmt.Fprintln(w)
}

// notes say what figures do not show by themselves.
func (l *Listing) notes(w io.Writer, f *Function, rows []*Row) {
	var lost, added Amount
	shared := false
	for _, r := range rows {
		shared = shared || r.Shared
		if l.By.Tree() || r.File != nil {
			continue
		}
		for _, x := range r.Shares {
			if slices.ContainsFunc(loc.TraceOf(x.Loc).Scopes, train.Added) {
				added = added.Plus(x.Amount)
			} else {
				lost = lost.Plus(x.Amount)
			}
		}
	}
	if shared {
		fmt.Fprintf(w, "+ shares ops or kernels with other %ss; they are divided by what each would compute and move alone\n", l.By)
	}
	if added.TimeNs > 0 {
		fmt.Fprintf(w, "%s of the time is the loss and the optimizer, which dmir adds to the model: no line\n",
			units.Percent(float64(added.TimeNs), float64(f.Total.TimeNs)))
	}
	if lost.TimeNs > 0 || lost.Moved() > 0 {
		fmt.Fprintf(w, "%s of the time is due to ops without a line: JAX writes lines with lowered.as_text(debug_info=True), PyTorch with torch.onnx.export(…, dynamo=True)\n",
			units.Percent(float64(lost.TimeNs), float64(f.Total.TimeNs)))
	}
}

// list is a row after the other.
func (l *Listing) list(w io.Writer, t *columns, rows []*Row) {
	shown := rows
	if l.Top > 0 && len(rows) > l.Top {
		shown = rows[:l.Top]
	}
	for _, r := range shown {
		t.add(r, l.place(r)+l.code(r))
	}
	if n := len(rows) - len(shown); n > 0 {
		var rest Row
		for _, r := range rows[len(shown):] {
			rest.Add(r)
		}
		t.add(&rest, fmt.Sprintf("%d more", n))
	}
}

// place is what the row is of.
func (l *Listing) place(r *Row) string {
	switch {
	case l.By.Tree():
		return moduleName(r.Path, r.Class)
	case r.File == nil:
		return "no line"
	case l.By == ByFunction && r.Line > 0:
		return fmt.Sprintf("%s:%d %s", r.File.Path, r.Line, r.Function)
	case l.By == ByFunction:
		return r.File.Path + " " + r.Function
	}
	return fmt.Sprintf("%s:%d", r.File.Path, r.Line)
}

func moduleName(path, class string) string {
	name := path
	if name == "" {
		name = "the program itself"
	}
	if class != "" {
		name += " (" + class + ")"
	}
	return name
}

func (l *Listing) code(r *Row) string {
	if l.By != ByLine {
		return ""
	}
	if text := strings.TrimSpace(r.File.Text(r.Line)); text != "" {
		return "  " + text
	}
	if r.File != nil && r.Function != "" {
		return "  in " + r.Function
	}
	return ""
}

// source is the text of the functions that have lines with a cost, each line with what is due to it.
func (l *Listing) source(w io.Writer, t *columns, rows []*Row) {
	byFile := map[*File][]*Row{}
	var files []*File
	var none []*Row
	for _, r := range rows {
		if r.File == nil || len(r.File.Lines) == 0 {
			none = append(none, r)
			continue
		}
		if byFile[r.File] == nil {
			files = append(files, r.File)
		}
		byFile[r.File] = append(byFile[r.File], r)
	}
	slices.SortFunc(files, func(a, b *File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		t.title(f.Path)
		at := map[int]*Row{}
		for _, r := range byFile[f] {
			at[r.Line] = r
		}
		last := 0
		for _, n := range l.shown(f, at) {
			if last > 0 && n > last+1 {
				t.title("")
			}
			last = n
			code := fmt.Sprintf("%4d  %s", n, strings.ReplaceAll(f.Text(n), "\t", "    "))
			if r := at[n]; r != nil {
				t.add(r, code)
			} else {
				t.blank(code)
			}
		}
		for _, r := range byFile[f] { // lines that the text does not have
			if r.Line < 1 || r.Line > len(f.Lines) {
				t.add(r, fmt.Sprintf("%4d", r.Line))
			}
		}
	}
	if len(none) > 0 {
		if len(files) > 0 {
			t.title("other places")
		}
		for _, r := range none {
			t.add(r, l.place(r)+l.code(r))
		}
	}
}

// shown are the numbers of the lines of f to print: those with a cost, the lines near them, and the heads of the functions around.
func (l *Listing) shown(f *File, at map[int]*Row) []int {
	want := map[int]bool{}
	for n := range at {
		if n < 1 || n > len(f.Lines) {
			continue
		}
		from, to := n, n
		for _, s := range f.Scopes() {
			if s.Line <= n && n <= s.End {
				want[s.Line] = true
				if !s.Class {
					from, to = max(s.Line, n-around), min(s.End, n+around)
				}
			}
		}
		for k := from; k <= to; k++ {
			want[k] = true
		}
	}
	var out []int
	for n := range want {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// tree is the modules, each with what is in it.
func (l *Listing) tree(w io.Writer, t *columns, rows []*Row) {
	root := Tree(rows)
	var walk func(n *Node, depth int)
	walk = func(n *Node, depth int) {
		t.add(&n.All, strings.Repeat("  ", depth)+moduleName(n.Label, n.Class))
		for _, c := range n.Children {
			walk(c, depth+1)
		}
	}
	walk(root, 0)
}

// columns are a table that is being made: of each row the figures and the text behind them.
type columns struct {
	total  Amount
	train  bool
	held   bool
	sent   bool
	rows   [][]string // the last cell is the text; nil cells: a title
	shares []float64
}

func newColumns(f *Function, rows []*Row) *columns {
	t := &columns{total: f.Total, held: f.Held != nil, sent: f.Total.Sent > 0}
	for _, r := range rows {
		t.train = t.train || r.Phases[Backward] != (Amount{})
	}
	head := []string{"time", ""}
	if t.train {
		head = append(head, "forward", "backward", "update")
	}
	head = append(head, "FLOP", "moved")
	if t.sent {
		head = append(head, "sent")
	}
	if t.held {
		head = append(head, "held")
	}
	t.rows, t.shares = append(t.rows, append(head, "")), append(t.shares, 0)
	return t
}

func (t *columns) add(r *Row, text string) {
	time := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return units.Time(float64(ns))
	}
	bytes := func(n int64) string {
		if n == 0 {
			return ""
		}
		return units.Bytes(n)
	}
	share := 0.0
	if t.total.TimeNs > 0 {
		share = float64(r.TimeNs) / float64(t.total.TimeNs)
	}
	percent := ""
	if r.TimeNs > 0 {
		percent = units.Percent(float64(r.TimeNs), float64(t.total.TimeNs))
	}
	cells := []string{time(r.TimeNs), percent}
	if t.train {
		for _, p := range r.Phases {
			cells = append(cells, time(p.TimeNs))
		}
	}
	flop := ""
	if r.FLOP > 0 {
		flop = units.FLOP(r.FLOP)
	}
	cells = append(cells, flop, bytes(r.Moved()))
	if t.sent {
		cells = append(cells, bytes(r.Sent))
	}
	if t.held {
		cells = append(cells, bytes(r.Held))
	}
	mark := "  "
	if r.Shared {
		mark = "+ "
	}
	t.rows, t.shares = append(t.rows, append(cells, mark+text)), append(t.shares, share)
}

func (t *columns) blank(text string) {
	cells := make([]string, len(t.rows[0]))
	cells[len(cells)-1] = "  " + text
	t.rows, t.shares = append(t.rows, cells), append(t.shares, 0)
}

func (t *columns) title(text string) {
	t.rows, t.shares = append(t.rows, []string{text}), append(t.shares, 0)
}

// heavy is the share from which a row is drawn bold.
const heavy = 0.1

func (t *columns) flush(w io.Writer, color bool) {
	width := make([]int, len(t.rows[0]))
	for _, r := range t.rows {
		for i := 0; i < len(r)-1; i++ {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	for k, r := range t.rows {
		var b strings.Builder
		if len(r) == 1 {
			b.WriteString(r[0])
		} else {
			for i, c := range r[:len(r)-1] {
				if width[i] > 0 {
					b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)) + c + "  ")
				}
			}
			b.WriteString(r[len(r)-1])
		}
		line := escape.Terminal(strings.TrimRight(b.String(), " "))
		if color && t.shares[k] >= heavy {
			line = "\x1b[1m" + line + "\x1b[0m"
		}
		fmt.Fprintln(w, line)
	}
}

// Node is a module in the tree of modules.
type Node struct {
	Label, Path, Class string
	All                Row // with what is in it
	Children           []*Node
}

// Tree is the modules of rows by their paths, which have "/" and "." between their parts.
func Tree(rows []*Row) *Node {
	root := &Node{}
	nodes := map[string]*Node{"": root}
	var node func(path string) *Node
	node = func(path string) *Node {
		if n := nodes[path]; n != nil {
			return n
		}
		cut := strings.LastIndexAny(path, "/.")
		n := &Node{Path: path, Label: path[cut+1:]}
		nodes[path] = n
		up := node(path[:max(cut, 0)])
		up.Children = append(up.Children, n)
		return n
	}
	for _, r := range rows {
		n := node(r.Path)
		n.Class = cmp.Or(n.Class, r.Class)
		for path := r.Path; ; path = path[:max(strings.LastIndexAny(path, "/."), 0)] {
			node(path).All.Add(r)
			if path == "" {
				break
			}
		}
	}
	for _, n := range nodes {
		slices.SortFunc(n.Children, func(a, b *Node) int {
			return cmp.Or(cmp.Compare(b.All.TimeNs, a.All.TimeNs), natural(a.Label, b.Label))
		})
	}
	return root
}

// natural compares names, numbers as such.
func natural(a, b string) int {
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	if err1 == nil && err2 == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}
