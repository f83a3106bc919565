package tensor

import (
	"math"

	"dmir/dialect/types"
)

// format is a small floating-point format: mantissa bits without the implied
// one, the exponent of the smallest normal number, and the largest finite value.
type format struct {
	mant   uint
	minExp int
	max    float64
	inf    bool // whether there are infinities; otherwise overflow gives NaN
}

var formats = [...]format{
	types.F16:      {10, -14, 65504, true},
	types.BF16:     {7, -126, 0x1.FEp127, true},
	types.F8E4M3FN: {3, -6, 448, false},
	types.F8E5M2:   {2, -14, 57344, true},
}

// Round is x rounded to elem, to nearest with ties to even. Overflow gives an
// infinity, or NaN in f8E4M3FN, which has none (as in ml_dtypes and LLVM). elem
// is f32 or narrower.
func Round(elem types.Elem, x float32) float32 {
	switch elem {
	case types.F16:
		return roundF16(x)
	case types.BF16:
		return roundBF16(x)
	case types.F8E4M3FN, types.F8E5M2:
		return float32(formats[elem].round(float64(x)))
	}
	return x
}

// Round64 is x rounded once to elem (f32 or narrower).
func Round64(elem types.Elem, x float64) float32 {
	switch elem {
	case types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2:
		return float32(formats[elem].round(x))
	}
	return float32(x)
}

// RoundSlice rounds every element of x to elem in place.
func RoundSlice(elem types.Elem, x []float32) {
	switch elem {
	case types.F16:
		for i, v := range x {
			// The common case, a normal number, without a call.
			if b := math.Float32bits(v); b&^(1<<31)-minNormalF16 < overflowF16-minNormalF16 {
				b += 0xfff + b>>13&1
				x[i] = math.Float32frombits(b &^ 0x1fff)
				continue
			}
			x[i] = roundF16(v)
		}
	case types.BF16:
		for i, v := range x {
			x[i] = roundBF16(v)
		}
	case types.F8E4M3FN, types.F8E5M2:
		f := &formats[elem]
		for i, v := range x {
			x[i] = float32(f.round(float64(v)))
		}
	}
}

// RoundTF32 is x rounded to TF32, 10 bits of the mantissa, to nearest with ties away from zero, as cvt.rna.tf32.f32
// does; a NaN stays one.
func RoundTF32(x float32) float32 {
	b := math.Float32bits(x)
	if b&^(1<<31) > 0xff<<23 {
		return x
	}
	if b&^(1<<31) < 0xff<<23 {
		b += 0x1000
	}
	return math.Float32frombits(b &^ 0x1fff)
}

// round scales x so that the last bit kept has weight 1, and rounds there.
func (f *format) round(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) && f.inf {
		return x
	}
	exp := max(math.Ilogb(x), f.minExp)
	ulp := exp - int(f.mant)
	r := math.Ldexp(math.RoundToEven(math.Ldexp(x, -ulp)), ulp)
	switch {
	case math.Abs(r) <= f.max:
		return r
	case f.inf:
		return math.Inf(int(math.Copysign(1, x)))
	}
	return math.NaN()
}

// Bit patterns of float32: 2^-14 and 65520, which rounds to infinity.
const (
	minNormalF16 = 0x38800000
	overflowF16  = 0x477ff000
)

// roundF16 rounds by adding: normal numbers carry half a unit of the last kept
// bit (ties to even) through the bit pattern; below 2^-14 the sum with 0.5 has
// its last bit at 2^-24, f16's smallest step, so the addition itself rounds.
func roundF16(x float32) float32 {
	b := math.Float32bits(x)
	switch a := b &^ (1 << 31); {
	case a >= overflowF16: // or NaN
		if a > 0x7f800000 {
			return x
		}
		return math.Float32frombits(b&(1<<31) | 0x7f800000)
	case a < minNormalF16:
		r := math.Float32frombits(a) + 0.5
		return math.Float32frombits(math.Float32bits(r-0.5) | b&(1<<31))
	}
	b += 0xfff + b>>13&1
	return math.Float32frombits(b &^ 0x1fff)
}

func roundBF16(x float32) float32 {
	b := math.Float32bits(x)
	if b&^(1<<31) > 0x7f800000 {
		return x
	}
	b += 0x7fff + b>>16&1
	return math.Float32frombits(b &^ 0xffff)
}

// Wrap is v modulo the width of the integer type elem, sign- or zero-extended.
func Wrap(elem types.Elem, v int64) int64 {
	switch elem {
	case types.I32:
		return int64(int32(v))
	case types.I16:
		return int64(int16(v))
	case types.I4:
		return v << 60 >> 60
	case types.I8:
		return int64(int8(v))
	case types.UI32:
		return int64(uint32(v))
	case types.UI16:
		return int64(uint16(v))
	case types.UI4:
		return v & 15
	case types.UI8:
		return int64(uint8(v))
	case types.I1:
		return v & 1
	}
	return v
}

// ToInt converts x to the integer type elem: truncated towards zero, values out
// of range go to the nearest end, NaN to 0 (StableHLO leaves these open; this
// is what XLA on CPU and CUDA's conversions do). A ui64 comes as its bit pattern.
func ToInt(elem types.Elem, x float64) int64 {
	if x != x {
		return 0
	}
	if elem == types.I1 {
		if x != 0 {
			return 1
		}
		return 0
	}
	lo, hi := intRange(elem)
	x = math.Trunc(x)
	switch {
	case x <= lo:
		x = lo
	case x >= hi:
		return lastInt(elem)
	}
	if elem == types.UI64 {
		return int64(uint64(x))
	}
	return int64(x)
}

func intRange(elem types.Elem) (lo, hi float64) {
	bits := int(elem.Bits())
	if elem.IsUnsigned() {
		return 0, math.Ldexp(1, bits)
	}
	return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
}

func lastInt(elem types.Elem) int64 {
	if elem == types.UI64 {
		return -1
	}
	_, hi := intRange(elem)
	if elem.Bytes() == 8 {
		return math.MaxInt64
	}
	return int64(hi) - 1
}

// MinValue and MaxValue are the least and the greatest value of elem as stored:
// the neutral elements of max and min. For floating-point types they are the
// infinities, or the largest finite values where there are none.
func MinValue(elem types.Elem) (f float64, i int64) {
	switch {
	case elem == types.F8E4M3FN:
		return -448, 0
	case elem.IsFloat():
		return math.Inf(-1), 0
	case elem.IsUnsigned():
		return 0, 0
	}
	lo, _ := intRange(elem)
	return 0, int64(lo)
}

// MaxValue is described at MinValue.
func MaxValue(elem types.Elem) (f float64, i int64) {
	switch {
	case elem == types.F8E4M3FN:
		return 448, 0
	case elem.IsFloat():
		return math.Inf(1), 0
	case elem == types.I1:
		return 0, 1
	}
	return 0, lastInt(elem)
}
