package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"dmir/dialect/types"
)

// Pack is the elements of t as devices hold them: little-endian, row-major, each
// in the bytes of its element type, i1 as one byte.
func Pack(t *Tensor) ([]byte, error) {
	size := int(t.Elem.Bytes())
	b := make([]byte, t.Len()*size)
	for i := range t.Len() {
		put(b[i*size:], size, t.bits(i))
	}
	return b, nil
}

// Unpack is the tensor whose elements Pack gave as b.
func Unpack(b []byte, elem types.Elem, shape []int) (*Tensor, error) {
	n, ok := Count(shape)
	size := int(elem.Bytes())
	if !ok || n*size != len(b) {
		return nil, fmt.Errorf("%d bytes are no tensor of %v elements of %s", len(b), shape, elem)
	}
	t := New(elem, shape...)
	for i := range n {
		t.setBits(i, get(b[i*size:], size))
	}
	return t, nil
}

func put(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func get(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// bits is element i as its type stores it.
func (t *Tensor) bits(i int) uint64 {
	switch t.Kind() {
	case KindF32:
		if t.Elem == types.F32 {
			return uint64(math.Float32bits(t.F32[i]))
		}
		return types.ToBits(float64(t.F32[i]), t.Elem)
	case KindF64:
		return math.Float64bits(t.F64[i])
	case KindInt:
		return uint64(t.Int[i])
	}
	return uint64(t.Bool[i])
}

func (t *Tensor) setBits(i int, v uint64) {
	switch t.Kind() {
	case KindF32:
		if t.Elem == types.F32 {
			t.F32[i] = math.Float32frombits(uint32(v))
		} else {
			t.F32[i] = float32(types.FromBits(v, t.Elem))
		}
	case KindF64:
		t.F64[i] = math.Float64frombits(v)
	case KindInt:
		t.Int[i] = Wrap(t.Elem, int64(v))
	default:
		t.Bool[i] = uint8(v & 1)
	}
}
