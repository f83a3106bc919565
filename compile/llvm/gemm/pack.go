package gemm

import (
	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// span is a range of an index, at most size long: whole where it always has that length.
type span struct {
	from, n value.Value
	size    int64
	whole   bool
}

// spanOf is the range of size that begins at from, cut off at the end of total elements.
func spanOf(f *code.Func, from value.Value, size, total int64) span {
	if total%size == 0 {
		return span{from, code.Int(size), size, true}
	}
	return span{from, least(f, code.Int(size), f.NewSub(code.Int(total), from)), size, false}
}

// least is the smaller of two indices.
func least(f *code.Func, a, b value.Value) value.Value {
	return f.NewSelect(f.NewICmp(enum.IPredSLT, a, b), a, b)
}

// zero is 0 of the type of the sums.
func (p Plan) zero() constant.Constant {
	if t, ok := TypeOf(p.Shape.Acc).(*types.IntType); ok {
		return constant.NewInt(t, 0)
	}
	return constant.NewFloat(TypeOf(p.Shape.Acc).(*types.FloatType), 0)
}

// clear stores zeros to elements first to last.
func (e *emitter) clear(to, first, last value.Value) {
	e.For(first, last, code.Loop{Vectorize: true}, func(i value.Value) {
		e.private(e.NewStore(e.p.zero(), e.Element(e.elem, to, i)))
	})
}

// full emits body for a constant length where the range has it and, if the range may be
// cut off, once more for the other case: loops with a constant count are vectors without
// a rest.
func (e *emitter) full(s span, body func(n value.Value)) {
	if s.whole {
		body(s.n)
		return
	}
	e.If(e.NewICmp(enum.IPredEQ, s.n, code.Int(s.size)), func() { body(code.Int(s.size)) })
	e.If(e.NewICmp(enum.IPredNE, s.n, code.Int(s.size)), func() { body(s.n) })
}

// padded is the depth of ks as the micro-kernel runs it.
func (e *emitter) padded(ks span) value.Value {
	if e.p.Shape.Depth%blocks.Unroll == 0 && e.kernel.Depth == nil || e.p.Shape.Window != nil {
		return ks.n // KC is a multiple of it, too; or channels are not unrolled
	}
	return e.NewAnd(e.NewAdd(ks.n, code.Int(blocks.Unroll-1)), code.Int(-blocks.Unroll))
}
