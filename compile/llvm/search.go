package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"

	"github.com/llir/llvm/ir/value"
)

// search halves the range in which the first element is for which the predicate of x does not hold.
func (e *emitter) search(x *kernel.Expr) value.Value {
	e.hoist(x.Args[0])
	ends := e.While([]value.Value{code.Int(0), code.Int(x.Vars[0].Max + 1)}, func(acc []value.Value) value.Value {
		return e.NewICmp(less, acc[0], acc[1])
	}, func(acc []value.Value) (out []value.Value) {
		middle := e.NewLShr(e.NewAdd(acc[0], acc[1]), code.Int(1))
		e.within(func() {
			e.bind(x.Vars[0], middle)
			holds := e.value(x.Args[0])
			out = []value.Value{e.NewSelect(holds, e.NewAdd(middle, code.Int(1)), acc[0]), e.NewSelect(holds, acc[1], middle)}
		})
		return out
	})
	return e.number(x, ends[0])
}

// number is n, an index that is not negative, as an integer of the type of x.
func (e *emitter) number(x *kernel.Expr, n value.Value) value.Value {
	if t := scalar.Register(x.Elem); !t.Equal(code.Index) {
		return e.NewTrunc(n, t)
	}
	return n
}

// longSegment is the mean length of segments from which a loop over one is worth vectors.
const longSegment = 8

// overSegment is the reduction x over the elements of its segment.
func (e *emitter) overSegment(x *kernel.Expr, begin value.Value) value.Value {
	how := code.Loop{Vectorize: x.Span.Mean >= longSegment}
	return e.fold(x.Vars[0], e.index(x.Span.From), e.index(x.Span.To), how, []value.Value{begin}, func(_ value.Value, acc []value.Value) []value.Value {
		return []value.Value{e.step(x, x.Args[0], acc[0])}
	})[0]
}
