package types

import "math"

// format is an IEEE-like binary format narrower than float64.
type format struct {
	exp, mant int  // bits
	inf       bool // the highest exponent means infinity and NaN; otherwise only all ones is NaN
}

var formats = map[Elem]format{
	F32:      {8, 23, true},
	F16:      {5, 10, true},
	BF16:     {8, 7, true},
	F8E5M2:   {5, 2, true},
	F8E4M3FN: {4, 3, false},
}

func (f format) bias() int { return 1<<(f.exp-1) - 1 }

// max is the largest finite value.
func (f format) max() float64 {
	if f.inf {
		return math.Ldexp(2-math.Ldexp(1, -f.mant), f.bias())
	}
	return math.Ldexp(2-math.Ldexp(2, -f.mant), f.bias()+1)
}

// Round is v rounded to the nearest value of e, ties to even: what storing v
// as e and reading it back gives. Values beyond e's range become infinite, or
// NaN where e has no infinity. e must be a floating-point type.
func Round(v float64, e Elem) float64 {
	f, narrow := formats[e]
	if !narrow || v == 0 || math.IsNaN(v) {
		return v
	}
	if math.IsInf(v, 0) {
		if !f.inf {
			return math.NaN()
		}
		return v
	}
	_, exp := math.Frexp(v)
	quantum := max(exp-1, 1-f.bias()) - f.mant
	r := math.Ldexp(math.RoundToEven(math.Ldexp(v, -quantum)), quantum)
	if math.Abs(r) <= f.max() {
		return r
	}
	if !f.inf {
		return math.NaN()
	}
	return math.Inf(int(math.Copysign(1, v)))
}

// ToBits is the encoding of v, rounded to e, in the low bits.
func ToBits(v float64, e Elem) uint64 {
	f, narrow := formats[e]
	if !narrow {
		return math.Float64bits(v)
	}
	if e == F32 && v == v {
		return uint64(math.Float32bits(float32(v)))
	}
	v = Round(v, e)
	var sign uint64
	if math.Signbit(v) {
		sign = 1 << (f.exp + f.mant)
	}
	top := uint64(1<<f.exp-1) << f.mant
	switch {
	case math.IsNaN(v) && !f.inf:
		return sign | top | (1<<f.mant - 1)
	case math.IsNaN(v):
		return sign | top | 1<<(f.mant-1)
	case math.IsInf(v, 0):
		return sign | top
	case v == 0:
		return sign
	}
	frac, exp := math.Frexp(math.Abs(v)) // frac in [0.5, 1)
	biased := exp - 1 + f.bias()
	if biased <= 0 {
		return sign | uint64(math.Ldexp(math.Abs(v), f.bias()-1+f.mant))
	}
	return sign | uint64(biased)<<f.mant | uint64(math.Ldexp(2*frac-1, f.mant))
}

// FromBits is the value that the low bits of b encode in e.
func FromBits(b uint64, e Elem) float64 {
	f, narrow := formats[e]
	if !narrow {
		return math.Float64frombits(b)
	}
	mant := b & (1<<f.mant - 1)
	exp := int(b >> f.mant & (1<<f.exp - 1))
	sign := 1.0
	if b>>(f.exp+f.mant)&1 == 1 {
		sign = -1
	}
	switch {
	case exp == 1<<f.exp-1 && f.inf && mant == 0:
		return math.Inf(int(sign))
	case exp == 1<<f.exp-1 && (f.inf || mant == 1<<f.mant-1):
		return math.NaN()
	case exp == 0:
		return math.Copysign(math.Ldexp(float64(mant), 1-f.bias()-f.mant), sign)
	}
	return sign * math.Ldexp(1+math.Ldexp(float64(mant), -f.mant), exp-f.bias())
}

// intRange is the least and the greatest value that a literal of integer type
// e may have. MLIR reads i8 literals from -128 to 255; the upper half wraps.
// ui64 is bounded by the signed range here: larger values are kept as bits.
func intRange(e Elem) (least, greatest int64) {
	switch e {
	case I1:
		return -1, 1
	case I4:
		return -8, 15
	case I8:
		return math.MinInt8, math.MaxUint8
	case I16:
		return math.MinInt16, math.MaxUint16
	case I32:
		return math.MinInt32, math.MaxUint32
	case UI8:
		return 0, math.MaxUint8
	case UI4:
		return 0, 15
	case UI16:
		return 0, math.MaxUint16
	case UI32:
		return 0, math.MaxUint32
	case UI64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// Holds reports whether an element of integer type e can be v.
func Holds(e Elem, v float64) bool {
	least, greatest := intRange(e)
	return v == math.Trunc(v) && v >= float64(least) && v <= float64(greatest)
}

// wrapInt is the value that a literal n stands for in e.
func wrapInt(n int64, e Elem) int64 {
	switch e {
	case I1:
		return n & 1
	case I4:
		return n << 60 >> 60
	case UI4:
		return n & 15
	case I8:
		return int64(int8(n))
	case I16:
		return int64(int16(n))
	case I32:
		return int64(int32(n))
	}
	return n
}
