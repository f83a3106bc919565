package attend

import (
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Parts are the results of the parts of keys.
type Parts struct {
	Y   func(f *code.Func, part, head, query, col value.Value) value.Value // or dQ
	LSE func(f *code.Func, part, head, query value.Value) value.Value      // of an attention
}

// joinRows is the number of queries of a task that joins parts.
const joinRows = 64

// JoinTasks is the number of tasks of Join.
func (s *sizes) JoinTasks() int64 { return ceil(s.Heads*s.Queries, joinRows) }

// joined visits the queries of the tasks from first on, below last.
func (e *emitter) joined(first, last value.Value, visit func(head, query value.Value)) {
	s := e.s
	end := e.least(e.NewMul(last, code.Int(joinRows)), code.Int(s.Heads*s.Queries))
	e.For(e.NewMul(first, code.Int(joinRows)), end, code.Loop{Unroll: 1}, func(row value.Value) {
		visit(e.NewUDiv(row, code.Int(s.Queries)), e.NewURem(row, code.Int(s.Queries)))
	})
}

// Join appends the sums of the parts' dQ.
func (p *Backward) Join(f *code.Func, first, last value.Value, from Parts, to Store) {
	e := p.sizes.emitter(f, Kernel{})
	e.joined(first, last, func(head, query value.Value) {
		e.For(code.Int(0), code.Int(p.Depth), code.Loop{Vectorize: true}, func(c value.Value) {
			sum := from.Y(f, code.Int(0), head, query, c)
			for i := int64(1); i < p.Parts; i++ {
				sum = e.NewFAdd(sum, from.Y(f, code.Int(i), head, query, c))
			}
			to(f, head, query, c, sum)
		})
	})
}

// Join appends the means of the parts' results, each weighted by the sum of its
// exponentials. Where no part has seen a key they are NaN.
func (p *Forward) Join(f *code.Func, first, last value.Value, from Parts, to Results) {
	e := p.sizes.emitter(f, Kernel{})
	e.joined(first, last, func(head, query value.Value) {
		var sums, weights []value.Value
		most := value.Value(e.all(0))
		for i := range p.Parts {
			x := e.splat(from.LSE(f, code.Int(i), head, query))
			if sums = append(sums, x); i == 0 {
				most = x
			}
			most = e.larger(x, most)
		}
		total := value.Value(constant.NewZeroInitializer(e.vec))
		for _, x := range sums {
			w := e.power(e.NewFMul(e.NewFSub(x, most), e.all(log2E)))
			total = e.NewFAdd(total, w)
			weights = append(weights, e.lane(w))
		}
		sum := e.lane(total)
		e.For(code.Int(0), code.Int(p.Value), code.Loop{Vectorize: true}, func(c value.Value) {
			mean := value.Value(e.number(0))
			for i, w := range weights {
				mean = e.NewFAdd(mean, e.NewFMul(w, from.Y(f, code.Int(int64(i)), head, query, c)))
			}
			to.Y(f, head, query, c, e.NewFDiv(mean, sum))
		})
		if to.LSE != nil {
			to.LSE(f, head, query, e.NewFAdd(e.lane(most), to.Log(f, sum)))
		}
	})
}

// lane is the first lane of a vector.
func (v vectors) lane(x value.Value) value.Value {
	return v.NewExtractElement(x, constant.NewInt(types.I32, 0))
}
