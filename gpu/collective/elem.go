package collective

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"dmir/gpu/artifact"
)

// narrow are the floating-point types that are combined in f32.
var narrow = map[string]bool{"f16": true, "bf16": true, "f8E4M3FN": true, "f8E5M2": true}

func isFloat(elem string) bool { return elem == "f32" || elem == "f64" || narrow[elem] }

func isUnsigned(elem string) bool { return elem == "i1" || elem[0] == 'u' }

func isPacked(elem string) bool { return elem == "i4" || elem == "ui4" }

// width is the bytes in which an element, or the pair of a packed type, is accessed.
func width(elem string) int {
	n, _ := artifact.ElemBytes(elem)
	return int(n)
}

// count is how many elements b holds.
func count(elem string, b []byte) int {
	if isPacked(elem) {
		return 2 * len(b)
	}
	return len(b) / width(elem)
}

// foldBytes is how many bytes are combined at a time, so that what they are widened to stays
// in a processor's cache.
const foldBytes = 4 << 10

// fold combines the buffers in into out, in their order. Their sizes are equal.
func fold(how Reduction, elem string, in [][]byte, out []byte) {
	switch {
	case elem == "f64":
		foldIn(how, elem, in, out, readF64, writeF64)
	case isFloat(elem):
		foldIn(how, elem, in, out, func(b []byte, to []float32) { widen(elem, b, to) },
			func(from []float32, b []byte) { round(elem, from, b) })
	case elem == "i1":
		foldIn(logical(how), elem, in, out, func(b []byte, to []uint64) { readInts(elem, b, to) },
			func(from []uint64, b []byte) { writeInts(elem, from, b) })
	case isUnsigned(elem):
		foldIn(how, elem, in, out, func(b []byte, to []uint64) { readInts(elem, b, to) },
			func(from []uint64, b []byte) { writeInts(elem, from, b) })
	default:
		foldIn(how, elem, in, out, func(b []byte, to []int64) { readInts(elem, b, to) },
			func(from []int64, b []byte) { writeInts(elem, from, b) })
	}
}

// logical is the reduction of truth values that stands for how.
func logical(how Reduction) Reduction {
	switch how {
	case Mul, Min, And:
		return And
	}
	return Or
}

type number interface {
	float32 | float64 | int64 | uint64
}

// foldIn combines in T. Any element has at least half a byte.
func foldIn[T number](how Reduction, elem string, in [][]byte, out []byte, read func([]byte, []T), write func([]T, []byte)) {
	var acc, next [2 * foldBytes]T
	for lo := 0; lo < len(out); lo += foldBytes {
		hi := min(lo+foldBytes, len(out))
		n := count(elem, out[lo:hi])
		read(in[0][lo:hi], acc[:n])
		for _, b := range in[1:] {
			read(b[lo:hi], next[:n])
			combine(how, acc[:n], next[:n])
		}
		write(acc[:n], out[lo:hi])
	}
}

func combine[T number](how Reduction, acc, next []T) {
	next = next[:len(acc)]
	switch how {
	case Add:
		for i, v := range next {
			acc[i] += v
		}
	case Mul:
		for i, v := range next {
			acc[i] *= v
		}
	case Max:
		for i, v := range next {
			acc[i] = max(acc[i], v)
		}
	case Min:
		for i, v := range next {
			acc[i] = min(acc[i], v)
		}
	case And, Or:
		combineBits(how, any(acc), any(next))
	}
}

// combineBits is of integers; floating-point types do not reach it.
func combineBits(how Reduction, acc, next any) {
	switch acc := acc.(type) {
	case []int64:
		bits(how, acc, next.([]int64))
	case []uint64:
		bits(how, acc, next.([]uint64))
	}
}

func bits[T int64 | uint64](how Reduction, acc, next []T) {
	for i, v := range next {
		if how == And {
			acc[i] &= v
		} else {
			acc[i] |= v
		}
	}
}

func readF64(b []byte, to []float64) {
	for i := range len(b) / 8 {
		to[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func writeF64(from []float64, b []byte) {
	for i := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(from[i]))
	}
}

// widen reads elements of f32 or narrower.
func widen(elem string, b []byte, to []float32) {
	switch elem {
	case "f32":
		for i := range len(b) / 4 {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case "f16":
		for i := range len(b) / 2 {
			to[i] = float16.Frombits(binary.LittleEndian.Uint16(b[2*i:])).Float32()
		}
	case "bf16":
		for i := range len(b) / 2 {
			to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	default:
		f := float8s[elem]
		for i, v := range b {
			to[i] = f.values[v]
		}
	}
}

// round writes elements of f32 or narrower, rounded to nearest, ties to even.
func round(elem string, from []float32, b []byte) {
	switch elem {
	case "f32":
		for i := range len(b) / 4 {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(from[i]))
		}
	case "f16":
		for i := range len(b) / 2 {
			binary.LittleEndian.PutUint16(b[2*i:], float16.Fromfloat32(from[i]).Bits())
		}
	case "bf16":
		for i := range len(b) / 2 {
			v := math.Float32bits(from[i])
			if from[i] == from[i] {
				v += 0x7fff + v>>16&1
			} else {
				v |= 1 << 22 // stays a NaN
			}
			binary.LittleEndian.PutUint16(b[2*i:], uint16(v>>16))
		}
	default:
		f := float8s[elem]
		for i := range b {
			b[i] = f.bits(from[i])
		}
	}
}

// float8 is a format of eight bits: bits of the mantissa, and the exponent of the smallest
// normal number.
type float8 struct {
	mant, minExp int
	inf          bool // otherwise what is too large is NaN
	values       [256]float32
}

var float8s = map[string]*float8{"f8E4M3FN": newFloat8(3, -6, false), "f8E5M2": newFloat8(2, -14, true)}

func newFloat8(mant, minExp int, inf bool) *float8 {
	f := &float8{mant: mant, minExp: minExp, inf: inf}
	for b := range 128 {
		exp, frac := b>>mant, b&(1<<mant-1)
		v := math.Ldexp(float64(frac), minExp-mant)
		if exp > 0 {
			v = math.Ldexp(float64(1<<mant+frac), minExp-mant+exp-1)
		}
		switch {
		case inf && b == 0x7c:
			v = math.Inf(1)
		case inf && b > 0x7c || !inf && b == 0x7f:
			v = math.NaN()
		}
		f.values[b], f.values[b|0x80] = float32(v), float32(-v)
	}
	return f
}

// top is the encoding of the largest finite value.
func (f *float8) top() int {
	if f.inf {
		return 0x7b
	}
	return 0x7e
}

func (f *float8) bits(x float32) byte {
	sign := byte(math.Float32bits(x) >> 24 & 0x80)
	a := math.Abs(float64(x))
	if a != a {
		if f.inf {
			return sign | 0x7e
		}
		return sign | 0x7f
	}
	if a == 0 {
		return sign
	}
	if math.IsInf(a, 1) {
		return sign | byte(f.top()+1)
	}
	exp := max(math.Ilogb(a), f.minExp)
	frac := int(math.RoundToEven(math.Ldexp(a, f.mant-exp))) // with the implied bit, whose carry moves the exponent
	b := (exp-f.minExp)<<f.mant + frac
	return sign | byte(min(b, f.top()+1))
}

// readInts reads integers, extended by their sign or by zeros.
func readInts[T int64 | uint64](elem string, b []byte, to []T) {
	switch elem {
	case "i1":
		for i, v := range b {
			to[i] = T(v & 1)
		}
	case "i4":
		for i, v := range b {
			to[2*i], to[2*i+1] = T(int8(v<<4)>>4), T(int8(v)>>4)
		}
	case "ui4":
		for i, v := range b {
			to[2*i], to[2*i+1] = T(v&15), T(v>>4)
		}
	case "i8":
		for i, v := range b {
			to[i] = T(int8(v))
		}
	case "ui8":
		for i, v := range b {
			to[i] = T(v)
		}
	case "i16":
		for i := range len(b) / 2 {
			to[i] = T(int16(binary.LittleEndian.Uint16(b[2*i:])))
		}
	case "ui16":
		for i := range len(b) / 2 {
			to[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case "i32":
		for i := range len(b) / 4 {
			to[i] = T(int32(binary.LittleEndian.Uint32(b[4*i:])))
		}
	case "ui32":
		for i := range len(b) / 4 {
			to[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
		}
	default:
		for i := range len(b) / 8 {
			to[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

// writeInts writes the low bits of integers.
func writeInts[T int64 | uint64](elem string, from []T, b []byte) {
	if isPacked(elem) {
		for i := range b {
			b[i] = byte(from[2*i])&15 | byte(from[2*i+1])<<4
		}
		return
	}
	switch width(elem) {
	case 1:
		for i := range b {
			b[i] = byte(from[i])
		}
	case 2:
		for i := range len(b) / 2 {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(from[i]))
		}
	case 4:
		for i := range len(b) / 4 {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(from[i]))
		}
	default:
		for i := range len(b) / 8 {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(from[i]))
		}
	}
}
