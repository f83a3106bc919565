package gemm

import (
	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// packB packs a block of B, for the columns cols and the depth of ks, as panels of NR
// columns, each a row of NR neighbours for each k. Columns and depth are padded with
// zeros.
func (e *emitter) packB(product int, to, z value.Value, cols, ks span) {
	get := func(n, k value.Value) value.Value {
		return e.element(func() value.Value {
			return e.kernel.B[product](e.Func, z, e.NewAdd(cols.from, n), e.NewAdd(ks.from, k))
		})
	}
	panels := e.parts(cols.n, e.p.NR)
	panel := func(j value.Value) (value.Value, span) {
		from := e.NewMul(j, code.Int(e.p.NR))
		n := span{from: from, size: e.p.NR, whole: e.p.Shape.Cols%e.p.NR == 0, n: code.Int(e.p.NR)}
		if !n.whole {
			n.n = least(e.Func, n.n, e.NewSub(cols.n, from))
		}
		return e.Element(e.elem, to, e.NewMul(j, code.Int(e.p.NR*e.p.Deep()))), n
	}
	if e.p.Shape.B == blocks.Outer {
		e.packRows(panels, ks, panel, get)
	} else {
		e.packColumns(panels, ks, panel, get)
	}
}

// packRows packs B where neighbours along n lie side by side. A few rows at a time, all
// panels take their part of them, so that pages of memory are visited once.
func (e *emitter) packRows(panels value.Value, ks span, panel func(j value.Value) (value.Value, span), get func(n, k value.Value) value.Value) {
	const rows = 16
	e.For(code.Int(0), ks.n, code.Loop{Step: rows, Unroll: 1}, func(first value.Value) {
		last := least(e.Func, e.NewAdd(first, code.Int(rows)), ks.n)
		e.For(code.Int(0), panels, code.Loop{Unroll: 1}, func(j value.Value) {
			at, cols := panel(j)
			e.full(cols, func(n value.Value) {
				e.For(first, last, code.Loop{Unroll: 1}, func(k value.Value) {
					row := e.Element(e.elem, at, e.NewMul(k, code.Int(e.p.NR)))
					e.For(code.Int(0), n, code.Loop{Vectorize: true, Unroll: 1}, func(i value.Value) {
						x := get(e.NewAdd(cols.from, i), k)
						e.private(e.NewStore(x, e.Element(e.elem, row, i)))
					})
					if n == cols.n && !cols.whole {
						e.clear(row, n, code.Int(e.p.NR))
					}
				})
			})
		})
	})
	padded := e.padded(ks)
	if padded == ks.n {
		return
	}
	e.For(code.Int(0), panels, code.Loop{Unroll: 1}, func(j value.Value) {
		at, _ := panel(j)
		e.clear(at, e.NewMul(ks.n, code.Int(e.p.NR)), e.NewMul(padded, code.Int(e.p.NR)))
	})
}

// packColumns packs B where neighbours along k lie side by side: it evaluates a few of
// each column to a stage in the L1 cache, and transposes that in registers.
func (e *emitter) packColumns(panels value.Value, ks span, panel func(j value.Value) (value.Value, span), get func(n, k value.Value) value.Value) {
	deep, lanes, nr := e.p.stage(), e.p.Lanes(), e.p.NR
	stage := func(n, k value.Value) value.Value { return e.NewAdd(e.NewMul(n, code.Int(deep)), k) }
	e.For(code.Int(0), panels, code.Loop{Unroll: 1}, func(j value.Value) {
		at, cols := panel(j)
		e.For(code.Int(0), ks.n, code.Loop{Step: deep, Unroll: 1}, func(first value.Value) {
			depth := least(e.Func, code.Int(deep), e.NewSub(ks.n, first))
			e.For(code.Int(0), cols.n, code.Loop{Unroll: 1}, func(n value.Value) {
				e.For(code.Int(0), depth, code.Loop{Vectorize: true}, func(k value.Value) {
					x := get(e.NewAdd(cols.from, n), e.NewAdd(first, k))
					e.private(e.NewStore(x, e.Element(e.elem, e.stage, stage(n, k))))
				})
				if e.p.Shape.Depth%lanes != 0 {
					rest := e.NewAnd(e.NewAdd(depth, code.Int(lanes-1)), code.Int(-lanes))
					e.clear(e.stage, stage(n, depth), stage(n, rest))
				}
			})
			if !cols.whole {
				e.clear(e.stage, stage(cols.n, code.Int(0)), stage(code.Int(nr), code.Int(0)))
			}
			e.For(code.Int(0), depth, code.Loop{Step: lanes, Unroll: 1}, func(k value.Value) {
				row := e.NewMul(e.NewAdd(first, k), code.Int(nr))
				for n := int64(0); n < nr; n += lanes {
					square := make([]value.Value, lanes)
					for i := range square {
						square[i] = e.load(e.stage, stage(code.Int(n+int64(i)), k))
					}
					for i, x := range e.Transpose(square, e.p.Shape.Acc.Size()) {
						e.store(x, at, e.NewAdd(row, code.Int(int64(i)*nr+n)))
					}
				}
			})
		})
	})
}
