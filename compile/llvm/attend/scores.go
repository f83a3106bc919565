package attend

import (
	"math"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// block is a block of scores, a row for each key and a lane for each query of a panel.
type block struct {
	at    value.Value // the first score
	pitch int64       // distance of rows
	head  value.Value
	query value.Value // the first query
	live  value.Value // queries of the panel
	key   value.Value // the first key
	n     value.Value // keys
	limit value.Value // keys of the whole block, n or more
}

// byKeys computes a product of rows of keys and a panel of queries, which is turned.
func (e *emitter) byKeys(b block, rows int64, pitch, width int64, keys, queries, to value.Value) {
	p := product{rows: rows, vecs: e.s.vecs, row: pitch, step: 1, b: e.s.panel, c: b.pitch, into: overwrite}
	e.multiply(p, b.n, b.limit, e.s.Keys%rows, operands{a: keys, b: queries, c: to, depth: code.Int(width)})
}

// masked turns products into scores: of keys behind a query, and of the rows that round
// n up to whole steps, they are minus infinity. stage is memory for a part of the mask.
func (e *emitter) masked(b block, stage value.Value) {
	if e.s.Mask.Given {
		e.addMask(b, stage)
	}
	if e.s.Causal {
		e.hideLater(b)
	}
	less := e.all(math.Inf(-1))
	e.For(b.n, e.NewMul(e.parts(b.n, unroll), code.Int(unroll)), code.Loop{Unroll: 1}, func(k value.Value) {
		for g := range e.s.vecs {
			e.store(less, b.at, e.inPanel(k, 0, b.pitch, g))
		}
	})
}

// update replaces a vector of scores.
func (e *emitter) update(b block, at value.Value, change func(x value.Value) value.Value) {
	e.store(change(e.load(b.at, at)), b.at, at)
}

func (e *emitter) addMask(b block, stage value.Value) {
	if !e.s.Mask.Rows {
		e.For(code.Int(0), b.n, code.Loop{}, func(k value.Value) {
			x := e.splat(e.k.Mask(e.Func, b.head, b.query, e.NewAdd(b.key, k)))
			for g := range e.s.vecs {
				e.update(b, e.inPanel(k, 0, b.pitch, g), func(y value.Value) value.Value { return e.NewFAdd(y, x) })
			}
		})
		return
	}
	pitch := up(e.s.keys, e.s.lanes)
	e.For(code.Int(0), b.live, code.Loop{Unroll: 1}, func(q value.Value) {
		row := e.at(stage, e.NewMul(q, code.Int(pitch)))
		e.For(code.Int(0), b.n, code.Loop{Vectorize: true}, func(k value.Value) {
			e.NewStore(e.k.Mask(e.Func, b.head, e.NewAdd(b.query, q), e.NewAdd(b.key, k)), e.at(row, k))
		})
	})
	e.For(b.live, code.Int(e.s.panel), code.Loop{Unroll: 1}, func(q value.Value) {
		e.fill(e.at(stage, e.NewMul(q, code.Int(pitch))), b.n, 0)
	})
	e.squares(b.n, func(q, k value.Value) {
		for i, x := range e.column(stage, pitch, q, k) {
			e.update(b, e.NewAdd(e.inPanel(k, int64(i), b.pitch, 0), q), func(y value.Value) value.Value { return e.NewFAdd(y, x) })
		}
	})
}

// hideLater hides keys from the queries before them. All of the panel see those up to
// the limit of its first query.
func (e *emitter) hideLater(b block) {
	behind := e.NewSub(e.NewAdd(b.query, code.Int(e.s.shift())), b.key) // the last key of the first query
	less := e.all(math.Inf(-1))
	t := e.ints.ElemType.(*types.IntType)
	e.For(e.most(e.NewAdd(behind, code.Int(1)), code.Int(0)), b.n, code.Loop{Unroll: 1}, func(k value.Value) {
		from := value.Value(e.NewSub(k, behind)) // the first query that sees it
		if t.BitSize < 64 {
			from = e.NewTrunc(from, t)
		}
		from = e.splat(from)
		for g := range e.s.vecs {
			var numbers []constant.Constant
			for i := range e.s.lanes {
				numbers = append(numbers, constant.NewInt(t, g*e.s.lanes+i))
			}
			sees := e.NewICmp(enum.IPredSGE, constant.NewVector(e.ints, numbers...), from)
			e.update(b, e.inPanel(k, 0, b.pitch, g), func(x value.Value) value.Value { return e.NewSelect(sees, x, less) })
		}
	})
}

// kept stores what dropout multiplies each probability by, to memory like the scores'.
func (e *emitter) kept(b block, to value.Value) {
	e.For(code.Int(0), e.NewMul(e.parts(b.n, unroll), code.Int(unroll)), code.Loop{Unroll: 1}, func(k value.Value) {
		row := e.at(to, e.NewMul(k, code.Int(b.pitch)))
		e.For(code.Int(0), code.Int(e.s.panel), code.Loop{Vectorize: true}, func(i value.Value) {
			keep := e.k.Keep(e.Func, b.head, e.NewAdd(b.query, i), e.NewAdd(b.key, k))
			e.NewStore(e.NewSelect(keep, e.number(e.s.Kept), e.number(0)), e.at(row, i))
		})
	})
}

// exponential is e^(score - other), where both are scores as they are kept.
func (e *emitter) exponential(x, other value.Value) value.Value {
	return e.power(e.inTwos(e.NewFSub(x, other)))
}

// inTwos is the difference of two scores as an exponent of 2.
func (e *emitter) inTwos(x value.Value) value.Value {
	if e.s.plain() {
		return x
	}
	return e.NewFMul(x, e.all(log2E))
}
