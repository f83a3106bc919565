package scalar

import (
	"dmir/compile/kernel"
	"dmir/dialect/random"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// mix is the finaliser of SplitMix64; see dialect/random.
func (b builder) mix(z value.Value) value.Value {
	z = b.NewMul(b.NewXor(z, b.NewLShr(z, i64(30))), word(random.MixFirst))
	z = b.NewMul(b.NewXor(z, b.NewLShr(z, i64(27))), word(random.MixSecond))
	return b.NewXor(z, b.NewLShr(z, i64(31)))
}

// draw is the 64 bits of position i of a stream's key.
func (b builder) draw(key, i value.Value) value.Value {
	return b.mix(b.NewAdd(key, b.NewMul(b.NewAdd(i, i64(1)), word(random.Golden))))
}

// stream is the key of a stream of a seed.
func (b builder) stream(seed value.Value, number uint64) value.Value {
	golden := uint64(random.Golden)
	return b.mix(b.NewAdd(seed, word(golden*(number+1))))
}

// seed is the seed of a Keep or a Random, mixed with its step if it has one.
func (b builder) seed(x *kernel.Expr, args []value.Value) value.Value {
	if len(x.Args) == 0 {
		return word(x.Seed)
	}
	return b.draw(b.stream(word(x.Seed), random.Step), b.extended(args[0], x.Args[0].Elem, lltypes.I64))
}

// halfDraw is 32 bits for position i: two positions share a draw, that of i / 2; the
// even one has the lower half.
func (b builder) halfDraw(key, i value.Value) value.Value {
	both := b.draw(key, b.NewLShr(i, i64(1)))
	return b.NewTrunc(b.NewLShr(both, b.NewShl(b.NewAnd(i, i64(1)), i64(5))), lltypes.I32)
}

// keep is whether dropout keeps element i: whether its half draw is the threshold or
// more.
func (b builder) keep(x *kernel.Expr, seed, i value.Value) value.Value {
	half := b.NewZExt(b.halfDraw(b.stream(seed, random.Dropout), i), lltypes.I64)
	return b.NewICmp(enum.IPredUGE, half, i64(x.Int))
}

// count is the index i as a number, or i steps from a start, each rounded.
func (b builder) count(x *kernel.Expr, i value.Value) value.Value {
	t := Register(x.Elem)
	spaced := x.Kind == kernel.Spaced
	if x.Elem.IsInt() {
		if spaced {
			i = b.NewAdd(i64(int64(x.Par[0])), b.NewMul(i64(int64(x.Par[1])), i))
		}
		return b.resized(i, t)
	}
	var v value.Value = b.NewSIToFP(i, t)
	if spaced {
		v = b.rounded(b.NewFAdd(number(t, x.Par[0]), b.NewFMul(number(t, x.Par[1]), v)), x.Elem)
	}
	return v
}

// random is element i of dm.rng, at least low and below high, or normal.
func (b builder) random(x *kernel.Expr, seed, i value.Value) value.Value {
	b.exact = true
	key := b.stream(seed, random.RNG)
	if x.Kind == "normal" {
		v := b.fadd(f64(x.Par[0]), b.fmul(f64(x.Par[1]), b.normal(key, i)))
		return b.convert(v, types.F64, x.Elem)
	}
	low, high := x.Par[0], x.Par[1]
	if x.Elem.IsFloat() && x.Elem != types.F64 {
		unit := b.fmul(b.NewUIToFP(b.NewLShr(b.halfDraw(key, i), i32(8)), lltypes.Float), f32(0x1p-24))
		v := b.rounded(b.fadd(f32(low), b.fmul(f32(high-low), unit)), x.Elem)
		return b.choose(b.NewFCmp(enum.FPredOGE, v, f32(high)), b.rounded(f32(low), x.Elem), v)
	}
	v := b.fadd(f64(low), b.fmul(f64(high-low), b.uniform(key, i)))
	if x.Elem.IsInt() {
		v = b.intrinsic("floor", v)
	}
	v = b.choose(b.NewFCmp(enum.FPredOGE, v, f64(high)), f64(low), v) // rounded up to the excluded bound
	return b.convert(v, types.F64, x.Elem)
}

// uniform is a number in [0, 1) with 53 random bits.
func (b builder) uniform(key, i value.Value) value.Value {
	return b.fmul(b.NewUIToFP(b.NewLShr(b.draw(key, i), i64(11)), lltypes.Double), f64(0x1p-53))
}

// normal is a standard normal number (Box and Muller, 1958): positions 2k and 2k+1 are
// the cosine and the sine of one pair of uniform numbers.
func (b builder) normal(key, i value.Value) value.Value {
	u := b.uniform(key, b.NewAnd(i, i64(^1)))
	r := b.intrinsic("sqrt", b.fmul(f64(-2), b.logSteps(b.fsub(f64(1), u))))
	sine, cosine := b.sincosSteps(b.fmul(f64(6.28318530717958647693), b.uniform(key, b.NewOr(i, i64(1)))))
	odd := b.NewTrunc(i, lltypes.I1)
	return b.fmul(r, b.choose(odd, sine, cosine))
}

// steps is c[0]·x^n + … + c[n], each product and sum rounded.
func (b builder) steps(x value.Value, c ...float64) value.Value {
	var p value.Value = f64(c[0])
	for _, v := range c[1:] {
		p = b.fadd(b.fmul(p, x), f64(v))
	}
	return p
}

// logSteps is the natural logarithm of a normal positive number, by the steps of
// FreeBSD's e_log.c, as Go's math.Log.
func (b builder) logSteps(x value.Value) value.Value {
	n := b.bits(x)
	m := b.float(b.NewOr(b.NewAnd(n, i64(0xfffffffffffff)), i64(0x3fe0000000000000)))
	low := b.NewFCmp(enum.FPredOLT, m, f64(7.07106781186547524401e-01))
	m = b.choose(low, b.fadd(m, m), m)
	k := b.NewSub(b.NewTrunc(b.NewLShr(n, i64(52)), lltypes.I32), b.choose(low, i32(1023), i32(1022)))
	e := b.NewSIToFP(k, lltypes.Double)
	f := b.fsub(m, f64(1))
	s := b.NewFDiv(f, b.fadd(f64(2), f))
	s2 := b.fmul(s, s)
	s4 := b.fmul(s2, s2)
	t1 := b.fmul(s2, b.steps(s4, 1.479819860510658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01))
	t2 := b.fmul(s4, b.steps(s4, 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01))
	half := b.fmul(b.fmul(f64(0.5), f), f)
	tail := b.fadd(b.fmul(s, b.fadd(half, b.fadd(t1, t2))), b.fmul(e, f64(1.90821492927058770002e-10)))
	return b.fsub(b.fmul(e, f64(6.93147180369123816490e-01)), b.fsub(b.fsub(half, tail), f))
}

// sincosSteps is sine and cosine of a number in [0, 2π), by the steps of Cephes' sin.c,
// as Go's math.Sincos.
func (b builder) sincosSteps(x value.Value) (sine, cosine value.Value) {
	j := b.NewFPToSI(b.fmul(x, f64(1.27323954473516268615)), lltypes.I32)
	j2 := b.NewAdd(j, b.NewAnd(j, i32(1)))
	y := b.NewSIToFP(j2, lltypes.Double)
	z := x
	for _, part := range []float64{7.85398125648498535156e-1, 3.77489470793079817668e-8, 2.69515142907905952645e-15} {
		z = b.fsub(z, b.fmul(y, f64(part)))
	}
	q := b.fmul(z, z)
	qq := b.fmul(q, q)
	c := b.fadd(b.fsub(f64(1), b.fmul(f64(0.5), q)), b.fmul(qq, b.steps(q,
		-1.13585364213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)))
	s := b.fadd(z, b.fmul(b.fmul(z, q), b.steps(q,
		1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)))
	// Of the eighths of a turn j2, which is even, 2 and 6 swap sine and cosine; the sine is
	// negative from 4 to 6, the cosine from 2 to 4.
	swap := b.NewICmp(enum.IPredNE, b.NewAnd(j2, i32(2)), i32(0))
	minus := b.NewICmp(enum.IPredNE, b.NewAnd(j2, i32(4)), i32(0))
	cosMinus := b.NewXor(minus, swap)
	sine, cosine = b.choose(swap, c, s), b.choose(swap, s, c)
	return b.choose(minus, b.NewFNeg(sine), sine), b.choose(cosMinus, b.NewFNeg(cosine), cosine)
}
