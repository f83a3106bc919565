package cuda

import "dmir/compile/kernel"

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

// overSegment writes the loop over the segment of the reduction x around what body writes for a
// value of it.
func (e *emitter) overSegment(x *kernel.Expr, body func(y *kernel.Expr)) {
	count := counter(x.Vars[0].Max + 1)
	from, to := e.index(x.Span.From), e.index(x.Span.To)
	end, k := e.name("end"), e.name("k")
	e.lineOf(x.From, "const %s %s = %s(%s)", count, def(end), count, to)
	e.pragma("DM_UNROLL_BY(4)")
	e.open("for (%s %s = %s(%s); %s < %s; %s++)", count, def(k), count, from, k, end, k)
	e.bind(x.Vars[0], cpp("%s", k))
	body(x.Args[0])
	e.close()
}
