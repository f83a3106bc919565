package scalar

import (
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"exp":       {forms("dm_exp_f32", fastExp, library("exp")), nil, nil},
		"expm1":     {forms("dm_expm1_f32", fastExpm1, library("expm1")), nil, nil},
		"logistic":  {forms("dm_logistic_f32", fastLogistic, logistic), nil, nil},
		"silu":      {forms("dm_silu_f32", fastSilu, silu), nil, nil},
		"gelu tanh": {forms("dm_gelu_tanh_f32", fastGeluTanh, geluTanh), nil, nil},
	})
}

// forms is a function of one number that in float is the function of that name with
// the body fast, and otherwise wide.
func forms(name string, fast func(b builder, x value.Value) value.Value, wide function) function {
	return func(b builder, a []value.Value) value.Value {
		if t := a[0].Type(); t.Equal(lltypes.Float) {
			fn := b.inlined(name, t, 1, func(b builder, a []value.Value) value.Value { return fast(b, a[0]) })
			return b.Call(fn, a[0])
		}
		return wide(b, a)
	}
}

func logistic(b builder, a []value.Value) value.Value {
	one := like(a[0], 1)
	return b.NewFDiv(one, b.fadd(one, b.library("exp", b.NewFNeg(a[0]))))
}

func silu(b builder, a []value.Value) value.Value { return b.fmul(a[0], logistic(b, a)) }

// The factors of gelu's approximation: √(2/π) and that of x³.
const (
	geluScale = 0.79788456080286535588
	geluCubic = 0.044715
)

func geluTanh(b builder, a []value.Value) value.Value {
	x := a[0]
	cube := b.fmul(b.fmul(b.fmul(like(x, geluCubic), x), x), x)
	th := b.library("tanh", b.fmul(like(x, geluScale), b.fadd(x, cube)))
	return b.fmul(b.fmul(like(x, 0.5), x), b.fadd(like(x, 1), th))
}

const (
	log2E = 1.44269504088896340736
	// ln 2 in two parts; products of the first one with whole numbers below 2^9 are exact.
	ln2Hi = 0x1.62e4p-1
	ln2Lo = 0x1.7f7d1cf79abcap-20
	// Below it e^x rounds to 0, also times x.
	zeroBelow = -110
	// Adding it to a float below 2^22 rounds that to a whole number, which is in the low bits.
	toWhole = 0x1.8p23
)

// scaled is m·low·high, where low and high are powers of two, whose product may be out
// of the range of normal numbers.
type scaled struct{ m, low, high value.Value }

// value multiplies in an order in which only the last product is rounded.
func (s scaled) value(b builder) value.Value { return b.NewFMul(b.NewFMul(s.m, s.low), s.high) }

// reduced is r and n such that x = n·ln 2 + r with n whole and |r| at most half of ln 2,
// for |x| below 2^8.
func (b builder) reduced(x value.Value) (r, n value.Value) {
	t := b.fma(x, f32(log2E), f32(toWhole))
	whole := b.NewFSub(t, f32(toWhole))
	r = b.fma(whole, f32(-ln2Hi), x)
	r = b.fma(whole, f32(-ln2Lo), r)
	return r, b.NewSub(b.bits(t), b.bits(f32(toWhole)))
}

// expRest is (e^r - 1 - r) / r² for |r| up to half of ln 2: minimax, with a relative
// error of e^r of 2^-28.
func (b builder) expRest(r value.Value) value.Value {
	return b.polynomial(r, 0.4999999403953552, 0.1666652113199234, 0.04166826233267784, 0.008368674665689468, 0.0013821044703945518)
}

// exponential is e^x. Beyond where it and its half become infinite or 0, x is clamped, and
// NaN stays.
func (b builder) exponential(x value.Value) scaled { return b.exponentialOfSum(x, nil) }

// exponentialOfSum is e^(x + tail), where tail is tiny, or nil.
func (b builder) exponentialOfSum(x, tail value.Value) scaled {
	rest, e := b.exponentialRest(x, tail)
	e.m = b.fadd(rest, f32(1))
	return e
}

// exponentialRest is e^(x + tail) for an m that is 1 + rest, and is left to the caller.
func (b builder) exponentialRest(x, tail value.Value) (rest value.Value, e scaled) {
	x = b.choose(b.NewFCmp(enum.FPredOGT, x, f32(90)), f32(90), x)
	x = b.choose(b.NewFCmp(enum.FPredOLT, x, f32(zeroBelow)), f32(zeroBelow), x)
	r, i := b.reduced(x)
	if tail != nil {
		r = b.NewFAdd(r, tail)
	}
	half := b.NewAShr(i, i32(1))
	return b.fma(b.fmul(r, r), b.expRest(r), r), scaled{low: b.powerOfTwo(half), high: b.powerOfTwo(b.NewSub(i, half))}
}

// powerOfTwo is 2^n for n that normal numbers have.
func (b builder) powerOfTwo(n value.Value) value.Value {
	return b.float(b.NewShl(b.NewAdd(n, i32(127)), i32(23)))
}

func fastExp(b builder, x value.Value) value.Value { return b.exponential(x).value(b) }

// fastExpm1 is 2^n·(e^r - 1) + 2^n - 1, with half of the powers so that the largest
// one is finite; it is x where x is tiny.
func fastExpm1(b builder, x value.Value) value.Value {
	c := b.choose(b.NewFCmp(enum.FPredOGT, x, f32(89)), f32(89), x)
	c = b.choose(b.NewFCmp(enum.FPredOLT, c, f32(-30)), f32(-30), c)
	r, i := b.reduced(c)
	m := b.fma(b.fmul(r, r), b.expRest(r), r)
	s := b.powerOfTwo(b.NewSub(i, i32(1)))
	v := b.fma(m, s, b.NewFSub(s, f32(0.5)))
	return b.tiny(x, b.NewFAdd(v, v))
}

// tiny is x where it is so small that f(x) rounds to it for an f whose derivative is 1
// at 0, and else v, the value of f.
func (b builder) tiny(x, v value.Value) value.Value {
	return b.choose(b.NewFCmp(enum.FPredOLT, b.intrinsic("fabs", x), f32(0x1p-25)), x, v)
}

// share is e^x / (1 + e^x) times factor: of the larger of 1 and e^x both are divided, so
// that it is exact where it is small, and rounded once where it is subnormal.
func (b builder) share(x value.Value, factor value.Value) value.Value {
	minus := b.NewFNeg(b.intrinsic("fabs", x))
	e := b.exponential(minus)
	below := b.NewFDiv(factor, b.fadd(e.value(b), f32(1)))
	m := b.choose(b.NewFCmp(enum.FPredOLT, minus, f32(zeroBelow)), f32(0), e.m)
	small := scaled{b.NewFMul(m, below), e.low, e.high}.value(b)
	return b.choose(b.NewFCmp(enum.FPredOLT, x, f32(0)), small, below)
}

func fastLogistic(b builder, x value.Value) value.Value { return b.share(x, f32(1)) }

func fastSilu(b builder, x value.Value) value.Value { return b.share(x, x) }

// fastGeluTanh is x·logistic(2u), which is x/2·(1 + tanh u).
func fastGeluTanh(b builder, x value.Value) value.Value {
	cube := b.fmul(b.fmul(x, x), f32(2*geluScale*geluCubic))
	return b.share(b.fmul(x, b.fadd(cube, f32(2*geluScale))), x)
}
