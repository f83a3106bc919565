package gemm

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// vectors emits operations on vectors of sums.
type vectors struct {
	*code.Func
	p    Plan
	elem types.Type
	vec  *types.VectorType
}

func (p Plan) vectors(f *code.Func) vectors {
	elem := TypeOf(p.Shape.Acc)
	return vectors{f, p, elem, types.NewVector(uint64(p.Lanes()), elem)}
}

// load loads a vector from element i of the array at a.
func (v vectors) load(a, i value.Value) value.Value {
	l := v.NewLoad(v.vec, v.NewBitCast(v.Element(v.elem, a, i), types.NewPointer(v.vec)))
	l.Align = ir.Align(v.p.Shape.Acc.Size())
	return l
}

// store stores a vector from element i of the array at a.
func (v vectors) store(x, a, i value.Value) {
	s := v.NewStore(x, v.NewBitCast(v.Element(v.elem, a, i), types.NewPointer(v.vec)))
	s.Align = ir.Align(v.p.Shape.Acc.Size())
}

// prefetch asks for n elements from element i of the array at a.
func (v vectors) prefetch(a value.Value, i, n int64) {
	size := v.p.Shape.Acc.Size()
	v.Prefetch(a, code.Int(i*size), n*size, code.L1)
}

// muladd is sum + a·b.
func (v vectors) muladd(a, b, sum value.Value) value.Value {
	switch {
	case v.p.Shape.Half:
		return v.half(v.NewFAdd(sum, v.half(v.NewFMul(a, b))))
	case !v.p.Shape.Acc.Float():
		return v.NewAdd(sum, v.NewMul(a, b))
	}
	name := "llvm.fmuladd"
	if v.p.Machine.FMA {
		name = "llvm.fma"
	}
	name += fmt.Sprintf(".v%df%d", v.vec.Len, v.p.Shape.Acc.Size()*8)
	return v.Call(v.M.Declare(name, v.vec, v.vec, v.vec, v.vec), a, b, sum)
}
