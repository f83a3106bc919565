package attend

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// Where there are a few queries memory limits an attention, and most lanes of their
// panel are idle. Then keys are read row by row, in the order in which they lie, with
// the depth in the lanes, and values likewise; results are rows of queries. Only scores
// are as elsewhere.

// fewQueries and fewVectors bound the queries, and the vectors of a row.
const (
	fewQueries = 4
	fewVectors = 32
)

// isFew reports whether s is computed so.
func (s *sizes) isFew() bool {
	return s.Queries <= min(fewQueries, s.panel) && s.Depth%s.lanes == 0 && s.Value%s.lanes == 0 && max(s.Depth, s.Value) <= fewVectors*s.lanes
}

// dots computes the scores of a block.
func (e *forward) dots(b block, k value.Value) {
	s := e.s
	pitch := e.s.pitch(e.k.K, s.Depth)
	e.For(code.Int(0), b.n, code.Loop{Unroll: 1}, func(key value.Value) {
		row := e.at(k, e.NewMul(key, code.Int(pitch)))
		sums := make([]value.Value, s.Queries)
		for d := int64(0); d < s.Depth; d += s.lanes {
			x := e.load(row, code.Int(d))
			for q := range s.Queries {
				y := e.load(e.stage, code.Int(q*s.Depth+d))
				if d == 0 {
					sums[q] = e.NewFMul(x, y)
				} else {
					sums[q] = e.muladd(x, y, sums[q])
				}
			}
		}
		for q, sum := range sums {
			e.NewStore(e.total(sum), e.at(b.at, e.NewAdd(e.NewMul(key, code.Int(b.pitch)), code.Int(int64(q)))))
		}
	})
}

// total is the sum of the lanes of x.
func (v vectors) total(x value.Value) value.Value {
	name := fmt.Sprintf("llvm.vector.reduce.fadd.v%df%d", v.vec.Len, v.s.size()*8)
	c := v.NewCall(v.M.Declare(name, v.elem, v.elem, v.vec), v.number(0), x)
	c.FastMathFlags = []enum.FastMathFlag{enum.FastMathFlagReassoc}
	return c
}

// means adds the values of a block, weighted by its exponentials, to the results.
func (e *forward) means(b block, v, y value.Value) {
	s := e.s
	for q := range s.Queries {
		by := e.splat(e.NewLoad(e.elem, e.at(e.factors, code.Int(q))))
		e.For(code.Int(q*s.Value), code.Int((q+1)*s.Value), code.Loop{Step: s.lanes}, func(i value.Value) {
			e.store(e.NewFMul(e.load(y, i), by), y, i)
		})
	}
	vecs := s.Value / s.lanes
	each := ceil(vecs, ceil(vecs, (s.machine.Registers-1)/(s.Queries+1)))
	for from := int64(0); from < vecs; from += each {
		p := product{rows: s.Queries, vecs: min(each, vecs-from), row: 1, step: b.pitch, b: e.s.pitch(e.k.V, s.Value), c: s.Value, into: add}
		at := code.Int(from * s.lanes)
		e.multiply(p, code.Int(s.Queries), code.Int(s.Queries), 0, operands{a: b.at, b: e.at(v, at), c: e.at(y, at), depth: b.n})
	}
}
