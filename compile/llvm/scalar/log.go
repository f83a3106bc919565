package scalar

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"log":   {forms("dm_log_f32", fastLog, library("log")), nil, nil},
		"log1p": {forms("dm_log1p_f32", fastLog1p, library("log1p")), nil, nil},
	})
}

// logOf is n·ln 2 + log(1 + f) for |f| up to 1/3: minimax, with a relative error of
// log(1 + f) of 2^-27.
func (b builder) logOf(n, f value.Value) value.Value { return b.logOfSum(n, f, nil) }

// logOfSum is n·ln 2 + log(1 + f + tail), where tail is tiny beside f, or nil.
func (b builder) logOfSum(n, f, tail value.Value) value.Value {
	p := b.polynomial(f, -0.5, 0.3333321511745453, -0.2499980479478836, 0.20010443031787872, -0.16680176556110382,
		0.14005376398563385, -0.12188462913036346, 0.13986502587795258, -0.12873761355876923)
	if tail == nil {
		return b.fma(n, f32(math.Ln2), b.fma(b.fmul(f, f), p, f))
	}
	return b.fma(n, f32(math.Ln2), b.NewFAdd(f, b.fma(b.fmul(f, f), p, tail)))
}

// twoThirds are the bits of 2/3: subtracted from those of a number they leave its
// exponent in the upper bits, for a mantissa between 2/3 and 4/3.
const twoThirds = 0x3f2aaaab

// fastLog scales subnormal numbers to normal ones first.
func fastLog(b builder, x value.Value) value.Value {
	low := b.NewFCmp(enum.FPredOLT, x, f32(0x1p-126))
	n := b.bits(b.choose(low, b.fmul(x, f32(0x1p23)), x))
	e := b.NewAnd(b.NewSub(n, i32(twoThirds)), i32(-1<<23))
	f := b.NewFSub(b.float(b.NewSub(n, e)), f32(1))
	k := b.fma(b.NewSIToFP(e, lltypes.Float), f32(0x1p-23), b.choose(low, f32(-23), f32(0)))
	return b.logEnds(b.logOf(k, f), x, 0)
}

// logEnds is v, but at the pole and beyond it and at ∞ what a logarithm is there.
func (b builder) logEnds(v, x value.Value, pole float64) value.Value {
	v = b.choose(b.NewFCmp(enum.FPredOLT, x, f32(inf)), v, x) // ∞ and NaN
	v = b.choose(b.NewFCmp(enum.FPredOEQ, x, f32(pole)), f32(-inf), v)
	return b.choose(b.NewFCmp(enum.FPredOLT, x, f32(pole)), f32(math.NaN()), v)
}

// onePlus is k, f and s such that 1 + x = 2^k·(1 + f) and s = 4·2^-k, which is a normal
// number for all k. 1 and x are divided by 2^k apart, so that no digit of x is lost.
func (b builder) onePlus(x value.Value) (k, f, s value.Value) {
	n := b.bits(b.NewFAdd(x, f32(1)))
	e := b.NewAnd(b.NewSub(n, i32(twoThirds)), i32(-1<<23))
	s = b.float(b.NewSub(i32(0x40800000), e))
	f = b.fma(b.NewFMul(x, f32(0.25)), s, b.fma(s, f32(0.25), f32(-1)))
	return b.fmul(b.NewSIToFP(e, lltypes.Float), f32(0x1p-23)), f, s
}

// fastLog1p is x where x is tiny.
func fastLog1p(b builder, x value.Value) value.Value {
	k, f, _ := b.onePlus(x)
	return b.tiny(x, b.logEnds(b.logOf(k, f), x, -1))
}

// log1pOfSum is more·ln 2 + log(1 + x + tail), where tail is tiny beside x.
func (b builder) log1pOfSum(x, tail, more value.Value) value.Value {
	k, f, s := b.onePlus(x)
	tail = b.fmul(b.fmul(tail, f32(0.25)), s)
	return b.logEnds(b.logOfSum(b.fadd(k, more), f, tail), x, -1)
}
