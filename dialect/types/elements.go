package types

import (
	"encoding/binary"
	"strconv"
)

// Elements are numbers of one type: little-endian, each in the bytes of its type,
// an i1 as one byte 0 or 1, an i4 as the low half of a byte. The bytes never
// change, so copies share them.
type Elements struct {
	Elem Elem
	data []byte
}

// Bytes are the bytes of all elements. They must not be changed.
func (a *Elements) Bytes() []byte { return a.data }

// Stored are the elements as devices hold them. The bytes must not be changed.
func (a *Elements) Stored() []byte {
	if a.Elem.Packed() {
		return PackHalves(a.data)
	}
	return a.data
}

// PackHalves stores the low halves of b's bytes two in a byte, the first one in its
// low half.
func PackHalves(b []byte) []byte {
	out := make([]byte, len(b)/2+len(b)%2)
	for i, v := range b {
		out[i/2] |= v & 15 << (i % 2 * 4)
	}
	return out
}

// UnpackHalves are the first n halves of b's bytes, one in a byte.
func UnpackHalves(b []byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b[i/2] >> (i % 2 * 4) & 15
	}
	return out
}

// Len is the number of elements.
func (a *Elements) Len() int {
	if len(a.data) == 0 {
		return 0
	}
	return len(a.data) / int(a.Elem.Bytes())
}

// bits are the bits of element i.
func (a *Elements) bits(i int) uint64 {
	switch a.Elem.Bytes() {
	case 1:
		return uint64(a.data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(a.data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(a.data[4*i:]))
	}
	return binary.LittleEndian.Uint64(a.data[8*i:])
}

// Int is element i of an integer type; a ui64 as its bit pattern.
func (a *Elements) Int(i int) int64 { return wrapInt(int64(a.bits(i)), a.Elem) }

// Float is element i as a floating-point number.
func (a *Elements) Float(i int) float64 {
	switch {
	case a.Elem.IsFloat():
		return FromBits(a.bits(i), a.Elem)
	case a.Elem == UI64:
		return float64(a.bits(i))
	}
	return float64(a.Int(i))
}

// Ints are the elements of an integer type.
func (a *Elements) Ints() []int64 {
	out := make([]int64, a.Len())
	for i := range out {
		out[i] = a.Int(i)
	}
	return out
}

// add appends an element with those bits.
func (a *Elements) add(bits uint64) {
	if a.Elem.Packed() {
		bits &= 15
	}
	switch a.Elem.Bytes() {
	case 1:
		a.data = append(a.data, byte(bits))
	case 2:
		a.data = binary.LittleEndian.AppendUint16(a.data, uint16(bits))
	case 4:
		a.data = binary.LittleEndian.AppendUint32(a.data, uint32(bits))
	default:
		a.data = binary.LittleEndian.AppendUint64(a.data, bits)
	}
}

// same reports whether element i is element k of b, which has the same type.
// All NaNs of a type narrower than f64 are the same.
func (a *Elements) same(i int, b *Elements, k int) bool {
	return a.bits(i) == b.bits(k) || a.Elem.IsFloat() && sameFloat(a.Float(i), b.Float(k))
}

// appendText appends element i as MLIR writes it in a list.
func (a *Elements) appendText(out []byte, i int) []byte {
	switch {
	case a.Elem.IsFloat():
		return append(out, FloatText(a.Float(i), a.Elem)...)
	case a.Elem == I1:
		return strconv.AppendBool(out, a.Int(i) != 0)
	case a.Elem == UI64:
		return strconv.AppendUint(out, a.bits(i), 10)
	}
	return strconv.AppendInt(out, a.Int(i), 10)
}
