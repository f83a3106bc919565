package scalar

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"sinh":  {forms("dm_sinh_f32", fastSinh, library("sinh")), nil, nil},
		"cosh":  {forms("dm_cosh_f32", fastCosh, library("cosh")), nil, nil},
		"tanh":  {forms("dm_tanh_f32", fastTanh, library("tanh")), nil, nil},
		"asinh": {forms("dm_asinh_f32", fastAsinh, library("asinh")), nil, nil},
		"acosh": {forms("dm_acosh_f32", fastAcosh, library("acosh")), nil, nil},
		"atanh": {forms("dm_atanh_f32", fastAtanh, library("atanh")), nil, nil},
	})
}

// halves are e^|x|/2, which is finite for each x whose sinh and cosh are, and e^-|x|/2.
func (b builder) halves(x value.Value) (grown, shrunk value.Value) {
	e := b.exponential(b.intrinsic("fabs", x))
	grown = scaled{b.NewFMul(e.m, f32(0.5)), e.low, e.high}.value(b)
	return grown, b.NewFDiv(f32(0.25), grown)
}

// fastSinh is a polynomial near 0, minimax with a relative error of 2^-31 up to 1.02, and
// (e^|x| - e^-|x|) / 2 beyond.
func fastSinh(b builder, x value.Value) value.Value {
	s := b.fmul(x, x)
	p := b.polynomial(s, 0.1666666716337204, 0.008333312347531319, 0.00019842272740788758, 2.786938921417459e-06)
	near := b.tiny(x, b.fma(b.fmul(p, s), x, x))
	grown, shrunk := b.halves(x)
	far := b.withSign(b.NewFSub(grown, shrunk), x)
	return b.choose(b.NewFCmp(enum.FPredOLT, b.intrinsic("fabs", x), f32(1)), near, far)
}

func fastCosh(b builder, x value.Value) value.Value {
	grown, shrunk := b.halves(x)
	return b.NewFAdd(grown, shrunk)
}

// fastTanh is a polynomial near 0, minimax with a relative error of 2^-28 up to 0.62,
// and 1 - 2 / (e^2|x| + 1) beyond.
func fastTanh(b builder, x value.Value) value.Value {
	a := b.intrinsic("fabs", x)
	s := b.fmul(x, x)
	p := b.polynomial(s, -0.3333328664302826, 0.13331569731235504, -0.05375058948993683, 0.02067560702562332, -0.0057470956817269325)
	near := b.tiny(x, b.fma(b.fmul(p, s), x, x))
	e := b.exponential(b.fadd(a, a)).value(b)
	far := b.NewFSub(f32(1), b.NewFDiv(f32(2), b.NewFAdd(e, f32(1))))
	return b.choose(b.NewFCmp(enum.FPredOLT, a, f32(0.6)), near, b.withSign(far, x))
}

// huge is where x² ± 1 is x² for long, and finite: beyond, log(x + √(x² ± 1)) is log x + ln 2.
const huge = 0x1p60

// logOfRoot is log(1 + larger + smaller), or from huge on log size + ln 2. What the sum loses
// is added to it later.
func (b builder) logOfRoot(size, larger, smaller value.Value) value.Value {
	sum := b.NewFAdd(larger, smaller)
	tail := b.NewFSub(smaller, b.NewFSub(sum, larger))
	far := b.NewFCmp(enum.FPredOGT, size, f32(huge))
	return b.log1pOfSum(b.choose(far, size, sum), tail, b.choose(far, f32(1), f32(0)))
}

// below is x, or huge where x is larger.
func (b builder) below(x value.Value) value.Value {
	return b.choose(b.NewFCmp(enum.FPredOGT, x, f32(huge)), f32(huge), x)
}

// fastAsinh is log(1 + a + a²/(1 + √(a² + 1))) for a = |x|.
func fastAsinh(b builder, x value.Value) value.Value {
	size := b.intrinsic("fabs", x)
	a := b.below(size)
	root := b.intrinsic("sqrt", b.fma(a, a, f32(1)))
	v := b.logOfRoot(size, a, b.NewFDiv(b.NewFMul(a, a), b.NewFAdd(root, f32(1))))
	return b.tiny(x, b.withSign(v, x))
}

// fastAcosh is log(1 + t + √(t² + 2t)) for t = x - 1.
func fastAcosh(b builder, x value.Value) value.Value {
	t := b.NewFSub(b.below(x), f32(1))
	root := b.intrinsic("sqrt", b.fma(t, t, b.NewFAdd(t, t)))
	return b.choose(b.NewFCmp(enum.FPredOLT, x, f32(1)), f32(math.NaN()), b.logOfRoot(x, root, t))
}

// fastAtanh is log(1 + 2a/(1 - a)) / 2 for a = |x|. What the difference and the quotient
// lose is added to it later.
func fastAtanh(b builder, x value.Value) value.Value {
	a := b.intrinsic("fabs", x)
	under := b.NewFSub(f32(1), a)
	lost := b.NewFSub(b.NewFSub(f32(1), under), a)
	inverse := b.NewFDiv(f32(2), under)
	q := b.NewFMul(a, inverse)
	half := b.NewFMul(q, f32(0.5))
	rest := b.fma(b.NewFNeg(half), lost, b.fma(b.NewFNeg(half), under, a))
	v := b.log1pOfSum(q, b.fmul(rest, inverse), f32(0))
	return b.tiny(x, b.withSign(b.NewFMul(v, f32(0.5)), x))
}
