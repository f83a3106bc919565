package attend

import (
	"math"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// queries is a block of queries of one head.
type queries struct{ matrix, head, first, n, panels value.Value }

// seen is the end of the keys below to that b sees.
func (e *backward) seen(b queries, to value.Value) value.Value {
	if !e.p.skips() {
		return to
	}
	return e.least(to, e.NewAdd(e.NewAdd(b.first, b.n), code.Int(e.p.shift())))
}

// begin stages a block of queries: q and dy as rows and turned, and what each query adds
// to its scores and slopes.
func (e *backward) begin(b queries) {
	p := e.p
	row := func(r value.Value) value.Value { return e.NewAdd(b.first, r) }
	total := e.NewMul(b.panels, code.Int(p.panel))
	e.stage(e.q, p.Depth, b.n, total, func(r, c value.Value) value.Value {
		return e.NewFMul(e.k.Q.Load(e.Func, b.head, row(r), c), e.number(p.factor()))
	})
	e.stage(e.dy, p.Value, b.n, total, func(r, c value.Value) value.Value { return e.g.DY(e.Func, b.head, row(r), c) })
	e.For(code.Int(0), b.panels, code.Loop{Unroll: 1}, func(i value.Value) {
		e.turn(e.panelOf(e.turnedQ, p.Depth, i), e.panelOf(e.q, p.Depth, i), p.Depth)
		e.turn(e.panelOf(e.turnedDY, p.Value, i), e.panelOf(e.dy, p.Value, i), p.Value)
	})
	e.For(code.Int(0), b.n, code.Loop{Unroll: 1}, func(r value.Value) {
		dy := e.at(e.dy, e.NewMul(r, code.Int(up(p.Value, p.lanes))))
		sum := e.Fold(code.Int(0), code.Int(p.Value), code.Loop{Vectorize: true}, []value.Value{e.number(0)}, func(c value.Value, acc []value.Value) []value.Value {
			x := e.NewFAdd(acc[0], e.NewFMul(e.NewLoad(e.elem, e.at(dy, c)), e.g.Y(e.Func, b.head, row(r), c)))
			x.FastMathFlags = []enum.FastMathFlag{enum.FastMathFlagReassoc}
			return []value.Value{x}
		})
		e.NewStore(sum[0], e.at(e.delta, r))
		lse := e.g.LSE(e.Func, b.head, row(r))
		if p.plain() {
			lse = e.NewFMul(lse, e.number(log2E))
		}
		e.NewStore(lse, e.at(e.lse, r))
	})
	// The probabilities of the lanes that are left over are 0.
	e.For(b.n, total, code.Loop{Unroll: 1}, func(r value.Value) {
		e.NewStore(e.number(0), e.at(e.delta, r))
		e.NewStore(e.number(math.Inf(1)), e.at(e.lse, r))
	})
}

// panelOf is panel i of an array with a row of the given width for each query.
func (e *backward) panelOf(base value.Value, width int64, i value.Value) value.Value {
	return e.at(base, e.NewMul(i, code.Int(e.p.panel*up(width, e.p.lanes))))
}

// step adds a block of keys, at row number row of the sums of the task.
func (e *backward) step(b queries, key, row value.Value) {
	p := e.p
	limit := e.span(key, p.keys, p.Keys)
	k := e.rows(e.k.K, p.Depth, e.keys, b.matrix, key, limit)
	v := e.rows(e.k.V, p.Value, e.values, b.matrix, key, limit)
	most := e.behind(e.NewAdd(b.first, e.NewSub(b.n, code.Int(1))), key, limit)
	e.For(code.Int(0), b.panels, code.Loop{Unroll: 1}, func(i value.Value) {
		s := e.blockOf(b, i, key, limit)
		e.If(e.NewICmp(enum.IPredSGT, s.n, code.Int(0)), func() {
			e.slope(s, i, k, v)
			if e.g.DQ == nil && e.g.Partial == nil {
				return
			}
			dq := product{rows: p.depthRows, vecs: p.vecs, row: 1, step: e.s.pitch(e.k.K, p.Depth), b: p.pitch, c: p.panel, into: add}
			e.multiply(dq, code.Int(p.Depth), code.Int(p.Depth), p.Depth%p.depthRows, operands{a: k, b: e.column0(e.slopes, i), c: e.panelOf(e.dq, p.Depth, i), depth: s.n})
		})
		// Keys that only later panels see, and rows of the last tile.
		e.For(s.n, e.NewAdd(most, code.Int(mostRows)), code.Loop{Unroll: 1}, func(k value.Value) {
			for _, to := range []value.Value{e.probs, e.slopes} {
				e.fill(e.at(e.column0(to, i), e.NewMul(k, code.Int(p.pitch))), code.Int(p.panel), 0)
			}
		})
	})
	depth := e.NewMul(b.panels, code.Int(p.panel))
	if e.g.DV != nil {
		e.byColumns(e.probs, e.dy, e.dv, p.Value, row, most, depth)
	}
	if e.g.DK != nil {
		e.byColumns(e.slopes, e.q, e.dk, p.Depth, row, most, depth)
	}
}

// column0 is where panel i of a block of scores begins.
func (e *backward) column0(base, i value.Value) value.Value {
	return e.at(base, e.NewMul(i, code.Int(e.p.panel)))
}

// blockOf is the block of scores of panel i.
func (e *backward) blockOf(b queries, i, key, limit value.Value) block {
	p := e.p
	query := e.NewAdd(b.first, e.NewMul(i, code.Int(p.panel)))
	live := e.span(query, p.panel, p.Queries)
	n := e.behind(e.NewAdd(query, e.NewSub(live, code.Int(1))), key, limit)
	return block{at: e.column0(e.probs, i), pitch: p.pitch, head: b.head, query: query, live: live, key: key, n: n, limit: limit}
}

// behind is how many of limit keys from key on a query sees.
func (e *backward) behind(query, key, limit value.Value) value.Value {
	if !e.p.skips() {
		return limit
	}
	n := e.NewSub(e.NewAdd(query, code.Int(e.p.shift()+1)), key)
	return e.most(e.least(limit, n), code.Int(0))
}

// slope computes the probabilities of a block, as they are after dropout, and the slopes
// of its scores: p · (dropout(dy vᵀ) - Σ dy · y).
func (e *backward) slope(b block, i, k, v value.Value) {
	p := e.p
	slopes := e.column0(e.slopes, i)
	e.byKeys(b, p.keyRows, e.s.pitch(e.k.K, p.Depth), p.Depth, k, e.panelOf(e.turnedQ, p.Depth, i), b.at)
	e.byKeys(b, p.keyRows, e.s.pitch(e.k.V, p.Value), p.Value, v, e.panelOf(e.turnedDY, p.Value, i), slopes)
	e.masked(b, e.mask)
	kept := e.column0(e.kept, i)
	if p.Kept > 0 {
		e.emitter.kept(b, kept)
	}
	var lse, delta []value.Value
	for g := range p.vecs {
		at := e.NewAdd(e.NewMul(i, code.Int(p.panel)), code.Int(g*p.lanes))
		lse, delta = append(lse, e.load(e.lse, at)), append(delta, e.load(e.delta, at))
	}
	e.For(code.Int(0), b.n, code.Loop{Unroll: 1}, func(key value.Value) {
		for g := range p.vecs {
			at := e.inPanel(key, 0, p.pitch, g)
			prob := e.power(e.bounded(e.inTwos(e.NewFSub(e.load(b.at, at), lse[g]))))
			slope := e.load(slopes, at)
			out := prob
			if p.Kept > 0 {
				keep := e.load(kept, at)
				slope, out = e.NewFMul(slope, keep), e.NewFMul(prob, keep)
			}
			e.store(e.NewFMul(prob, e.NewFSub(slope, delta[g])), slopes, at)
			e.store(out, b.at, at)
		}
	})
}

// byColumns adds to the sums of n keys the product of a block of scores, whose queries
// are the depth, and staged rows of these queries.
func (e *backward) byColumns(scores, rows, sums value.Value, width int64, row, n, depth value.Value) {
	s := e.s
	vecs := up(width, s.lanes) / s.lanes
	each := ceil(vecs, ceil(vecs, tileVecs(s)))
	pitch := up(width, s.lanes)
	sums = e.at(sums, e.NewMul(row, code.Int(pitch)))
	tile := func(vecs int64, from value.Value) {
		p := product{rows: s.most(vecs), vecs: vecs, row: e.p.pitch, step: 1, b: pitch, c: pitch, into: add}
		e.multiply(p, n, e.NewAdd(n, code.Int(p.rows)), 0, operands{a: scores, b: e.at(rows, from), c: e.at(sums, from), depth: depth})
	}
	whole := vecs / each * each
	e.For(code.Int(0), code.Int(whole*s.lanes), code.Loop{Step: each * s.lanes, Unroll: 1}, func(c value.Value) { tile(each, c) })
	if whole < vecs {
		tile(vecs-whole, code.Int(whole*s.lanes))
	}
}

// finishQueries stores dQ of a block.
func (e *backward) finishQueries(b queries, part value.Value) {
	p := e.p
	if e.g.DQ == nil && e.g.Partial == nil {
		return
	}
	e.For(code.Int(0), b.panels, code.Loop{Unroll: 1}, func(i value.Value) {
		e.turnBack(e.panelOf(e.q, p.Depth, i), e.panelOf(e.dq, p.Depth, i), p.Depth, func(value.Value) value.Value { return e.all(p.Scale) })
	})
	e.For(code.Int(0), b.n, code.Loop{Unroll: 1}, func(r value.Value) {
		row, query := e.at(e.q, e.NewMul(r, code.Int(up(p.Depth, p.lanes)))), e.NewAdd(b.first, r)
		e.For(code.Int(0), code.Int(p.Depth), code.Loop{Vectorize: true}, func(c value.Value) {
			x := e.NewLoad(e.elem, e.at(row, c))
			if p.Parts > 1 {
				e.g.Partial(e.Func, part, b.head, query, c, x)
			} else {
				e.g.DQ(e.Func, b.head, query, c, x)
			}
		})
	})
}

// finishKeys stores dK or dV of a part.
func (e *backward) finishKeys(to Store, sums value.Value, width int64, unit float64, matrix, first, n value.Value) {
	if to == nil {
		return
	}
	e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(r value.Value) {
		row := e.at(sums, e.NewMul(r, code.Int(up(width, e.s.lanes))))
		e.For(code.Int(0), code.Int(width), code.Loop{Vectorize: true}, func(c value.Value) {
			x := value.Value(e.NewLoad(e.elem, e.at(row, c)))
			if unit != 1 {
				x = e.NewFMul(x, e.number(unit))
			}
			to(e.Func, matrix, e.NewAdd(first, r), c, x)
		})
	})
}
