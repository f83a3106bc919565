package cuda

import (
	"slices"

	"dmir/compile/kernel"
)

// search halves the range in which the first element is for which the predicate of x does not hold.
func (e *emitter) search(x *kernel.Expr) ident {
	e.hoist(x.Args[0])
	from, to, middle, n := e.name("from"), e.name("to"), e.name("j"), x.Vars[0].Max+1
	count := counter(n)
	e.lineOf(x.From, "%s %s = 0, %s = %d", count, def(from), def(to), n)
	e.open("while (%s < %s)", from, to)
	e.line("const %s %s = %s + (%s - %s) / 2", count, def(middle), from, to, from)
	e.bind(x.Vars[0], cpp("%s", middle))
	holds := e.value(x.Args[0])
	e.line("%s = %s ? %s + 1 : %s", from, holds, middle, from)
	e.line("%s = %s ? %s : %s", to, holds, to, middle)
	e.close()
	out := e.name("t")
	e.lineOf(x.From, "const %s %s = %s(%s)", register(x.Elem), def(out), register(x.Elem), from)
	return out
}

// team is the lanes of a warp that share a segment, each of which has every lanes-th element. They are
// stride lanes apart: between them are those of neighbouring columns, whose memory is contiguous.
type team struct {
	lanes, stride int64
	sub           ident // the number of a lane in its team
}

// teamOf is the team of each element of f, a kernel of class Loop whose threads compute v neighbours: as
// many lanes as a segment has elements, about; nil where one computes it alone.
func teamOf(f *kernel.Form, v int64) *team {
	w, err := widened(f, v)
	if err != nil || len(f.Over) > 0 {
		return nil
	}
	var mean, columns int64
	ok := true
	for _, o := range w.Outs {
		ok = ok && len(o.If) == 0 && slices.Equal(o.Loops, w.Outs[0].Loops) && len(present(o.Loops)) == 1
		kernel.Walk(o.X, func(x *kernel.Expr) {
			switch {
			case x.Op == kernel.Guard: // what it reads is in bounds under its conditions
				for _, a := range x.Args {
					kernel.Walk(a, func(y *kernel.Expr) { ok = ok && y.Span == nil })
				}
			case x.Span != nil:
				ok = ok && !selects(x) && x.Kind != kernel.Region
				mean = max(mean, x.Span.Mean)
				n := steps(x.Span.From, w.Outs[0].Loops[0])
				ok = ok && (columns == 0 || columns == n)
				columns = n
			}
		})
	}
	if !ok || mean < 2 {
		return nil
	}
	t := &team{lanes: 32, stride: 1}
	if columns >= 8 || columns&(columns-1) == 0 {
		t.stride = columns
	}
	for t.lanes > mean || t.lanes*t.stride > 32 {
		if t.lanes /= 2; t.lanes < 2 {
			return nil
		}
	}
	return t
}

// steps is how many steps of a loop in a row have the segment that begins at x: 1 where it is another in
// each.
func steps(x kernel.Index, step *kernel.Atom) int64 {
	n := int64(0)
	look := func(y kernel.Index) {
		y.Atoms(func(a *kernel.Atom) {
			switch {
			case a == step && n == 0:
				n = 1
			case a.Kind == kernel.Div && a.X.Equal(kernel.IndexOf(step)) && n == 0:
				n = a.N
			}
		})
	}
	for _, t := range x.Terms {
		if t.Atom.Kind == kernel.Datum {
			kernel.Walk(t.Atom.E, func(y *kernel.Expr) { look(y.At) })
		}
	}
	return max(n, 1)
}

func present(atoms []*kernel.Atom) []*kernel.Atom {
	return slices.DeleteFunc(slices.Clone(atoms), func(a *kernel.Atom) bool { return a == nil })
}

// write computes outs, of n steps, by teams: all lanes of a warp take part in what these exchange, those behind
// the last step too, and one lane of a team stores.
func (g *team) write(e *emitter, f *kernel.Form, outs []kernel.Out, i ident, count string, n int64) {
	const item, sub, step ident = "item", "sub", "step"
	if g.stride > 1 {
		e.line("const %s %s = %s / %d * %d + %s %% %d", count, def(item), i, g.lanes*g.stride, g.stride, i, g.stride)
		e.line("const dm::i32 %s = dm::i32(%s / %d %% %d)", def(sub), i, g.stride, g.lanes)
	} else {
		e.line("const %s %s = %s / %d", count, def(item), i, g.lanes)
		e.line("const dm::i32 %s = dm::i32(%s %% %d)", def(sub), i, g.lanes)
	}
	e.line("const %s %s = dm::min(%s, %s(%d))", count, def(step), item, count, n-1)
	own := *g
	own.sub = sub
	e.bind(outs[0].Loops[0], cpp("%s", step))
	e.team = &own
	l := e.lanes(f.Lane, f.V)
	for _, o := range outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			switch {
			case x.Span == nil:
			case f.Lane != nil && x.DependsOn(f.Lane):
				l.updates(x)
			default:
				e.value(x)
			}
		})
	}
	e.team = nil
	e.open("if (%s < %d && %s == 0)", item, n, sub)
	l.store(outs)
	l.end()
	e.close()
}

// together combines what the lanes of a team have of the reduction x.
func (e *emitter) together(x *kernel.Expr, sum any) {
	if e.team == nil {
		return
	}
	for m := e.team.stride; m < e.team.stride*e.team.lanes; m *= 2 {
		e.assign(x.From, sum, combined(x.Kind, x.Elem, sum, cpp("dm::shuffle_xor(%s, %d)", sum, m)))
	}
}

// overSegment writes the loop over the segment of the reduction x around what body writes for a
// value of it.
func (e *emitter) overSegment(x *kernel.Expr, body func(y *kernel.Expr)) {
	count := counter(x.Vars[0].Max + 1)
	from, to := e.index(x.Span.From), e.index(x.Span.To)
	end, k := e.name("end"), e.name("k")
	e.lineOf(x.From, "const %s %s = %s(%s)", count, def(end), count, to)
	e.pragma("DM_UNROLL_BY(4)")
	if g := e.team; g != nil {
		e.open("for (%s %s = %s(%s) + %s; %s < %s; %s += %d)", count, def(k), count, from, g.sub, k, end, k, g.lanes)
	} else {
		e.open("for (%s %s = %s(%s); %s < %s; %s++)", count, def(k), count, from, k, end, k)
	}
	e.bind(x.Vars[0], cpp("%s", k))
	body(x.Args[0])
	e.close()
}
