package llvm

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// rows is the scheme of a kernel with reductions over rows or columns. A task has
// some of the rows, in which it computes the reductions along the row one pass after
// the other while the row is in cache, and accumulates those over the rows; without
// passes it may have some of the columns only. Where several tasks share the rows,
// later launches combine what each has accumulated, in order.
type rows struct {
	f       *kernel.Form // with V neighbours
	parts   int64        // tasks that share the rows
	deep    int64        // rows of a task
	blocks  int64        // tasks that share the columns
	wide    int64        // columns of a task
	columns []*assemble.Temp
	totals  []*assemble.Temp
	// held are, by pass, expressions that it computes and keeps for later ones and for
	// what is stored.
	held [][]*kernel.Expr
}

// blockColumns is the number of columns of a task that accumulates over the rows
// alone, so that its sums stay in the first-level cache.
const blockColumns = 2048

// part is the number of elements of a task that keeps partial sums in memory.
const part = 64 << 10

// mostParts bounds the tasks that share the rows where partial sums are in memory.
const mostParts = 32

func newRows(f *kernel.Form) (*rows, error) {
	f, err := columnNeighbours(f)
	if err != nil {
		return nil, err
	}
	p := &rows{f: f, blocks: 1, wide: f.Rows.Cols}
	r, n := f.Rows, f.Nest
	if len(n.Passes) == 0 && f.V == r.Cols && r.Cols > blockColumns && len(n.Totals) == 0 && len(p.outs(kernel.PerRow)) == 0 {
		p.wide = blockColumns
		p.blocks = ceil(r.Cols, p.wide)
	}
	p.deep = max(1, min(r.Rows, task/max(1, min(p.wide, task))))
	sums := len(n.Columns)+len(n.Totals) > 0
	if p.parts = ceil(r.Rows, p.deep); sums {
		p.parts = min(p.parts, max(1, min(mostParts, r.Rows*r.Cols/part/p.blocks)))
		if p.blocks >= mostParts {
			p.parts = 1
		}
		p.deep = ceil(r.Rows, p.parts)
		p.parts = ceil(r.Rows, p.deep)
	}
	if sums && p.parts > 1 {
		for _, x := range n.Columns {
			p.columns = append(p.columns, &assemble.Temp{Elem: kept(x.Elem), N: p.parts * r.Cols})
		}
		for _, x := range n.Totals {
			p.totals = append(p.totals, &assemble.Temp{Elem: kept(x.Elem), N: p.parts})
		}
	}
	p.held = p.shared()
	return p, nil
}

// columnNeighbours is f with the number of neighbouring columns whose indices have the
// fewest divisions.
func columnNeighbours(f *kernel.Form) (*kernel.Form, error) {
	if f.Rows.Cols == 1 {
		return f, nil
	}
	xs, at := alongRow(f)
	return widest(f.Rows.Cols, divisions(xs, at, f.Rows.Col), f, func(w int64) (*kernel.Form, map[*kernel.Atom]bool, error) {
		g, err := f.Widen(w, 0)
		if err != nil {
			return nil, nil, err
		}
		xs, at := alongRow(g)
		return g, divisions(xs, at, g.Lane), nil
	})
}

// alongRow are the expressions and the indices of f that are evaluated for each column.
func alongRow(f *kernel.Form) (xs []*kernel.Expr, at []kernel.Index) {
	xs = bodiesOf(slices.Concat(append(slices.Clone(f.Nest.Passes), f.Nest.Columns)...))
	for _, o := range f.Outs {
		if o.Level == kernel.PerElement || o.Level == kernel.PerColumn {
			xs, at = append(xs, o.Exprs()...), append(at, o.At)
		}
	}
	return xs, at
}

// outs are the results at some levels.
func (p *rows) outs(levels ...kernel.Level) (out []kernel.Out) {
	for _, o := range p.f.Outs {
		if slices.Contains(levels, o.Level) {
			out = append(out, o)
		}
	}
	return out
}

// mostHeld bounds the bytes of a row's values that are kept between passes.
const mostHeld = 1 << 20

// shared are, by pass, the expressions of each column that it evaluates and that a
// later pass or what is stored needs again, as far as they cost more than reading
// them back.
func (p *rows) shared() [][]*kernel.Expr {
	f := p.f
	held := make([][]*kernel.Expr, len(f.Nest.Passes))
	first, taken, bytes := map[*kernel.Expr]int{}, map[*kernel.Expr]bool{}, int64(0)
	var find func(x *kernel.Expr)
	find = func(x *kernel.Expr) {
		perColumn := slices.ContainsFunc([]*kernel.Atom{f.Rows.Col, f.Lane}, func(a *kernel.Atom) bool { return a != nil && x.DependsOn(a) })
		if !perColumn || taken[x] || x.Op == kernel.Reduce && x.Over != kernel.OwnLoop {
			return
		}
		if pass, ok := first[x]; ok && effort(x) >= 4 {
			if n := kept(x.Elem).Bytes() * f.Rows.Cols; bytes+n <= mostHeld {
				bytes += n
				taken[x] = true
				held[pass] = append(held[pass], x)
				return
			}
		}
		for _, a := range x.Args {
			find(a)
		}
	}
	for i, pass := range f.Nest.Passes {
		for _, x := range pass {
			find(x.Args[0])
		}
		for _, x := range pass {
			unguarded(x.Args[0], i, first)
		}
	}
	for _, o := range p.outs(kernel.PerElement) {
		find(o.X)
	}
	for _, x := range f.Nest.Columns {
		find(x.Args[0])
	}
	return held
}

// unguarded notes the parts of x that pass i evaluates for every column, unless an
// earlier one does.
func unguarded(x *kernel.Expr, i int, first map[*kernel.Expr]int) {
	if _, known := first[x]; known || x.Op == kernel.Reduce && x.Over != kernel.OwnLoop {
		return
	}
	first[x] = i
	if x.Op == kernel.Guard || x.Op == kernel.Reduce {
		return
	}
	for _, a := range x.Args {
		unguarded(a, i, first)
	}
}

// effort is about the number of instructions that x takes for each element.
func effort(x *kernel.Expr) int {
	n := 0
	kernel.WalkOutside(x, func(x *kernel.Expr) {
		switch x.Op {
		case kernel.Number, kernel.Acc:
		case kernel.Load, "add", "sub", "mul", "max", "min", "compare", "select", "convert", "and", "or", "not", "neg", "abs", "relu":
			n++
		case kernel.Reduce:
			n += 50
		default:
			n += 8
		}
	})
	return n
}

func (p *rows) temps() []*assemble.Temp { return slices.Concat(p.columns, p.totals) }

func (p *rows) launches() ([]*launch, error) {
	f := p.f
	levels := []kernel.Level{kernel.PerElement, kernel.PerRow}
	if len(p.temps()) == 0 {
		levels = append(levels, kernel.PerColumn, kernel.PerKernel)
	}
	outs := p.outs(levels...)
	xs := append(exprsOf(outs), slices.Concat(append(slices.Clone(f.Nest.Passes), f.Nest.Columns, f.Nest.Totals)...)...)
	ps := newParams()
	ps.reads(loads(xs...))
	ps.writes(values(outs), nil)
	for _, t := range p.temps() {
		ps.temp("partial", t, artifact.Out)
	}
	l := newLaunch("", f.Class, p.parts*p.blocks, ps.list, p.write)
	for _, x := range slices.Concat(p.held...) {
		l.Scratch += scratchBytes(kept(x.Elem), f.Rows.Cols)
	}
	for _, x := range f.Nest.Columns {
		l.Scratch += scratchBytes(kept(x.Elem), p.wide)
	}
	all := []*launch{l}
	if len(p.columns) > 0 {
		all = append(all, p.finish("_columns", p.outs(kernel.PerColumn), p.columns, p.finishColumns, p.columnTasks()))
	}
	if len(p.totals) > 0 {
		all = append(all, p.finish("_total", p.outs(kernel.PerKernel), p.totals, p.finishTotals, 1))
	}
	return all, nil
}

// bodiesOf are what reductions reduce.
func bodiesOf(reductions []*kernel.Expr) (xs []*kernel.Expr) {
	for _, x := range reductions {
		xs = append(xs, x.Args[0])
	}
	return xs
}

// exprsOf are the expressions that storing outs evaluates.
func exprsOf(outs []kernel.Out) (xs []*kernel.Expr) {
	for _, o := range outs {
		xs = append(xs, o.Exprs()...)
	}
	return xs
}

// finish is a launch that combines partial results and stores outs.
func (p *rows) finish(suffix string, outs []kernel.Out, from []*assemble.Temp, write func(b *body) error, tasks int64) *launch {
	var xs []*kernel.Expr // without what the reductions reduce
	for _, x := range exprsOf(outs) {
		kernel.WalkOutside(x, func(x *kernel.Expr) {
			if x.Op == kernel.Load {
				xs = append(xs, x)
			}
		})
	}
	ps := newParams()
	ps.reads(loads(xs...))
	ps.writes(values(outs), nil)
	for _, t := range from {
		ps.temp("partial", t, artifact.In)
	}
	return newLaunch(suffix, p.f.Class, tasks, ps.list, write)
}
