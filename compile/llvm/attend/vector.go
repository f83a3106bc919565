package attend

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// vectors emits operations on vectors.
type vectors struct {
	*code.Func
	s    *sizes
	elem *types.FloatType
	vec  *types.VectorType
	ints *types.VectorType // of the same width
}

func (s *sizes) vectors(f *code.Func) vectors {
	n := uint64(s.lanes)
	return vectors{f, s, s.elem(), types.NewVector(n, s.elem()), types.NewVector(n, types.NewInt(uint64(s.size()*8)))}
}

// at is the address of element i of the array at a.
func (v vectors) at(a, i value.Value) value.Value { return v.Element(v.elem, a, i) }

// load loads a vector from element i on.
func (v vectors) load(a, i value.Value) value.Value {
	l := v.NewLoad(v.vec, v.NewBitCast(v.at(a, i), types.NewPointer(v.vec)))
	l.Align = ir.Align(v.s.size())
	return l
}

// store stores a vector from element i on.
func (v vectors) store(x, a, i value.Value) {
	s := v.NewStore(x, v.NewBitCast(v.at(a, i), types.NewPointer(v.vec)))
	s.Align = ir.Align(v.s.size())
}

// splat is a vector of equal elements.
func (v vectors) splat(x value.Value) value.Value { return v.Splat(x, v.s.lanes) }

// number is a constant of the element type.
func (v vectors) number(x float64) constant.Constant {
	if v.elem == types.Float {
		x = float64(float32(x))
	}
	return constant.NewFloat(v.elem, x)
}

// all is the vector of equal numbers.
func (v vectors) all(x float64) value.Value { return repeat(v.vec, v.number(x)) }

func repeat(t *types.VectorType, x constant.Constant) value.Value {
	xs := make([]constant.Constant, t.Len)
	for i := range xs {
		xs[i] = x
	}
	return constant.NewVector(t, xs...)
}

// muladd is a·b + c.
func (v vectors) muladd(a, b, c value.Value) value.Value {
	name := "llvm.fmuladd"
	if v.s.machine.FMA {
		name = "llvm.fma"
	}
	name += fmt.Sprintf(".v%df%d", v.vec.Len, v.s.size()*8)
	return v.Call(v.M.Declare(name, v.vec, v.vec, v.vec, v.vec), a, b, c)
}

// larger is the larger of two numbers, and b where a is none.
func (v vectors) larger(a, b value.Value) value.Value {
	return v.NewSelect(v.NewFCmp(enum.FPredOGT, a, b), a, b)
}

// most and least are the larger and the smaller of two indices.
func (v vectors) most(a, b value.Value) value.Value {
	return v.NewSelect(v.NewICmp(enum.IPredSGT, a, b), a, b)
}

func (v vectors) least(a, b value.Value) value.Value {
	return v.NewSelect(v.NewICmp(enum.IPredSLT, a, b), a, b)
}

// parts is how many parts of size n has.
func (v vectors) parts(n value.Value, size int64) value.Value {
	return v.NewUDiv(v.NewAdd(n, code.Int(size-1)), code.Int(size))
}

// span is the length of the range of at most size that begins at from, below total.
func (v vectors) span(from value.Value, size, total int64) value.Value {
	if total%size == 0 {
		return code.Int(size)
	}
	return v.least(code.Int(size), v.NewSub(code.Int(total), from))
}
