package attend

import (
	"math"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// panel is the state of a panel of queries.
type panel struct{ q, y, most, sums value.Value }

func (e *forward) panelOf(i value.Value) panel {
	at := func(base value.Value, n int64) value.Value { return e.at(base, e.NewMul(i, code.Int(n))) }
	s := e.s
	return panel{at(e.q, s.panel*up(s.Depth, s.lanes)), at(e.y, s.panel*up(s.Value, s.lanes)), at(e.most, s.panel), at(e.sums, s.panel)}
}

func (e *forward) begin(p panel, head, query, live value.Value) {
	s := e.s
	e.emitter.stage(e.stage, s.Depth, live, code.Int(s.panel), func(r, c value.Value) value.Value {
		return e.NewFMul(e.k.Q.Load(e.Func, head, e.NewAdd(query, r), c), e.number(s.factor()))
	})
	if e.p.few {
		e.fill(e.scores, code.Int(s.keys*s.panel), 0) // lanes without a query are read, too
	} else {
		e.turn(p.q, e.stage, s.Depth)
	}
	e.fill(p.y, code.Int(s.panel*s.Value), 0)
	e.fill(p.most, code.Int(s.panel), math.Inf(-1))
	e.fill(p.sums, code.Int(s.panel), 0)
}

// step adds a block of keys to a panel: the softmax is relative to the greatest score so
// far, and what was summed relative to an earlier one is multiplied by a factor.
func (e *forward) step(p panel, b block, k, v value.Value) {
	s := e.s
	if e.p.few {
		e.dots(b, k)
	} else {
		e.byKeys(b, e.p.keyRows, e.s.pitch(e.k.K, s.Depth), s.Depth, k, p.q, b.at)
	}
	e.masked(b, e.mask)
	if s.Kept > 0 {
		e.emitter.kept(b, e.kept)
	}
	e.softmax(p, b)
	if e.p.few {
		e.means(b, v, p.y)
		return
	}
	e.multiply(product{rows: e.p.valueRows, vecs: s.vecs, row: 1, step: e.s.pitch(e.k.V, s.Value), b: s.panel, c: s.panel, into: rescale},
		code.Int(s.Value), code.Int(s.Value), s.Value%e.p.valueRows, operands{a: v, b: b.at, c: p.y, factors: e.factors, depth: b.n})
}

// softmax turns the scores of a block into exponentials.
func (e *forward) softmax(p panel, b block) {
	n := e.NewMul(e.parts(b.n, unroll), code.Int(unroll))
	less := e.all(math.Inf(-1))
	most := e.fold(n, unroll, less, func(x value.Value, k value.Value, i, g int64) value.Value {
		return e.larger(e.load(b.at, e.inPanel(k, i, b.pitch, g)), x)
	}, e.larger)
	var bases []value.Value
	for g, m := range most {
		at := code.Int(int64(g) * e.s.lanes)
		old := e.load(p.most, at)
		m = e.larger(m, old)
		e.store(m, p.most, at)
		// A query that has seen no key so far has no greatest score.
		base := e.NewSelect(e.NewFCmp(enum.FPredOEQ, m, less), constant.NewZeroInitializer(e.vec), m)
		bases = append(bases, base)
		e.store(e.exponential(old, base), e.factors, at)
	}
	sums := e.fold(n, 2, constant.NewZeroInitializer(e.vec), func(x value.Value, k value.Value, i, g int64) value.Value {
		at := e.inPanel(k, i, b.pitch, g)
		v := e.exponential(e.load(b.at, at), bases[g])
		out := v
		if e.s.Kept > 0 {
			out = e.NewFMul(v, e.load(e.kept, at))
		}
		e.store(out, b.at, at)
		return e.NewFAdd(x, v)
	}, func(a, b value.Value) value.Value { return e.NewFAdd(a, b) })
	for g, sum := range sums {
		at := code.Int(int64(g) * e.s.lanes)
		e.store(e.muladd(e.load(p.sums, at), e.load(e.factors, at), sum), p.sums, at)
	}
}

// fold joins what each yields for the rows of a block, a few rows at a time.
func (e *emitter) fold(n value.Value, rows int64, begin value.Value, each func(acc, k value.Value, i, g int64) value.Value, join func(a, b value.Value) value.Value) []value.Value {
	var acc []value.Value
	for range rows * e.s.vecs {
		acc = append(acc, begin)
	}
	acc = e.Fold(code.Int(0), n, code.Loop{Step: rows, Unroll: 1}, acc, func(k value.Value, acc []value.Value) (out []value.Value) {
		for i := range rows {
			for g := range e.s.vecs {
				out = append(out, each(acc[i*e.s.vecs+g], k, i, g))
			}
		}
		return out
	})
	out := acc[:e.s.vecs]
	for i := e.s.vecs; i < int64(len(acc)); i++ {
		out[i%e.s.vecs] = join(out[i%e.s.vecs], acc[i])
	}
	return out
}

// finish divides by the sums and stores the results of a panel.
func (e *forward) finish(p panel, part, head, query, live value.Value) {
	s, parts := e.s, e.p.Parts > 1
	factor := func(q value.Value) value.Value {
		sum := e.load(p.sums, q)
		by := value.Value(e.NewFDiv(e.all(1), sum))
		if parts { // one without keys that are seen counts nothing
			by = e.NewSelect(e.NewFCmp(enum.FPredOEQ, sum, e.all(0)), e.all(0), by)
		}
		return by
	}
	rows := e.stage
	if e.p.few {
		rows = p.y
		for g := range s.vecs {
			at := code.Int(g * s.lanes)
			e.store(factor(at), e.factors, at)
		}
	} else {
		e.turnBack(rows, p.y, s.Value, factor)
	}
	e.For(code.Int(0), live, code.Loop{Unroll: 1}, func(i value.Value) {
		row := e.at(rows, e.NewMul(i, code.Int(up(s.Value, s.lanes))))
		e.For(code.Int(0), code.Int(s.Value), code.Loop{Vectorize: true}, func(c value.Value) {
			x := value.Value(e.NewLoad(e.elem, e.at(row, c)))
			if e.p.few {
				x = e.NewFMul(x, e.NewLoad(e.elem, e.at(e.factors, i)))
			}
			if parts {
				e.r.PartY(e.Func, part, head, e.NewAdd(query, i), c, x)
			} else {
				e.r.Y(e.Func, head, e.NewAdd(query, i), c, x)
			}
		})
	})
	if e.r.LSE == nil && !parts {
		return
	}
	unit := 1.0
	if s.plain() {
		unit = math.Ln2
	}
	e.For(code.Int(0), live, code.Loop{Unroll: 1}, func(i value.Value) {
		most := e.NewLoad(e.elem, e.at(p.most, i))
		sum := e.r.Log(e.Func, e.NewLoad(e.elem, e.at(p.sums, i)))
		v := e.NewFAdd(e.NewFMul(most, e.number(unit)), sum)
		if parts {
			e.r.PartLSE(e.Func, part, head, e.NewAdd(query, i), v)
			return
		}
		// A query that sees no key makes NaN of what it touches, as minus infinity less itself is.
		e.r.LSE(e.Func, head, e.NewAdd(query, i), e.NewFAdd(v, e.NewFSub(most, most)))
	})
}
