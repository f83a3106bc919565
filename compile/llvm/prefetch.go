package llvm

import (
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
