// Package tensor implements dense row-major tensors in host memory: the
// operands and results of the reference executor, read from and written to .npy
// files.
//
// Storage is at least as wide as the element type and every stored value is one
// that the element type can represent: the floating-point types up to 32 bits
// are kept as float32 (f32, f16, bf16, f8E4M3FN, f8E5M2), f64 as float64,
// integers as int64 (a ui64 as its bit pattern), i1 as uint8 0 or 1.
package tensor

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/dialect/types"
)

// Kind is how elements are stored.
type Kind uint8

// The kinds of storage.
const (
	KindF32 Kind = iota
	KindF64
	KindInt
	KindBool
)

// KindOf is the storage of elem.
func KindOf(elem types.Elem) Kind {
	switch {
	case elem == types.F64:
		return KindF64
	case elem.IsFloat():
		return KindF32
	case elem == types.I1:
		return KindBool
	default:
		return KindInt
	}
}

// Tensor is a dense row-major tensor. Exactly one of F32, F64, Int and Bool is
// used, according to Kind; its length is the product of Shape (1 for rank 0).
type Tensor struct {
	Elem  types.Elem
	Shape []int
	F32   []float32
	F64   []float64
	Int   []int64
	Bool  []uint8
}

// New is a tensor of zeros. The shape must be valid; see Count.
func New(elem types.Elem, shape ...int) *Tensor {
	t := &Tensor{Elem: elem, Shape: shape}
	n := t.Len()
	switch KindOf(elem) {
	case KindF32:
		t.F32 = make([]float32, n)
	case KindF64:
		t.F64 = make([]float64, n)
	case KindInt:
		t.Int = make([]int64, n)
	case KindBool:
		t.Bool = make([]uint8, n)
	}
	return t
}

// MaxElements bounds the size of one tensor: 2^36 elements, 256 GiB of float32.
const MaxElements = 1 << 36

// Count is the number of elements of shape; ok is false for a negative
// dimension or more than MaxElements elements.
func Count(shape []int) (n int, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			return 0, true
		}
		if n > MaxElements/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// FromFloats makes a tensor of elem from vals, rounded to elem; for integer
// types they are truncated and wrapped. len(vals) must be the product of shape.
func FromFloats(elem types.Elem, shape []int, vals []float64) *Tensor {
	t := New(elem, shape...)
	for i, v := range vals {
		t.SetFloat(i, v)
	}
	return t
}

// FromInts makes a tensor of elem from vals, wrapped to an integer type's width
// or converted to a floating-point type. len(vals) must be the product of shape.
func FromInts(elem types.Elem, shape []int, vals []int64) *Tensor {
	t := New(elem, shape...)
	for i, v := range vals {
		t.SetInt(i, v)
	}
	return t
}

// Kind is how t's elements are stored.
func (t *Tensor) Kind() Kind { return KindOf(t.Elem) }

// Rank is the number of dimensions.
func (t *Tensor) Rank() int { return len(t.Shape) }

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of t in its element type, as on a device.
func (t *Tensor) Bytes() int64 { return int64(size(t.Elem, t.Len())) }

// Float is element i in row-major order as a float64; a ui64 as its unsigned value.
func (t *Tensor) Float(i int) float64 {
	switch t.Kind() {
	case KindF32:
		return float64(t.F32[i])
	case KindF64:
		return t.F64[i]
	case KindBool:
		return float64(t.Bool[i])
	}
	if t.Elem == types.UI64 {
		return float64(uint64(t.Int[i]))
	}
	return float64(t.Int[i])
}

// Integer is element i as an int64: a ui64 as its bit pattern, a
// floating-point value truncated as ToInt does.
func (t *Tensor) Integer(i int) int64 {
	switch t.Kind() {
	case KindInt:
		return t.Int[i]
	case KindBool:
		return int64(t.Bool[i])
	}
	return ToInt(types.I64, t.Float(i))
}

// SetFloat stores v at i, rounded to the element type; into an integer type as
// ToInt, into i1 whether v is not zero.
func (t *Tensor) SetFloat(i int, v float64) {
	switch t.Kind() {
	case KindF32:
		t.F32[i] = Round64(t.Elem, v)
	case KindF64:
		t.F64[i] = v
	case KindInt:
		t.Int[i] = ToInt(t.Elem, v)
	case KindBool:
		t.Bool[i] = 0
		if v != 0 {
			t.Bool[i] = 1
		}
	}
}

// SetInt stores v at i: wrapped to an integer type, its lowest bit into i1,
// converted to a floating-point type.
func (t *Tensor) SetInt(i int, v int64) {
	switch t.Kind() {
	case KindInt:
		t.Int[i] = Wrap(t.Elem, v)
	case KindBool:
		t.Bool[i] = uint8(v & 1)
	default:
		t.SetFloat(i, float64(v))
	}
}

// Reshape is a view of t with another shape of the same number of elements.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	v := *t
	v.Shape = shape
	return &v
}

// Strides is the row-major strides of shape, in elements.
func Strides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// Type is t's type as MLIR text, e.g. "tensor<2x3xf16>".
func (t *Tensor) Type() string { return typeText(t.Shape, t.Elem.String()) }

func typeText(shape []int, elem string) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range shape {
		if d < 0 {
			b.WriteByte('?')
		} else {
			b.WriteString(strconv.Itoa(d))
		}
		b.WriteByte('x')
	}
	b.WriteString(elem)
	b.WriteByte('>')
	return b.String()
}

// String is the type and the first elements, for messages and tests.
func (t *Tensor) String() string {
	const most = 16
	var b strings.Builder
	b.WriteString(t.Type())
	b.WriteString(" [")
	n := t.Len()
	for i := range min(n, most) {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case t.Elem == types.UI64:
			b.WriteString(strconv.FormatUint(uint64(t.Int[i]), 10))
		case t.Elem.IsInt():
			b.WriteString(strconv.FormatInt(t.Integer(i), 10))
		default:
			b.WriteString(strconv.FormatFloat(t.Float(i), 'g', 6, 64))
		}
	}
	if n > most {
		fmt.Fprintf(&b, " … %d more", n-most)
	}
	b.WriteByte(']')
	return b.String()
}
