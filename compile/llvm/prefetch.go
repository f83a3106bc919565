package llvm

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	dm "dmir/dialect/ir"

	"github.com/llir/llvm/ir/value"
)

// Memory is asked for ahead of its use where the hardware does not foresee the order in
// which a kernel visits it.

// beyondCaches is the bytes of a result whose lines come from memory before they are stored
// to.
const beyondCaches = 32 << 20

// eachLoad visits the loads in xs, each once.
func eachLoad(xs []*kernel.Expr, visit func(x *kernel.Expr)) {
	seen := map[*kernel.Expr]bool{}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			if x.Op == kernel.Load && !seen[x] {
				seen[x] = true
				visit(x)
			}
		})
	}
}

// foreseen reports whether the address of a load at x follows from variables that have
// values or are in more, without reading memory.
func (e *emitter) foreseen(x kernel.Index, more ...*kernel.Atom) bool {
	known := map[*kernel.Atom]bool{}
	for _, a := range more {
		known[a] = true
	}
	ok := true
	x.Atoms(func(a *kernel.Atom) {
		switch _, bound := e.atoms[a]; a.Kind {
		case kernel.Var:
			ok = ok && (bound || known[a])
		case kernel.Datum:
			ok = false
		}
	})
	return ok
}

// next asks for what the first pass over the next row, of which it evaluates xs, loads, and
// for where the row is stored to. The hardware follows one row to its end, and stops where
// computing the row takes long.
func (w *rowBody) next(xs []*kernel.Expr) {
	r, a := w.f.Rows, w.f.Lane
	if w.f.V == 1 {
		a = r.Col
	} else if w.f.V != r.Cols {
		return
	}
	if a == nil || r.Row == nil {
		return
	}
	ask := func(v *dm.Value, at kernel.Index, further int64) {
		size := max(v.Elem().Bytes(), 1)
		w.loop(a, w.left, w.right, code.Loop{Step: max(code.CacheLine/size, 1), Unroll: 1}, func(value.Value) {
			w.Prefetch(w.buffer(v), w.NewMul(w.NewAdd(w.index(at), code.Int(further)), code.Int(size)), 1, code.L2)
		})
	}
	for _, o := range w.outs(kernel.PerElement) {
		if o.Elements()*o.Value.Elem().Bytes() >= beyondCaches && w.foreseen(o.At, a) {
			ask(o.Value, o.At, 0)
		}
	}
	eachLoad(xs, func(x *kernel.Expr) {
		down, rows := x.At.Along(r.Row)
		along, columns := x.At.Along(a)
		if down != 0 && along == 1 && rows == r.Row.Max+1 && columns == a.Max+1 && w.foreseen(x.At, a) {
			ask(x.Buf, x.At, down)
		}
	})
}

// asks asks for what a strip of tiles reads.
func (l *elementLoop) asks(b *body) {
	b.loop(l.form.Lane, code.Int(0), code.Int(l.v), code.Loop{Unroll: 1}, func(value.Value) {
		eachLoad(exprsOf(l.outs), func(x *kernel.Expr) {
			if far, run := x.At.Along(l.form.Lane); far != 0 && run == l.v && b.foreseen(x.At) {
				l.ask(b, x.Buf, b.index(x.At), min(l.tiles.steps, tileSteps))
			}
		})
	})
}

// aheadInSegment is how many elements before its own what an element of a segment gathers is asked for.
const aheadInSegment = 16

// located finds, once for all neighbours, where what x reduces is in memory for its current element.
func (e *emitter) located(x *kernel.Expr) {
	outer := e.inside
	e.inside = true
	defer func() { e.inside = outer }()
	eachLoad(x.Args[:1], func(load *kernel.Expr) {
		load.At.Atoms(func(a *kernel.Atom) {
			if a.Kind == kernel.Datum && e.ready(a.E) {
				e.atom(a)
			}
		})
	})
}

// gathers calls for what the reduction x gathers, row by row of the neighbours that lane numbers, by coordinates that lie in the order
// of its elements.
func gathers(x *kernel.Expr, lane *kernel.Atom, visit func(load, coordinate *kernel.Expr, row int64)) {
	eachLoad(x.Args[:1], func(load *kernel.Expr) {
		step, _ := load.At.Along(lane)
		i := slices.IndexFunc(load.At.Terms, func(t kernel.Term) bool { return t.Atom.Kind == kernel.Datum })
		if i < 0 || step != 1 {
			return
		}
		if d := load.At.Terms[i].Atom.E; d.Op == "clamp" && d.Args[1].Op == kernel.Load && d.Args[1].At.Equal(kernel.IndexOf(x.Vars[0])) {
			visit(load, d.Args[1], load.At.Terms[i].Coef)
		}
	})
}

// further is how far ahead the elements of x, a reduction over a segment that ends at to, ask for what others gather: at the end of all
// there are none.
func (e *emitter) further(x *kernel.Expr, to value.Value) value.Value {
	return e.NewSub(e.least(e.NewAdd(to, code.Int(aheadInSegment)), code.Int(x.Vars[0].Max+1)), to)
}

// askFor asks for what an element of x gathers that lies further on than the current one.
func (e *emitter) askFor(x *kernel.Expr, lane *kernel.Atom, further value.Value) {
	at := e.NewAdd(e.atoms[x.Vars[0]], further)
	gathers(x, lane, func(load, coordinate *kernel.Expr, row int64) {
		number := e.extended(e.lib.Load(e.Func, coordinate.Elem, e.buffer(coordinate.Buf), at), coordinate.Elem.IsUnsigned())
		e.Prefetch(e.buffer(load.Buf), e.NewMul(number, code.Int(row*load.Elem.Bytes())), 1, code.L1)
	})
}

// ask asks for elements of v.
func (l *elementLoop) ask(b *body, v *dm.Value, at value.Value, elements int64) {
	size := v.Elem().Bytes()
	b.Prefetch(b.buffer(v), b.NewMul(at, code.Int(size)), elements*size, code.L2)
}

// ahead asks for what the next tile of the same steps reads of neighbour n's successor there, and for where this tile is
// stored to, one of its rows for each neighbour.
func (l *elementLoop) ahead(b *body, s0, n0, n value.Value) {
	step, lane := l.tiles.step, l.form.Lane
	b.within(func() {
		if l.v <= tileNeighbours {
			return
		}
		b.bind(step, s0)
		eachLoad(exprsOf(l.outs), func(x *kernel.Expr) {
			if far, run := x.At.Along(lane); far != 0 && run == l.v && b.foreseen(x.At) {
				l.ask(b, x.Buf, b.NewAdd(b.index(x.At), code.Int(far*tileNeighbours)), tileSteps)
			}
		})
	})
	row := b.NewSub(n, n0)
	b.within(func() {
		b.bind(step, b.NewAdd(s0, row))
		for _, o := range l.outs {
			if near, run := o.At.Along(lane); near == 1 && run == l.v && b.foreseen(o.At) {
				l.ask(b, o.Value, b.NewSub(b.index(o.At), row), min(l.v, tileNeighbours))
			}
		}
	})
}
