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
	// long is how many elements of a segment the team takes; a longer one the block has, whose threads are a team
	// then. 0: no segment is as long.
	long int64
	sub  ident // the number of a lane in its team
	// scratch are, where the team is a block, arrays by the types of sums, with one for each warp and column.
	scratch map[string]ident
}

// teamSteps is how many elements of a segment each lane of a team takes at most.
const teamSteps = 64

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
	if n := t.lanes * teamSteps; oneSpan(w) && longest(w) > n {
		t.long = n
	}
	return t
}

// spans visits the reductions of f over segments.
func spans(f *kernel.Form, visit func(x *kernel.Expr)) {
	for _, o := range f.Outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			if x.Span != nil {
				visit(x)
			}
		})
	}
}

// oneSpan reports whether all reductions of f are over one segment.
func oneSpan(f *kernel.Form) bool {
	var of *kernel.Span
	ok := true
	spans(f, func(x *kernel.Expr) {
		ok = ok && (of == nil || of == x.Span)
		of = x.Span
	})
	return ok
}

// longest is the most elements that a segment of f can have.
func longest(f *kernel.Form) (n int64) {
	spans(f, func(x *kernel.Expr) { n = max(n, x.Vars[0].Max+1) })
	return n
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
	item, sub, step := e.name("item"), e.name("sub"), e.name("step")
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
	stores := cpp("%s < %d && %s == 0", item, n, sub)
	if g.long > 0 {
		long := e.name("long")
		e.line("bool %s = false", def(long))
		e.open("if (%s < %d)", item, n)
		e.bind(outs[0].Loops[0], cpp("%s", step))
		spans(f, func(x *kernel.Expr) {
			e.line("%s = %s - %s > %d", long, e.factor(x.Span.To), e.factor(x.Span.From), g.long)
		})
		e.close()
		g.writeLong(e, f, outs, count, long)
		stores = cpp("%s && !%s", stores, long)
	}
	e.bind(outs[0].Loops[0], cpp("%s", step))
	own.compute(e, f, outs, stores)
}

// compute computes outs by the team, and stores them where a condition holds.
func (g *team) compute(e *emitter, f *kernel.Form, outs []kernel.Out, stores code) {
	e.team = g
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
	e.open("if (%s)", stores)
	l.store(outs)
	e.close()
	l.end()
}

// writeLong computes the elements of segments that are too long for a team: the block takes one after the
// other. Each warp tells by a bit for each lane, of those that begin an element's columns, whether its
// segment is.
func (g *team) writeLong(e *emitter, f *kernel.Form, outs []kernel.Out, count string, long ident) {
	flags, of, bits, first, at, own := e.name("flags"), e.name("w"), e.name("bits"), e.name("first"), e.name("at"), e.name("own")
	e.line("DM_SHARED(dm::u32, %s, %d)", def(flags), blockThreads/32)
	scratch := map[string]ident{}
	spans(f, func(x *kernel.Expr) {
		t := register(x.Elem)
		if _, known := scratch[t]; !known {
			scratch[t] = e.name("parts")
			e.line("DM_SHARED(%s, %s, %d)", t, def(scratch[t]), blockThreads/32*g.stride)
		}
	})
	votes := e.name("votes")
	e.line("const dm::u32 %s = dm::ballot(%s && dm::thread() %% %d == 0)", def(votes), long, g.stride*g.lanes)
	e.oneLine(cpp("%s[dm::warp()] = %s", flags, votes), "if (dm::lane() == 0)")
	e.line("dm::sync()")
	e.open("for (dm::i32 %s = 0; %s < %d; %s++)", def(of), of, blockThreads/32, of)
	e.open("for (dm::u32 %s = %s[%s]; %s != 0; %s &= %s - 1)", def(bits), flags, of, bits, bits, bits)
	e.line("const dm::i32 %s = %s * 32 + dm::popcount((%s & -%s) - 1)", def(first), of, bits, bits)
	e.line("const dm::i32 %s = dm::thread() / %d", def(own), g.stride)
	e.line("const %s %s = (%s(dm::block()) * %d + %s) / %d + dm::thread() %% %d", count, def(at), count, blockThreads, first, g.lanes, g.stride)
	e.bind(outs[0].Loops[0], cpp("%s", at))
	block := &team{lanes: blockThreads / g.stride, stride: g.stride, sub: own, scratch: scratch}
	block.compute(e, f, outs, cpp("%s == 0", own))
	e.close()
	e.close()
}

// together combines what the lanes of a team have of the reduction x.
func (e *emitter) together(x *kernel.Expr, sum any) {
	if e.team == nil {
		return
	}
	g := e.team
	for m := g.stride; m < min(32, g.stride*g.lanes); m *= 2 {
		e.assign(x.From, sum, combined(x.Kind, x.Elem, sum, cpp("dm::shuffle_xor(%s, %d)", sum, m)))
	}
	if g.scratch == nil {
		return
	}
	parts, w := g.scratch[register(x.Elem)], e.name("w")
	e.oneLine(cpp("%s[dm::warp() * %d + dm::lane()] = %s", parts, g.stride, sum), "if (dm::lane() < %d)", g.stride)
	e.line("dm::sync()")
	e.open("if (dm::thread() < %d)", g.stride)
	e.open("for (dm::i32 %s = 1; %s < %d; %s++)", def(w), w, blockThreads/32, w)
	e.assign(x.From, sum, combined(x.Kind, x.Elem, sum, cpp("%s[%s * %d + dm::thread()]", parts, w, g.stride)))
	e.close()
	e.close()
	e.line("dm::sync()")
}

// overSegment writes the loop over the segment of the reduction x around what body writes for a
// value of it.
func (e *emitter) overSegment(x *kernel.Expr, body func(y *kernel.Expr)) {
	count := counter(x.Vars[0].Max + 1)
	begin, end, k := e.name("from"), e.name("end"), e.name("k")
	from, to := e.index(x.Span.From), e.index(x.Span.To)
	e.lineOf(x.From, "const %s %s = %s(%s)", count, def(begin), count, from)
	switch g := e.team; {
	case g == nil:
		e.lineOf(x.From, "const %s %s = %s(%s)", count, def(end), count, to)
		e.pragma("DM_UNROLL_BY(4)")
		e.open("for (%s %s = %s; %s < %s; %s++)", count, def(k), begin, k, end, k)
	default:
		if g.long > 0 { // else the block has it
			e.lineOf(x.From, "const %s %s = %s(%s) - %s > %d ? %s : %s(%s)", count, def(end), count, to, begin, g.long, begin, count, to)
		} else {
			e.lineOf(x.From, "const %s %s = %s(%s)", count, def(end), count, to)
		}
		e.pragma("DM_UNROLL_BY(4)")
		e.open("for (%s %s = %s + %s; %s < %s; %s += %d)", count, def(k), begin, g.sub, k, end, k, g.lanes)
	}
	e.bind(x.Vars[0], cpp("%s", k))
	body(x.Args[0])
	e.close()
}
