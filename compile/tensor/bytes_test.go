package tensor

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"dmir/dialect/types"
)

// Every element type comes back from its bytes as it was, and has the width of
// its type.
func TestPack(t *testing.T) {
	for _, elem := range []types.Elem{
		types.F16, types.BF16, types.F32, types.F64, types.F8E4M3FN, types.F8E5M2,
		types.I1, types.I8, types.I16, types.I32, types.I64, types.UI8, types.UI16, types.UI32, types.UI64, types.I4, types.UI4,
	} {
		x := Random(elem, []int{3, 5}, 1, 2)
		b := Pack(x)
		if int64(len(b)) != (15*elem.Bits()+7)/8 {
			t.Fatalf("%s: %d bytes", elem, len(b))
		}
		y, err := Unpack(b, elem, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if again := Pack(y); !bytes.Equal(again, b) || MaxDiff(x, y) != 0 {
			t.Errorf("%s does not come back", elem)
		}
		if _, err := Unpack(b[1:], elem, x.Shape); err == nil {
			t.Errorf("%s: a byte too few is accepted", elem)
		}
	}
}

// Each encoding of the small types has its value, and each value its encoding.
func TestPackEveryEncoding(t *testing.T) {
	for _, elem := range []types.Elem{types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2} {
		size := int(elem.Bytes())
		n := 1 << (8 * size)
		b := make([]byte, n*size)
		for i := range n {
			b[i*size] = byte(i)
			if size == 2 {
				b[i*size+1] = byte(i >> 8)
			}
		}
		x, err := Unpack(b, elem, []int{n})
		if err != nil {
			t.Fatal(err)
		}
		back := Pack(x)
		for i := range n {
			v := float64(x.F32[i])
			if want := types.FromBits(uint64(i), elem); v != want && v == v || math.IsNaN(v) != math.IsNaN(want) {
				t.Fatalf("%s %#x is %g, want %g", elem, i, v, want)
			}
			var got uint64
			for k := range size {
				got |= uint64(back[i*size+k]) << (8 * k)
			}
			if got != uint64(i) && v == v || v != v && !math.IsNaN(types.FromBits(got, elem)) {
				t.Fatalf("%s %#x comes back as %#x", elem, i, got)
			}
		}
	}
}

// The bytes of known values, as NumPy and ml_dtypes have them.
func TestPackKnown(t *testing.T) {
	for _, c := range []struct {
		elem types.Elem
		v    float64
		want []byte
	}{
		{types.F16, 1, []byte{0, 0x3c}},
		{types.F16, -65504, []byte{0xff, 0xfb}},
		{types.F16, 0x1p-24, []byte{1, 0}},
		{types.F16, math.Inf(1), []byte{0, 0x7c}},
		{types.BF16, 1, []byte{0x80, 0x3f}},
		{types.BF16, math.Copysign(0, -1), []byte{0, 0x80}},
		{types.BF16, math.NaN(), []byte{0xc0, 0x7f}},
		{types.F8E4M3FN, 448, []byte{0x7e}},
		{types.F8E4M3FN, math.NaN(), []byte{0x7f}},
		{types.F8E5M2, math.Inf(-1), []byte{0xfc}},
		{types.F32, 1, []byte{0, 0, 0x80, 0x3f}},
		{types.I1, 1, []byte{1}},
		{types.I16, -2, []byte{0xfe, 0xff}},
		{types.UI8, 255, []byte{255}},
		{types.I4, -3, []byte{13}},
		{types.UI4, 15, []byte{15}},
		{types.I64, -1, bytes.Repeat([]byte{255}, 8)},
	} {
		if got := Pack(FromFloats(c.elem, nil, []float64{c.v})); !bytes.Equal(got, c.want) {
			t.Errorf("%s %g is % x, want % x", c.elem, c.v, got, c.want)
		}
	}
}

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		shape, order []int
		want         []byte
	}{
		{[]int{2, 3}, nil, []byte{0, 1, 2, 3, 4, 5}},
		{[]int{2, 3}, []int{0, 1}, []byte{0, 1, 2, 3, 4, 5}},
		{[]int{2, 3}, []int{1, 0}, []byte{0, 3, 1, 4, 2, 5}},
		{[]int{2, 3, 2}, []int{2, 0, 1}, []byte{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}},
		{[]int{0, 3}, []int{1, 0}, nil},
		{nil, nil, []byte{0}},
	} {
		n, _ := Count(c.shape)
		for _, elem := range []types.Elem{types.UI8, types.F32, types.UI4} {
			var b, want []byte
			for i := range n {
				b = append(b, bytes.Repeat([]byte{byte(i)}, int(elem.Bytes()))...)
				want = append(want, bytes.Repeat([]byte{c.want[i]}, int(elem.Bytes()))...)
			}
			if elem.Packed() {
				b, want = types.PackHalves(b), types.PackHalves(want)
			}
			got := Arrange(b, elem, c.shape, c.order)
			if !slices.Equal(got, want) {
				t.Errorf("%v in the order %v: %v, want %v", c.shape, c.order, got, want)
			}
			if back := Unarrange(got, elem, c.shape, c.order); !slices.Equal(back, b) {
				t.Errorf("%v in the order %v: comes back as %v", c.shape, c.order, back)
			}
		}
	}
}
