package scalar

import (
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// widen is the element v, as it is in memory, in its register type.
func (b builder) widen(v value.Value, elem types.Elem) value.Value {
	switch elem {
	case types.F16:
		return b.wideF16(v)
	case types.BF16:
		return b.float(b.NewShl(b.NewZExt(v, lltypes.I32), i32(16)))
	case types.F8E4M3FN:
		return b.wideF8E4(v)
	case types.F8E5M2: // the upper half of an f16
		return b.wideF16(b.NewBitCast(b.NewShl(b.NewZExt(v, lltypes.I16), whole(lltypes.I16, 8)), lltypes.Half))
	case types.I1:
		return b.NewTrunc(v, lltypes.I1)
	}
	return b.wrapped(v, elem)
}

// wideF16 clears bits that are 0, which keeps LLVM from computing in half: for that
// machines without such instructions have no vectors.
func (b builder) wideF16(v value.Value) value.Value {
	return b.float(b.NewAnd(b.bits(b.NewFPExt(v, lltypes.Float)), i32(-1<<13)))
}

// wideF8E4 moves exponent and mantissa to their places in a float, with its bias; a
// subnormal number counts steps of 2^-9.
func (b builder) wideF8E4(v value.Value) value.Value {
	n := b.NewZExt(v, lltypes.I32)
	a := b.NewAnd(n, i32(0x7f))
	normal := b.NewAdd(b.NewShl(a, i32(20)), i32(120<<23))
	subnormal := b.bits(b.NewFMul(b.NewSIToFP(a, lltypes.Float), f32(0x1p-9)))
	size := b.choose(b.NewICmp(enum.IPredULT, a, i32(8)), subnormal, normal)
	size = b.choose(b.NewICmp(enum.IPredEQ, a, i32(0x7f)), i32(0x7fc00000), size)
	sign := b.NewShl(b.NewAnd(n, i32(0x80)), i32(24))
	return b.float(b.NewOr(size, sign))
}

// narrow is v, in its register type, as it is in memory.
func (b builder) narrow(v value.Value, elem types.Elem) value.Value {
	switch elem {
	case types.F16:
		return b.NewFPTrunc(v, lltypes.Half)
	case types.BF16:
		return b.narrowBF16(v)
	case types.F8E4M3FN:
		return b.narrowF8(v, elem)
	case types.F8E5M2:
		return b.narrowF8(v, elem)
	case types.I1:
		return b.NewZExt(v, lltypes.I8)
	}
	return v
}

// narrowBF16 is the upper half of the bits, rounded; a NaN stays one.
func (b builder) narrowBF16(v value.Value) value.Value {
	n := b.bits(v)
	odd := b.NewAnd(b.NewLShr(n, i32(16)), i32(1))
	up := b.NewAdd(n, b.NewAdd(odd, i32(0x7fff)))
	n = b.choose(b.isNaN(v), b.NewOr(n, i32(0x400000)), up)
	return b.NewTrunc(b.NewLShr(n, i32(16)), lltypes.I16)
}

// f8 are the formats of 8 bits: mantissa bits, the bias of exponents, the bits of a
// float from which on numbers are too large, and what these and NaN become.
var f8 = map[types.Elem]struct{ mantissa, bias, over, large, nan int64 }{
	types.F8E4M3FN: {3, 7, 0x43e80001, 0x7f, 0x7f}, // above 464, halfway to the 480 that would follow 448
	types.F8E5M2:   {2, 15, 0x47700000, 0x7c, 0x7e},
}

// narrowF8 rounds normal numbers by adding half a unit of the last bit, less one
// where it is even. Below the smallest normal number the sum with a power of two has
// its last bit at the format's smallest step, so that the addition rounds.
func (b builder) narrowF8(v value.Value, elem types.Elem) value.Value {
	f := f8[elem]
	n := b.bits(v)
	a := b.NewAnd(n, i32(0x7fffffff))
	shift := 23 - f.mantissa
	odd := b.NewAnd(b.NewLShr(a, i32(shift)), i32(1))
	up := b.NewAdd(a, b.NewAdd(odd, i32(1<<(shift-1)-1)))
	normal := b.NewSub(b.NewLShr(up, i32(shift)), i32((127-f.bias)<<f.mantissa))
	magic := i32((127 + 24 - f.bias - f.mantissa) << 23)
	sum := b.NewFAdd(b.float(a), b.NewBitCast(magic, lltypes.Float))
	tiny := b.NewSub(b.bits(sum), magic)
	r := b.choose(b.NewICmp(enum.IPredULT, a, i32((128-f.bias)<<23)), tiny, normal)
	r = b.choose(b.NewICmp(enum.IPredUGE, a, i32(f.over)), i32(f.large), r)
	if f.nan != f.large {
		r = b.choose(b.isNaN(v), i32(f.nan), r)
	}
	sign := b.NewAnd(b.NewLShr(n, i32(24)), i32(0x80))
	return b.NewTrunc(b.NewOr(r, sign), lltypes.I8)
}

// reinterpret is v, an element in memory, as one of elem.
func (b builder) reinterpret(v value.Value, elem types.Elem) value.Value {
	if t := Storage(elem); !v.Type().Equal(t) {
		return b.NewBitCast(v, t)
	}
	return v
}
