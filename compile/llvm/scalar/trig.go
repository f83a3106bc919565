package scalar

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"sin":  {forms("dm_sin_f32", fastSin, library("sin")), nil, nil},
		"cos":  {forms("dm_cos_f32", fastCos, library("cos")), nil, nil},
		"tan":  {forms("dm_tan_f32", fastTan, library("tan")), nil, nil},
		"cbrt": {forms("dm_cbrt_f32", fastCbrt, library("cbrt")), nil, nil},
	})
}

// turn is 1/2π in parts of 29 bits, whose products with a float are exact in double. They
// reach to 2^-205, so that what is left out matters for no float.
var turn = []float64{
	0x1.45f306dp-3, 0x1.9391054p-32, 0x1.4fe13abp-61, 0x1.d1f534dp-90, 0x1.b81b6c5p-119, 0x1.5993c4p-150, 0x1.c820ffp-177,
}

// sincos is sine and cosine, in double, of the angle that is |x| less n quarters of a turn,
// and n. Whole turns are left out of each product; of the rest, the quarters are taken
// from the largest part, so that no later sum loses digits.
func (b builder) sincos(x value.Value) (sine, cosine, n value.Value) {
	a := b.NewFPExt(b.intrinsic("fabs", x), lltypes.Double)
	parts := make([]value.Value, len(turn))
	var sum value.Value
	for i, c := range turn {
		p := b.NewFMul(a, f64(c))
		parts[i] = b.NewFSub(p, b.intrinsic("rint", p))
		if sum == nil {
			sum = parts[i]
		} else {
			sum = b.NewFAdd(sum, parts[i])
		}
	}
	const toWhole = 0x1.8p52
	t := b.fma(sum, f64(4), f64(toWhole))
	quarters := b.NewFSub(t, f64(toWhole))
	r := b.fma(quarters, f64(-0.25), parts[0])
	for _, p := range parts[1:] {
		r = b.NewFAdd(r, p)
	}
	r = b.fmul(r, f64(2*math.Pi))
	// Minimax for |r| up to π/4, with errors of 2^-37 and 2^-43.
	s := b.fmul(r, r)
	p := b.polynomial(s, -0.16666666641622893, 0.008333329385587855, -0.00019839334760907913, 2.7183109122702044e-06)
	q := b.polynomial(s, 1, -0.49999999999545114, 0.041666666562083045, -0.001388888107902873, 2.4799041102094036e-05, -2.718010504700406e-07)
	return b.fma(b.fmul(p, s), r, r), q, b.NewTrunc(b.bits(t), lltypes.I32)
}

// bit is whether n has that bit.
func (b builder) bit(n value.Value, mask int64) value.Value {
	return b.NewICmp(enum.IPredNE, b.NewAnd(n, like(n, float64(mask))), like(n, 0))
}

func fastSin(b builder, x value.Value) value.Value {
	sine, cosine, n := b.sincos(x)
	v := b.NewFPTrunc(b.choose(b.bit(n, 1), cosine, sine), lltypes.Float)
	minus := b.NewXor(b.NewShl(b.NewAnd(n, i32(2)), i32(30)), b.NewAnd(b.bits(x), i32(-1<<31)))
	return b.float(b.NewXor(b.bits(v), minus))
}

func fastCos(b builder, x value.Value) value.Value {
	sine, cosine, n := b.sincos(x)
	v := b.NewFPTrunc(b.choose(b.bit(n, 1), sine, cosine), lltypes.Float)
	return b.choose(b.bit(b.NewAdd(n, i32(1)), 2), b.NewFNeg(v), v)
}

func fastTan(b builder, x value.Value) value.Value {
	sine, cosine, n := b.sincos(x)
	odd := b.bit(n, 1)
	over, under := b.choose(odd, b.NewFNeg(cosine), sine), b.choose(odd, sine, cosine)
	v := b.bits(b.NewFPTrunc(b.NewFDiv(over, under), lltypes.Float))
	return b.float(b.NewXor(v, b.NewAnd(b.bits(x), i32(-1<<31))))
}

// fastCbrt divides the exponent by three for 5 bits, and by two steps of Halley's
// method in double has 47. Subnormal numbers are scaled first.
func fastCbrt(b builder, x value.Value) value.Value {
	a := b.intrinsic("fabs", x)
	low := b.NewFCmp(enum.FPredOLT, a, f32(0x1p-126))
	normal := b.choose(low, b.NewFMul(a, f32(0x1p24)), a)
	guess := b.float(b.NewAdd(b.NewUDiv(b.bits(normal), i32(3)), i32(709958130)))
	d, t := b.NewFPExt(normal, lltypes.Double), value.Value(b.NewFPExt(guess, lltypes.Double))
	for range 2 {
		r := b.fmul(b.fmul(t, t), t)
		t = b.NewFDiv(b.fmul(t, b.fadd(b.fadd(d, d), r)), b.fadd(b.fadd(r, r), d))
	}
	v := b.withSign(b.NewFPTrunc(b.fmul(t, b.choose(low, f64(0x1p-8), f64(1))), lltypes.Float), x)
	ordinary := b.NewAnd(b.NewFCmp(enum.FPredONE, x, f32(0)), b.NewFCmp(enum.FPredOLT, a, f32(inf)))
	return b.choose(ordinary, v, x)
}
