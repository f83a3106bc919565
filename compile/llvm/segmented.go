package llvm

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// Kernels over the segments of positions: rows of a sparse matrix, or what it stores in their order; and over the updates of rows.

// segmentTask is the number of elements of the segments of a task.
const segmentTask = 16 << 10

// rowsOf is a span of xs that begins where the positions say of row a itself, by which rows are
// divided among tasks; nil where there is none.
func rowsOf(xs []*kernel.Expr, a *kernel.Atom) (span *kernel.Span) {
	if a == nil {
		return nil
	}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			if x.Span == nil || len(x.Span.From.Terms) != 1 {
				return
			}
			from := x.Span.From.Terms[0].Atom
			if from.Kind == kernel.Datum && from.E.Op == "clamp" && from.E.Args[1].Op == kernel.Load && from.E.Args[1].At.Equal(kernel.IndexOf(a)) {
				span = x.Span
			}
		})
	}
	return span
}

// shares are the rows, numbered by a, of the tasks first to last - 1 of n: each task has about as many
// elements and rows together. Where positions fall, tasks still have each row once: halving a range
// finds for a greater number no row in front of that for a lesser one.
func (b *body) shares(span *kernel.Span, a *kernel.Atom, first, last value.Value, n int64) (from, to value.Value) {
	at := func(row value.Value, bound kernel.Index) (out value.Value) {
		b.within(func() {
			b.bind(a, row)
			out = b.index(bound)
		})
		return out
	}
	rows := a.Max + 1
	all := b.NewAdd(at(code.Int(rows-1), span.To), code.Int(rows))
	return b.divided(rows, n, all, first, last, func(row value.Value) value.Value { return b.NewAdd(at(row, span.From), row) })
}

// divided are the rows of the tasks first to last - 1 of n, of about equal parts of all, of which before
// gives what is in front of a row.
func (b *body) divided(rows, n int64, all, first, last value.Value, before func(row value.Value) value.Value) (from, to value.Value) {
	begin := func(t value.Value) value.Value {
		want := b.NewUDiv(b.NewMul(all, t), code.Int(n))
		ends := b.While([]value.Value{code.Int(0), code.Int(rows)}, func(acc []value.Value) value.Value {
			return b.NewICmp(less, acc[0], acc[1])
		}, func(acc []value.Value) []value.Value {
			middle := b.NewLShr(b.NewAdd(acc[0], acc[1]), code.Int(1))
			early := b.NewICmp(less, before(middle), want)
			return []value.Value{b.NewSelect(early, b.NewAdd(middle, code.Int(1)), acc[0]), b.NewSelect(early, acc[1], middle)}
		})
		return b.NewSelect(b.NewICmp(enum.IPredEQ, t, code.Int(n)), code.Int(rows), ends[0])
	}
	return begin(first), begin(last)
}

// searched is a search in xs for the segment that has element a itself; nil where there is none.
func searched(xs []*kernel.Expr, a *kernel.Atom) (found *kernel.Expr) {
	if a == nil {
		return nil
	}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			if x.Op == kernel.Search && x.Buf != nil && x.At.Equal(kernel.IndexOf(a)) {
				found = x
			}
		})
	}
	return found
}

// bySegments is fold over elements a in their order, of which s finds the segment: a search for
// the first one, then a loop over each segment, in which its number is known.
func (e *emitter) bySegments(s *kernel.Expr, a *kernel.Atom, from, to value.Value, how code.Loop, acc []value.Value, body func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	var first value.Value
	e.within(func() {
		e.bind(a, from)
		first = e.wholeNumber(e.value(s))
	})
	return e.fromSegment(first, s, a, from, to, how, acc, body)
}

// begun is the number of the segment that s finds of the first element of span, where that is the begin of one which span reads; nil
// elsewhere.
func (e *emitter) begun(s *kernel.Expr, span *kernel.Span) value.Value {
	if len(span.From.Terms) != 1 || span.From.Terms[0].Coef != 1 || span.From.C != 0 || span.From.Terms[0].Atom.Kind != kernel.Datum {
		return nil
	}
	if x := span.From.Terms[0].Atom.E; x.Op == "clamp" && x.Args[1].Op == kernel.Load && x.Args[1].Buf == s.Buf {
		return e.index(x.Args[1].At)
	}
	return nil
}

// fromSegment is bySegments from segment first on, which has element from or is in front of the one that has it.
func (e *emitter) fromSegment(first value.Value, s *kernel.Expr, a *kernel.Atom, from, to value.Value, how code.Loop, acc []value.Value, body func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	m := s.Vars[0].Max + 1
	end := func(i value.Value) (out value.Value) {
		e.within(func() {
			e.bind(s.Vars[0], i)
			out = e.wholeNumber(e.value(s.Args[0].Args[0]))
		})
		return out
	}
	done := e.While(append([]value.Value{from, first}, acc...), func(acc []value.Value) value.Value {
		return e.NewICmp(less, acc[0], to)
	}, func(acc []value.Value) []value.Value {
		k, i := acc[0], acc[1]
		stop := e.Choose(e.NewICmp(less, i, code.Int(m)), func() []value.Value {
			return []value.Value{e.least(e.most(end(i), k), to)}
		}, func() []value.Value { return []value.Value{to} })[0]
		e.given[s] = e.number(s, i)
		next := e.fold(a, k, stop, how, acc[2:], body)
		delete(e.given, s)
		return append([]value.Value{stop, e.NewAdd(i, code.Int(1))}, next...)
	})
	return done[2:]
}

// wholeNumber is a signed integer as an index.
func (e *emitter) wholeNumber(v value.Value) value.Value {
	return e.extended(v, false)
}

// extended is v, an integer with a sign or without, as an index.
func (e *emitter) extended(v value.Value, unsigned bool) value.Value {
	switch {
	case v.Type().Equal(code.Index):
		return v
	case unsigned:
		return e.NewZExt(v, code.Index)
	}
	return e.NewSExt(v, code.Index)
}

// sweep is reductions that one loop over a segment, or over the updates of a row, computes for all neighbours.
type sweep struct {
	xs []*kernel.Expr
	// inside are the conditions that guard them: where one does not hold, there may be no such segment to read.
	inside []kernel.Condition
}

// acrossNeighbours are the reductions in outs over segments, and over the updates of a row, that have a value for each neighbour: those
// with one loop together; nil where neighbours have loops of their own.
func acrossNeighbours(outs []kernel.Out, lane *kernel.Atom) (sweeps []*sweep) {
	if lane == nil {
		return nil
	}
	xs, inside, ok := guarded(outs, func(x *kernel.Expr) bool { return (x.Span != nil || x.Groups != nil) && x.DependsOn(lane) })
	if !ok {
		return nil
	}
	for _, x := range xs {
		own := x.Groups != nil && x.At.DependsOn(lane) || x.Span != nil && (x.Span.From.DependsOn(lane) || x.Span.To.DependsOn(lane))
		own = own || slices.ContainsFunc(inside[x], func(c kernel.Condition) bool { return c.X.DependsOn(lane) })
		if own || !combines(x) || reducesAgain(x) {
			return nil
		}
		i := slices.IndexFunc(sweeps, func(g *sweep) bool {
			y := g.xs[0]
			return y.Span == x.Span && y.Groups == x.Groups && y.Vars[0] == x.Vars[0] && y.At.Equal(x.At) && slices.EqualFunc(g.inside, inside[x], kernel.Condition.Equal)
		})
		if i < 0 {
			i, sweeps = len(sweeps), append(sweeps, &sweep{inside: inside[x]})
		}
		sweeps[i].xs = append(sweeps[i].xs, x)
	}
	return sweeps
}

// guarded are the expressions in outs that f selects, operands first, and the conditions under which each is computed; it is not ok where
// two places that compute one have different conditions, unless those of one include the other's.
func guarded(outs []kernel.Out, f func(*kernel.Expr) bool) (xs []*kernel.Expr, inside map[*kernel.Expr][]kernel.Condition, ok bool) {
	ok, inside = true, map[*kernel.Expr][]kernel.Condition{}
	begins := func(conds, with []kernel.Condition) bool {
		return len(with) <= len(conds) && slices.EqualFunc(with, conds[:len(with)], kernel.Condition.Equal)
	}
	var visit func(x *kernel.Expr, conds []kernel.Condition)
	visit = func(x *kernel.Expr, conds []kernel.Condition) {
		before, seen := inside[x]
		if seen && begins(conds, before) {
			return
		}
		if seen && !begins(before, conds) {
			kernel.Walk(x, func(y *kernel.Expr) { ok = ok && !f(y) })
			conds = nil
		}
		inside[x] = conds
		for i, y := range x.Args {
			if x.Op == kernel.Guard && i == 0 {
				visit(y, slices.Concat(conds, x.If))
			} else {
				visit(y, conds)
			}
		}
		for _, y := range x.Data() {
			visit(y, conds)
		}
		if !seen && f(x) {
			xs = append(xs, x)
		}
	}
	for _, o := range outs {
		visit(o.X, o.If)
		for _, x := range o.Exprs()[1:] {
			visit(x, nil)
		}
	}
	return xs, inside, ok
}

// reducesAgain reports whether what x reduces is itself reduced.
func reducesAgain(x *kernel.Expr) bool {
	found := false
	kernel.Walk(x.Args[0], func(y *kernel.Expr) { found = found || y.Op == kernel.Reduce })
	return found
}

const vectorBytes = 64

// stripBytes are what the neighbours of a strip accumulate at a time: half of what registers hold.
func (b *body) stripBytes() int64 {
	if b.M.Vector >= vectorBytes { // there are 32 registers then
		return 16 * vectorBytes
	}
	return 8 * 32
}

// piece is n neighbours from number first on: whole vectors, as powers of two are.
type piece struct {
	first value.Value
	n     int64
}

// writeStrips computes the neighbours of a step: a loop over each segment, or over the updates of a row, for a strip of them, whose
// sums stay in registers. The last strip has the rest in pieces, the last of which may compute neighbours again that the one before
// has, unless these have been overwritten.
func (l *elementLoop) writeStrips(b *body) {
	size := int64(1)
	for _, g := range l.strips {
		for _, x := range g.xs {
			size = max(size, kept(x.Elem).Bytes())
		}
	}
	at, w := int64(0), b.stripBytes()/size
	if whole := l.v / w; whole > 0 {
		b.For(code.Int(0), code.Int(whole), code.Loop{Unroll: 1}, func(i value.Value) {
			l.strip(b, []piece{{b.NewMul(i, code.Int(w)), w}}, size)
		})
		at = whole * w
	}
	var rest []piece
	for at < l.v {
		left := l.v - at
		for w > left {
			w /= 2
		}
		if w < left && 2*w <= l.v && l.again { // one piece instead of several small ones
			w *= 2
			at = l.v - w
		}
		rest = append(rest, piece{code.Int(at), w})
		at += w
	}
	if rest != nil {
		l.strip(b, rest, size)
	}
}

// strip computes pieces of the neighbours, of which the widest sums have size bytes.
func (l *elementLoop) strip(b *body, pieces []piece, size int64) {
	lane := l.form.Lane
	each := func(k int, f func(j value.Value)) {
		n := pieces[k].n
		how := code.Loop{Vectorize: true, Wide: int(min(n, vectorBytes/size)), Interleave: int(max(1, n*size/vectorBytes)), Unroll: 1}
		if n == 1 {
			how = code.Loop{}
		}
		b.For(code.Int(0), code.Int(n), how, f)
	}
	at := func(k int, f func(j value.Value)) {
		each(k, func(j value.Value) {
			b.within(func() {
				b.bind(lane, b.NewAdd(pieces[k].first, j))
				f(j)
			})
		})
	}
	b.within(func() {
		var all []*kernel.Expr
		sums := map[*kernel.Expr][][]value.Value{} // of each piece, for each set of sums
		begins := map[*kernel.Expr]value.Value{}
		sum := func(x *kernel.Expr, set, k int, j value.Value) value.Value {
			return b.Element(begins[x].Type(), sums[x][set][k], j)
		}
		for _, g := range l.strips {
			g, inside := g.xs, g.inside
			all = append(all, g...)
			sets := setsOf(g, pieces, size)
			for _, x := range g {
				begins[x] = b.begin(x)
				for set := range sets {
					sums[x] = append(sums[x], nil)
					for k, p := range pieces {
						sums[x][set] = append(sums[x][set], b.Alloca(begins[x].Type(), p.n, vectorBytes))
						each(k, func(j value.Value) { b.NewStore(begins[x], sum(x, set, k, j)) })
					}
				}
			}
			b.under(inside, func() {
				var further value.Value // of segments in segments, which end too often for the processor to run ahead itself
				if g[0].Span != nil && searched(g[0].Args, g[0].Vars[0]) != nil {
					further = b.further(g[0], b.index(g[0].Span.To))
				}
				b.over(g[0], sets, func(set int) {
					for _, x := range g {
						b.located(x)
						b.hoist(x.Args[0])
						if further != nil {
							b.askFor(x, lane, further)
						}
					}
					for k := range pieces {
						at(k, func(j value.Value) {
							for _, x := range g {
								to := sum(x, set, k, j)
								b.NewStore(b.step(x, x.Args[0], b.NewLoad(begins[x].Type(), to)), to)
							}
						})
					}
				})
			})
			for _, x := range g {
				held := b.accumulator(x)
				for set := 1; set < sets; set++ {
					for k := range pieces {
						each(k, func(j value.Value) {
							to := sum(x, 0, k, j)
							other := b.NewLoad(begins[x].Type(), sum(x, set, k, j))
							b.NewStore(held.Merge(b.Func, b.NewLoad(begins[x].Type(), to), other), to)
						})
					}
				}
			}
		}
		for k := range pieces {
			at(k, func(j value.Value) {
				for _, x := range all {
					b.given[x] = b.end(x, b.NewLoad(begins[x].Type(), sum(x, 0, k, j)))
				}
				b.storeAll(l.outs)
				for _, x := range all {
					delete(b.given, x)
				}
			})
		}
	})
}

// setsOf is how many sums a strip has for each neighbour of the reductions g: where these are few vectors and segments are long, additions
// would wait for the one before.
func setsOf(g []*kernel.Expr, pieces []piece, size int64) int {
	var vectors int64
	for _, p := range pieces {
		vectors += ceil(p.n*size, vectorBytes)
	}
	if x := g[0]; x.Span == nil || x.Span.Mean < longSegment || searched(x.Args, x.Vars[0]) != nil {
		return 1
	}
	return int(max(1, sumsOfSegment/(vectors*int64(len(g)))))
}

// over runs body for each value of the variable of x, a reduction over a segment or over the updates of a row: by turns with the numbers
// of so many sets, and with 0 at the end.
func (e *emitter) over(x *kernel.Expr, sets int, body func(set int)) {
	if x.Span != nil {
		a, from, to, how := x.Vars[0], e.index(x.Span.From), e.index(x.Span.To), code.Loop{Unroll: 1}
		if s := searched(x.Args, a); s != nil {
			if first := e.begun(s, x.Span); first != nil {
				e.fromSegment(first, s, a, from, to, how, nil, func(value.Value, []value.Value) []value.Value {
					body(0)
					return nil
				})
				return
			}
		}
		if sets > 1 {
			n := code.Int(int64(sets))
			rest := e.NewAdd(from, e.NewMul(e.NewUDiv(e.most(e.NewSub(to, from), code.Int(0)), n), n))
			e.For(from, rest, code.Loop{Step: int64(sets), Unroll: 1}, func(k value.Value) {
				for set := range sets {
					e.within(func() {
						e.bind(a, e.NewAdd(k, code.Int(int64(set))))
						body(set)
					})
				}
			})
			from = rest
		}
		e.loop(a, from, to, how, func(value.Value) { body(0) })
		return
	}
	from, to, number := e.updates(x)
	e.loop(nil, from, to, code.Loop{Unroll: 1}, func(j value.Value) {
		e.bind(x.Vars[0], number(j))
		body(0)
	})
}
