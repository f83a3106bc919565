package llvm

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// rowBody is the kernel of a scheme of rows that is being written.
type rowBody struct {
	*body
	*rows
	arrays      map[*kernel.Expr]value.Value // of the held expressions
	sums        []value.Value                // of the reductions over rows, one value for each column of the task
	left, right value.Value                  // the columns of the task
}

// write runs tasks, each of which has a part of the rows and a block of the columns.
func (p *rows) write(b *body) error {
	f, r := p.f, p.f.Rows
	w := &rowBody{body: b, rows: p, arrays: map[*kernel.Expr]value.Value{}}
	for _, x := range slices.Concat(p.held...) {
		w.arrays[x] = b.take(kept(x.Elem), r.Cols)
	}
	for _, x := range f.Nest.Columns {
		w.sums = append(w.sums, b.take(kept(x.Elem), p.wide))
	}
	b.loop(nil, b.first, b.last, code.Loop{}, func(t value.Value) {
		part, block := t, value.Value(code.Int(0))
		if p.blocks > 1 {
			part, block = b.NewUDiv(t, code.Int(p.blocks)), b.NewURem(t, code.Int(p.blocks))
		}
		from, to := value.Value(code.Int(0)), value.Value(code.Int(r.Rows))
		if p.parts > 1 {
			from = b.NewMul(part, code.Int(p.deep))
			to = b.least(b.NewAdd(from, code.Int(p.deep)), code.Int(r.Rows))
		}
		w.left, w.right = code.Int(0), code.Int(r.Cols)
		if p.blocks > 1 {
			w.left = b.NewMul(block, code.Int(p.wide))
			w.right = b.least(b.NewAdd(w.left, code.Int(p.wide)), code.Int(r.Cols))
		}
		for i, x := range f.Nest.Columns {
			b.For(code.Int(0), b.NewSub(w.right, w.left), code.Loop{Vectorize: true}, func(c value.Value) {
				b.lib.Store(b.Func, kept(x.Elem), w.sums[i], c, b.lib.Identity(x.Kind, x.Elem))
			})
		}
		row := func(_ value.Value, totals []value.Value) []value.Value { return w.row(totals) }
		how, begin := code.Loop{Unroll: 1}, w.begins(f.Nest.Totals)
		var totals []value.Value
		if s := searched(w.evaluated(), r.Row); s != nil {
			totals = b.bySegments(s, r.Row, from, to, how, begin, row)
		} else {
			totals = b.fold(r.Row, from, to, how, begin, row)
		}
		w.end(part, totals)
	})
	return nil
}

// evaluated are all expressions of the kernel.
func (p *rows) evaluated() []*kernel.Expr {
	return append(exprsOf(p.f.Outs), bodiesOf(slices.Concat(append(slices.Clone(p.f.Nest.Passes), p.f.Nest.Columns, p.f.Nest.Totals)...))...)
}

// begins are what loops over the values of reductions begin with.
func (e *emitter) begins(reductions []*kernel.Expr) (out []value.Value) {
	for _, x := range reductions {
		out = append(out, e.begin(x))
	}
	return out
}

// row computes one row; totals are what the rows before have accumulated.
func (w *rowBody) row(totals []value.Value) []value.Value {
	n := w.f.Nest
	for i, pass := range n.Passes {
		for _, x := range bodiesOf(pass) {
			w.hoist(x)
		}
		got := w.each(bodiesOf(pass), w.begins(pass), func(acc []value.Value) []value.Value {
			out := make([]value.Value, len(pass))
			for k, x := range pass {
				out[k] = w.accumulate(x, acc[k], x.Args[0])
			}
			for _, x := range w.rows.held[i] {
				w.lib.Store(w.Func, kept(x.Elem), w.arrays[x], w.column, w.value(x))
			}
			return out
		})
		for k, x := range pass {
			w.given[x] = w.body.end(x, got[k])
		}
		for _, x := range w.rows.held[i] {
			w.body.held[x] = w.arrays[x]
		}
		if i == 0 {
			w.next(bodiesOf(pass))
		}
	}
	w.storeAll(w.outs(kernel.PerRow))
	next := make([]value.Value, len(totals))
	for i, x := range n.Totals {
		next[i] = w.accumulate(x, totals[i], x.Args[0])
	}
	outs := w.outs(kernel.PerElement)
	if len(outs)+len(n.Columns) > 0 {
		for _, x := range exprsOf(outs) {
			w.hoist(x)
		}
		for _, x := range bodiesOf(n.Columns) {
			w.hoist(x)
		}
		w.each(append(exprsOf(outs), bodiesOf(n.Columns)...), nil, func([]value.Value) []value.Value {
			w.storeAll(outs)
			for i, x := range n.Columns {
				at := w.NewSub(w.column, w.left)
				old := w.lib.Load(w.Func, kept(x.Elem), w.sums[i], at)
				w.lib.Store(w.Func, kept(x.Elem), w.sums[i], at, w.lib.Combine(w.Func, x.Kind, kept(x.Elem), old, w.value(x.Args[0]), true))
			}
			return nil
		})
	}
	for _, x := range slices.Concat(n.Passes...) {
		delete(w.given, x)
	}
	clear(w.body.held)
	return next
}

// each visits the columns of the task, where xs are evaluated, with values that each
// passes on to the next.
func (w *rowBody) each(xs []*kernel.Expr, begin []value.Value, visit func(acc []value.Value) []value.Value) []value.Value {
	f := w.f
	at := func(column value.Value, acc []value.Value) (out []value.Value) {
		w.column = column
		out = visit(acc)
		w.column = nil
		return out
	}
	how := code.Loop{Vectorize: true}
	if f.V == 1 || f.V == f.Rows.Cols {
		a := f.Lane
		if f.V == 1 {
			a = f.Rows.Col
		}
		return w.along(a, segments(xs, a, f.Rows.Cols), w.left, w.right, how, begin, at)
	}
	return w.fold(f.Rows.Col, code.Int(0), code.Int(f.Rows.Cols/f.V), code.Loop{}, begin, func(_ value.Value, acc []value.Value) []value.Value {
		base := w.NewMul(w.atoms[f.Rows.Col], code.Int(f.V))
		return w.along(f.Lane, segments(xs, f.Lane, f.V), code.Int(0), code.Int(f.V), how, acc, func(i value.Value, acc []value.Value) []value.Value {
			return at(w.NewAdd(base, i), acc)
		})
	})
}

// end stores what the rows of a task have accumulated: the results, or for a later
// launch the partial ones.
func (w *rowBody) end(part value.Value, totals []value.Value) {
	n, r := w.f.Nest, w.f.Rows
	if len(w.temps()) > 0 {
		for i, t := range w.columns {
			base := w.NewAdd(w.NewMul(part, code.Int(r.Cols)), w.left)
			w.For(code.Int(0), w.NewSub(w.right, w.left), code.Loop{Vectorize: true}, func(c value.Value) {
				v := w.lib.Load(w.Func, t.Elem, w.sums[i], c)
				w.lib.Store(w.Func, t.Elem, w.memory[t], w.NewAdd(base, c), v)
			})
		}
		for i, t := range w.rows.totals {
			w.lib.Store(w.Func, t.Elem, w.memory[t], part, w.body.end(n.Totals[i], totals[i]))
		}
		return
	}
	if outs := w.outs(kernel.PerColumn); len(outs) > 0 {
		w.each(nil, nil, func([]value.Value) []value.Value {
			at := w.NewSub(w.column, w.left)
			for i, x := range n.Columns {
				w.given[x] = w.lib.Load(w.Func, kept(x.Elem), w.sums[i], at)
			}
			w.storeAll(outs)
			return nil
		})
	}
	w.within(func() {
		for i, x := range n.Totals {
			w.given[x] = w.body.end(x, totals[i])
		}
		w.storeAll(w.outs(kernel.PerKernel))
	})
	for _, x := range slices.Concat(n.Columns, n.Totals) {
		delete(w.given, x)
	}
}

// columnTasks is the number of tasks that combine the partial sums of columns.
func (p *rows) columnTasks() int64 {
	if p.f.V != p.f.Rows.Cols {
		return 1
	}
	return ceil(p.f.Rows.Cols, blockColumns)
}

// finishColumns combines the partial sums of columns in the order of their parts.
func (p *rows) finishColumns(b *body) error {
	f := p.f
	w := &rowBody{body: b, rows: p, left: code.Int(0), right: code.Int(f.Rows.Cols)}
	if p.columnTasks() > 1 {
		w.left, w.right = b.span(b.first, b.last, blockColumns, f.Rows.Cols)
	}
	w.each(nil, nil, func([]value.Value) []value.Value {
		column := w.column
		for i, x := range f.Nest.Columns {
			w.given[x] = w.combined(x, p.columns[i], func(part value.Value) value.Value {
				return b.NewAdd(b.NewMul(part, code.Int(f.Rows.Cols)), column)
			})
		}
		w.storeAll(p.outs(kernel.PerColumn))
		return nil
	})
	return nil
}

// finishTotals combines the partial sums of all rows in the order of their parts.
func (p *rows) finishTotals(b *body) error {
	w := &rowBody{body: b, rows: p}
	for i, x := range p.f.Nest.Totals {
		w.given[x] = w.combined(x, p.totals[i], func(part value.Value) value.Value { return part })
	}
	b.storeAll(p.outs(kernel.PerKernel))
	return nil
}

// combined is the reduction x of its partial results, which are at at in t.
func (w *rowBody) combined(x *kernel.Expr, t *assemble.Temp, at func(part value.Value) value.Value) value.Value {
	return w.Fold(code.Int(0), code.Int(w.parts), code.Loop{Unroll: code.Full}, []value.Value{w.lib.Identity(x.Kind, x.Elem)}, func(part value.Value, acc []value.Value) []value.Value {
		v := w.lib.Load(w.Func, t.Elem, w.memory[t], at(part))
		return []value.Value{w.lib.Combine(w.Func, x.Kind, kept(x.Elem), acc[0], v, false)}
	})[0]
}
