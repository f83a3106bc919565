package scalar

import (
	"math"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{"pow": {powFloat, power, nil}})
}

// powFloat is 1 where x is 1 or y is 0, also if the other one is a signalling NaN.
func powFloat(b builder, a []value.Value) value.Value {
	t := a[0].Type()
	if t.Equal(lltypes.Float) {
		return b.Call(b.inlined("dm_pow_f32", t, 2, func(b builder, a []value.Value) value.Value { return fastPow(b, a[0], a[1]) }), a...)
	}
	one, zero := like(a[0], 1), like(a[0], 0)
	certain := b.NewOr(b.NewFCmp(enum.FPredOEQ, a[0], one), b.NewFCmp(enum.FPredOEQ, a[1], zero))
	return b.choose(certain, one, b.library("pow", a...))
}

// fastPow is 2^(y·log₂|x|), computed in double and rounded once, with the sign and the
// values at the ends that IEEE 754 gives pow.
func fastPow(b builder, x, y value.Value) value.Value {
	is := func(p enum.FPred, x value.Value, v float64) value.Value { return b.NewFCmp(p, x, like(x, v)) }
	size := b.intrinsic("fabs", x)
	wide := b.NewFPExt(size, lltypes.Double)
	l := b.log2(wide)
	l = b.choose(is(enum.FPredOEQ, wide, 0), f64(-inf), l)
	l = b.choose(is(enum.FPredOEQ, wide, inf), f64(inf), l)
	v := b.NewFPTrunc(b.exp2(b.NewFMul(l, b.NewFPExt(y, lltypes.Double))), lltypes.Float)

	// Powers of negative numbers are numbers where y is whole, and negative where it is odd.
	whole := b.NewFCmp(enum.FPredOEQ, b.intrinsic("trunc", y), y)
	halved := b.NewFMul(y, f32(0.5))
	odd := b.NewAnd(whole, b.NewFCmp(enum.FPredONE, b.intrinsic("trunc", halved), halved))
	r := b.choose(odd, b.withSign(v, x), v)
	between := b.NewAnd(is(enum.FPredOLT, x, 0), is(enum.FPredOGT, x, -inf))
	r = b.choose(b.NewAnd(between, b.NewXor(whole, constant.True)), f32(math.NaN()), r)
	r = b.choose(b.NewFCmp(enum.FPredUNO, x, y), b.NewFAdd(x, y), r)
	ends := b.NewAnd(is(enum.FPredOEQ, size, 1), is(enum.FPredOEQ, b.intrinsic("fabs", y), inf))
	certain := b.NewOr(b.NewOr(is(enum.FPredOEQ, x, 1), is(enum.FPredOEQ, y, 0)), ends)
	return b.choose(certain, f32(1), r)
}

// log2 is log₂ x of a normal double: the exponent, and for the mantissa, between 2/3 and
// 4/3, the series of 2/ln 2·artanh s with s = (m-1)/(m+1), |s| ≤ 1/5, to s¹³. The relative
// error is 2^-39.
func (b builder) log2(x value.Value) value.Value {
	const twoThirds = 0x3fe5555555555555
	n := b.bits(x)
	e := b.NewAnd(b.NewSub(n, i64(twoThirds)), i64(-1<<52))
	f := b.NewFSub(b.float(b.NewSub(n, e)), f64(1))
	s := b.NewFDiv(f, b.NewFAdd(f, f64(2)))
	var c []float64
	for i := 1; i <= 13; i += 2 {
		c = append(c, 2*math.Log2E/float64(i))
	}
	k := b.NewSIToFP(b.NewTrunc(b.NewAShr(e, i64(52)), lltypes.I32), lltypes.Double)
	return b.fma(b.polynomial(b.NewFMul(s, s), c...), s, k)
}

// exp2 is 2^x, of |x| of 160 or more that of 160 with its sign, which no float has. The
// series of e^(r·ln 2), |r| ≤ 1/2, to r⁸ has a relative error of 2^-32.
func (b builder) exp2(x value.Value) value.Value {
	const most, toWhole = 160, 0x1.8p52
	x = b.choose(b.NewFCmp(enum.FPredOLT, x, f64(most)), x, f64(most))
	x = b.choose(b.NewFCmp(enum.FPredOGT, x, f64(-most)), x, f64(-most))
	t := b.NewFAdd(x, f64(toWhole))
	r := b.NewFSub(x, b.NewFSub(t, f64(toWhole)))
	var c []float64
	for i, term := 0, 1.0; i <= 8; i++ {
		c = append(c, term)
		term *= math.Ln2 / float64(i+1)
	}
	m := b.bits(b.polynomial(r, c...))
	return b.float(b.NewAdd(m, b.NewShl(b.bits(t), i64(52))))
}
