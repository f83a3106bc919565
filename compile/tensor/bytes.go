package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"dmir/dialect/types"
)

// Pack is the elements of t in the layout of devices: little-endian, row-major,
// each in the bytes of its element type, i1 as one byte, of i4 two in a byte.
func Pack(t *Tensor) []byte {
	b := packBytes(t)
	if t.Elem.Packed() {
		return types.PackHalves(b)
	}
	return b
}

// size is the bytes of n elements that Pack makes.
func size(elem types.Elem, n int) int {
	if elem.Packed() {
		return n/2 + n%2
	}
	return n * int(elem.Bytes())
}

// packBytes is Pack with a byte for each element of a packed type.
func packBytes(t *Tensor) []byte {
	size := int(t.Elem.Bytes())
	b := make([]byte, t.Len()*size)
	parallel(t.Len(), bytesGrain, func(lo, hi int) { t.pack(b[lo*size:hi*size], lo, hi) })
	return b
}

// Unpack is the tensor that Pack converted to b.
func Unpack(b []byte, elem types.Elem, shape []int) (*Tensor, error) {
	n, ok := Count(shape)
	if !ok || size(elem, n) != len(b) {
		return nil, fmt.Errorf("%d bytes are no tensor of %v elements of %s", len(b), shape, elem)
	}
	if elem.Packed() {
		b = types.UnpackHalves(b, n)
	}
	t, each := New(elem, shape...), int(elem.Bytes())
	parallel(n, bytesGrain, func(lo, hi int) { t.unpack(b[lo*each:hi*each], lo, hi) })
	return t, nil
}

// Of are the elements of a literal; its error is why they cannot be read or are none of
// its type.
func Of(d *types.Dense) (*Tensor, error) {
	b, err := d.All()
	if err != nil {
		return nil, err
	}
	return Unpack(b, d.Elem, sizes(d.Type))
}

// bytesGrain is the minimum number of elements for a goroutine.
const bytesGrain = 1 << 16

// pack writes the elements lo to hi to b.
func (t *Tensor) pack(b []byte, lo, hi int) {
	switch t.Kind() {
	case KindF64:
		for i, v := range t.F64[lo:hi] {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
	case KindF32:
		switch t.Elem {
		case types.F32:
			for i, v := range t.F32[lo:hi] {
				binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
			}
		case types.F16:
			for i, v := range t.F32[lo:hi] {
				binary.LittleEndian.PutUint16(b[2*i:], f16Bits(v))
			}
		case types.BF16:
			for i, v := range t.F32[lo:hi] {
				binary.LittleEndian.PutUint16(b[2*i:], bf16Bits(v))
			}
		default:
			for i, v := range t.F32[lo:hi] {
				b[i] = byte(types.ToBits(float64(v), t.Elem))
			}
		}
	case KindBool:
		copy(b, t.Bool[lo:hi])
	case KindInt:
		size := int(t.Elem.Bytes())
		for i, v := range t.Int[lo:hi] {
			switch size {
			case 1:
				b[i] = byte(v)
			case 2:
				binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
			case 4:
				binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
			default:
				binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
			}
		}
	}
}

// unpack reads the elements lo to hi from b.
func (t *Tensor) unpack(b []byte, lo, hi int) {
	switch t.Kind() {
	case KindF64:
		for i := range t.F64[lo:hi] {
			t.F64[lo+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case KindF32:
		switch out := t.F32[lo:hi]; t.Elem {
		case types.F32:
			for i := range out {
				out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
		case types.F16:
			values := f16Values()
			for i := range out {
				out[i] = values[binary.LittleEndian.Uint16(b[2*i:])]
			}
		case types.BF16:
			for i := range out {
				out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
			}
		default:
			for i := range out {
				out[i] = float32(types.FromBits(uint64(b[i]), t.Elem))
			}
		}
	case KindBool:
		for i := range b {
			t.Bool[lo+i] = b[i] & 1
		}
	case KindInt:
		size := int(t.Elem.Bytes())
		for i := range t.Int[lo:hi] {
			var v uint64
			switch size {
			case 1:
				v = uint64(b[i])
			case 2:
				v = uint64(binary.LittleEndian.Uint16(b[2*i:]))
			case 4:
				v = uint64(binary.LittleEndian.Uint32(b[4*i:]))
			default:
				v = binary.LittleEndian.Uint64(b[8*i:])
			}
			t.Int[lo+i] = Wrap(t.Elem, int64(v))
		}
	}
}

// f16Bits is the encoding of a value of f16.
func f16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	exp := int(b>>23&0xff) - 127 + 15
	if exp <= 0 || exp >= 31 { // zero, subnormal, infinite, NaN
		return uint16(types.ToBits(float64(v), types.F16))
	}
	return uint16(b>>16&0x8000 | uint32(exp)<<10 | b>>13&0x3ff)
}

// bf16Bits is the encoding of a value of bf16: the upper half of f32's, except
// that a NaN must stay one.
func bf16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		b |= 1 << 22
	}
	return uint16(b >> 16)
}

// f16Values are the values of all encodings.
var f16Values = sync.OnceValue(func() *[1 << 16]float32 {
	var all [1 << 16]float32
	for b := range all {
		all[b] = float32(types.FromBits(uint64(b), types.F16))
	}
	return &all
})

// Arrange converts what Pack made of a tensor of elem and shape to another order of
// dimensions in memory, outermost first; nil is row-major. order must be a
// permutation of the dimensions.
func Arrange(b []byte, elem types.Elem, shape, order []int) []byte {
	return permute(b, elem, shape, order, false)
}

// Unarrange is the inverse of Arrange.
func Unarrange(b []byte, elem types.Elem, shape, order []int) []byte {
	return permute(b, elem, shape, order, true)
}

func permute(b []byte, elem types.Elem, shape, order []int, back bool) []byte {
	inOrder := true
	for i, d := range order {
		inOrder = inOrder && i == d
	}
	if inOrder || len(b) == 0 {
		return b
	}
	if elem.Packed() {
		n, _ := Count(shape)
		return types.PackHalves(permute(types.UnpackHalves(b, n), types.UI8, shape, order, back))
	}
	size := int(elem.Bytes())
	out := make([]byte, len(b))
	strides := Strides(shape)
	at := make([]int, len(order)) // the index, in memory order
	from := 0                     // its row-major offset
	for to := range len(b) / size {
		if back {
			copy(out[from*size:][:size], b[to*size:])
		} else {
			copy(out[to*size:][:size], b[from*size:])
		}
		for k := len(order) - 1; k >= 0; k-- {
			d := order[k]
			at[k]++
			from += strides[d]
			if at[k] < shape[d] {
				break
			}
			at[k] = 0
			from -= strides[d] * shape[d]
		}
	}
	return out
}
