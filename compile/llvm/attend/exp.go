package attend

import (
	"math"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// powers are the coefficients of 2^r for |r| up to 1/2: in float minimax with a relative
// error of 2^-23.4 (Lawson's algorithm, the lowest coefficients rounded to float first,
// and the others fitted again), in double those of the Taylor series, whose rest is
// below 2^-57.
func (v vectors) powers() []float64 {
	if !v.s.Double {
		return []float64{1, 0.6931470036506653, 0.24022246897220612, 0.0555071085691452, 0.009671292267739773, 0.0013269535265862942}
	}
	cs := []float64{1}
	for k := 1; k <= 13; k++ {
		cs = append(cs, cs[k-1]*math.Ln2/float64(k))
	}
	return cs
}

// power is 2^x for x up to 2^8, 0 where that is below the normal numbers, and exactly 1
// for 0; NaN stays.
func (v vectors) power(x value.Value) value.Value {
	bits, bias := int64(23), 127.0
	if v.s.Double {
		bits, bias = 52, 1023
	}
	// Adding 1.5·2^bits rounds to a whole number, which the low bits of the sum hold, and
	// which the bias makes an exponent.
	magic := v.all(math.Ldexp(1.5, int(bits)) + bias)
	sum := v.NewFAdd(x, magic)
	r := v.NewFSub(x, v.NewFSub(sum, magic))
	scale := v.NewBitCast(v.NewShl(v.NewBitCast(sum, v.ints), v.whole(bits)), v.vec)
	cs := v.powers()
	p := v.all(cs[len(cs)-1])
	for i := len(cs) - 2; i >= 0; i-- {
		p = v.muladd(p, r, v.all(cs[i]))
	}
	small := v.NewFCmp(enum.FPredOLT, x, v.all(1-bias))
	return v.NewSelect(small, constant.NewZeroInitializer(v.vec), v.NewFMul(p, scale))
}

// bounded is x, or where that is too large for power a number whose power is infinite.
func (v vectors) bounded(x value.Value) value.Value {
	limit := v.all(128)
	if v.s.Double {
		limit = v.all(1024)
	}
	return v.NewSelect(v.NewFCmp(enum.FPredOGT, x, limit), limit, x)
}

// whole is the vector of equal integers.
func (v vectors) whole(n int64) value.Value {
	return repeat(v.ints, constant.NewInt(v.ints.ElemType.(*types.IntType), n))
}
