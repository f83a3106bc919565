package gemm

import (
	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// sliver is how a packed sliver of A lies in memory: in the order in which its elements
// were neighbours, so that packing moves whole vectors. The micro-kernel broadcasts
// single elements and does not mind.
type sliver struct {
	row, step int64 // distance of rows, and of steps of k
	size      int64 // of a sliver
	count     int64 // slivers that are packed at once
}

func (p Plan) sliver() sliver {
	if p.Shape.A == blocks.Depth {
		return sliver{row: p.KC, step: 1, size: p.MR * p.KC, count: 1}
	}
	// Whole vectors reach beyond the last row.
	return sliver{row: 1, step: p.MR, size: p.MR*p.KC + p.Lanes(), count: ceil(p.MC, p.MR)}
}

// packSliver packs a sliver of A of which neighbours along k lie side by side: MR rows,
// by the depth of ks, each padded with zeros.
func (e *emitter) packSliver(z value.Value, rows, ks span) {
	row := code.Int(e.p.KC)
	padded := e.padded(ks)
	e.For(code.Int(0), rows.n, code.Loop{Unroll: 1}, func(r value.Value) {
		to := e.Element(e.elem, e.a, e.NewMul(r, row))
		e.For(code.Int(0), ks.n, code.Loop{Vectorize: true}, func(k value.Value) {
			x := e.element(func() value.Value {
				return e.kernel.A(e.Func, z, e.NewAdd(rows.from, r), e.NewAdd(ks.from, k))
			})
			e.private(e.NewStore(x, e.Element(e.elem, to, k)))
		})
		if padded != ks.n {
			e.clear(to, ks.n, padded)
		}
	})
	if !rows.whole {
		e.clear(e.a, e.NewMul(rows.n, row), code.Int(e.p.MR*e.p.KC))
	}
}

// stageRows is how many rows of k are evaluated before they are distributed to slivers.
const stageRows = 8

// stageRow is the distance of rows in the stage of A: those of a block, and what whole
// vectors read beyond them.
func (p Plan) stageRow() int64 { return up(p.MC, p.MR) + p.Lanes() }

// packBlock packs all slivers of a block of A of which neighbours along m lie side by
// side. It evaluates a few rows of k in full length, and then copies vectors of MR
// elements at least; what is too much the next step of k overwrites.
func (e *emitter) packBlock(z value.Value, rows, ks span) {
	p, l := e.p, e.p.sliver()
	slivers := e.parts(rows.n, p.MR)
	sliverAt := func(i value.Value) value.Value { return e.Element(e.elem, e.a, e.NewMul(i, code.Int(l.size))) }
	e.For(code.Int(0), ks.n, code.Loop{Step: stageRows, Unroll: 1}, func(first value.Value) {
		n := least(e.Func, code.Int(stageRows), e.NewSub(ks.n, first))
		e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(k value.Value) {
			to := e.Element(e.elem, e.stage, e.NewMul(k, code.Int(p.stageRow())))
			e.For(code.Int(0), rows.n, code.Loop{Vectorize: true}, func(m value.Value) {
				x := e.element(func() value.Value {
					return e.kernel.A(e.Func, z, e.NewAdd(rows.from, m), e.NewAdd(ks.from, e.NewAdd(first, k)))
				})
				e.private(e.NewStore(x, e.Element(e.elem, to, m)))
			})
			if !rows.whole || p.MC%p.MR != 0 {
				e.clear(to, rows.n, e.NewMul(slivers, code.Int(p.MR)))
			}
		})
		e.For(code.Int(0), slivers, code.Loop{Unroll: 1}, func(i value.Value) {
			to := e.Element(e.elem, sliverAt(i), e.NewMul(first, code.Int(p.MR)))
			from := e.Element(e.elem, e.stage, e.NewMul(i, code.Int(p.MR)))
			e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(k value.Value) {
				for r := int64(0); r < p.MR; r += p.Lanes() {
					x := e.load(from, e.NewAdd(e.NewMul(k, code.Int(p.stageRow())), code.Int(r)))
					e.store(x, to, e.NewAdd(e.NewMul(k, code.Int(p.MR)), code.Int(r)))
				}
			})
		})
	})
	padded := e.padded(ks)
	if padded == ks.n {
		return
	}
	e.For(code.Int(0), slivers, code.Loop{Unroll: 1}, func(i value.Value) {
		e.clear(sliverAt(i), e.NewMul(ks.n, code.Int(p.MR)), e.NewMul(padded, code.Int(p.MR)))
	})
}
