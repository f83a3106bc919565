package gemm

import (
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// half rounds a vector of f32 to the nearest values of f16, ties to even. It is integer
// arithmetic since not every architecture converts vectors, and a call for each lane
// would need the compiler's run-time library.
func (v vectors) half(x value.Value) value.Value {
	ints := types.NewVector(v.vec.Len, types.I32)
	k := func(n int64) value.Value {
		return repeat(ints, constant.NewInt(types.I32, n))
	}
	real := func(n float64) value.Value {
		return repeat(v.vec, constant.NewFloat(types.Float, n))
	}
	bits := v.NewBitCast(x, ints)
	sign := v.NewAnd(bits, k(-1<<31))
	abs := v.NewAnd(bits, k(1<<31-1))
	// Normal numbers keep 10 of 23 bits; a carry may go on into the exponent.
	odd := v.NewAnd(v.NewLShr(abs, k(13)), k(1))
	normal := v.NewAnd(v.NewAdd(v.NewAdd(abs, k(1<<12-1)), odd), k(^int64(1<<13-1)))
	// What is rounded to 2¹⁶ or more is infinite, but NaN stays NaN.
	infinite := k(0x7f800000)
	big := v.NewICmp(enum.IPredSGE, normal, k(0x47800000))
	normal2 := v.NewSelect(big, infinite, normal)
	nan := v.NewICmp(enum.IPredSGT, abs, infinite)
	normal3 := v.NewSelect(nan, abs, normal2)
	// Below 2⁻¹⁴ all have the spacing 2⁻²⁴, which is that of floats next to 0.5.
	small := v.NewFSub(v.NewFAdd(v.NewBitCast(abs, v.vec), real(0.5)), real(0.5))
	tiny := v.NewICmp(enum.IPredSLT, abs, k(0x38800000))
	out := v.NewSelect(tiny, v.NewBitCast(small, ints), normal3)
	return v.NewBitCast(v.NewOr(out, sign), v.vec)
}

func repeat(t *types.VectorType, x constant.Constant) value.Value {
	xs := make([]constant.Constant, t.Len)
	for i := range xs {
		xs[i] = x
	}
	return constant.NewVector(t, xs...)
}
