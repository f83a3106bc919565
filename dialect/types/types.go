// Package types is the meaning of type and attribute texts: element types and
// their sizes, ranked tensors with symbolic dimensions and a placement, and
// attribute values. Values are immutable and may be shared.
package types

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
)

// Elem is an element type.
type Elem uint8

// The element types of the dialect.
const (
	InvalidElem Elem = iota
	F64
	F32
	F16
	BF16
	F8E4M3FN
	F8E5M2
	I64
	I32
	I16
	I8
	I4
	I1
	UI64
	UI32
	UI16
	UI8
	UI4
	Index

	// TF32 is f32 as tensor cores multiply it: 10 bits of the mantissa count, behind a rounding to nearest. No
	// tensor has it; it is the type of the operands of a product with precision = tf32 that machines have a rate for.
	TF32
)

var elems = [...]struct {
	name string
	bits int64
}{
	{"?", 0},
	{"f64", 64},
	{"f32", 32},
	{"f16", 16},
	{"bf16", 16},
	{"f8E4M3FN", 8},
	{"f8E5M2", 8},
	{"i64", 64},
	{"i32", 32},
	{"i16", 16},
	{"i8", 8},
	{"i4", 4},
	{"i1", 8},
	{"ui64", 64},
	{"ui32", 32},
	{"ui16", 16},
	{"ui8", 8},
	{"ui4", 4},
	{"index", 64},
	{"tf32", 32},
}

func (e Elem) String() string { return elems[e].name }

// Bits is the size of one element of a tensor in memory; an i1 takes 8.
func (e Elem) Bits() int64 { return elems[e].bits }

// Bytes is the size of one element on its own, rounded up.
func (e Elem) Bytes() int64 { return (elems[e].bits + 7) / 8 }

// Packed reports whether a byte in memory has two elements of e: the first one in
// the low half. The last byte of an odd number of elements has one.
func (e Elem) Packed() bool { return e == I4 || e == UI4 }

// Size is the bytes of n elements in memory.
func (e Elem) Size(n dim.Dim) dim.Dim {
	if e.Packed() {
		return dim.Halves(n)
	}
	return n.Scale(e.Bytes())
}

// IsFloat reports whether e is a floating-point type.
func (e Elem) IsFloat() bool { return e >= F64 && e <= F8E5M2 || e == TF32 }

// Stored is the type that numbers of e have in memory: that of tensors.
func (e Elem) Stored() Elem {
	if e == TF32 {
		return F32
	}
	return e
}

// IsInt reports whether e is an integer type, i1 and index included.
func (e Elem) IsInt() bool { return e >= I64 && e <= Index }

// IsUnsigned reports whether e is one of ui4 … ui64, or i1.
func (e Elem) IsUnsigned() bool { return e >= UI64 && e <= UI4 || e == I1 }

// ElemByName is the element type of tensors called name.
func ElemByName(name string) (Elem, bool) {
	for i := F64; i <= Index; i++ {
		if elems[i].name == name {
			return i, true
		}
	}
	return InvalidElem, false
}

// Type is a type: *Tensor, Scalar, *Tuple, *Func, or Opaque.
type Type interface {
	String() string // MLIR text, aliases expanded
}

// Scalar is a bare element type, as block arguments of scalar regions have.
type Scalar struct{ Elem Elem }

func (s Scalar) String() string { return s.Elem.String() }

// ElemOf is the element type of a tensor, or a scalar; InvalidElem of other types,
// tuples among them.
func ElemOf(t Type) Elem {
	switch t := t.(type) {
	case *Tensor:
		return t.Elem
	case Scalar:
		return t.Elem
	}
	return InvalidElem
}

// Space is a memory space.
type Space string

// The memory spaces of the dialect.
const (
	HBM    Space = "hbm" // the default: the device's main memory
	Host   Space = "host"
	SMem   Space = "smem"
	Reg    Space = "reg"
	Remote Space = "remote"
)

// Placement is the encoding #dm.at<space, order = […], dims = […], split = …>.
type Placement struct {
	Space Space
	Order []int     // permutation, outermost first; nil is row-major
	Shard *Sharding // nil: none is stated
}

// Default reports whether p is row-major in hbm and states no sharding, which is never
// printed.
func (p Placement) Default() bool { return p.In() == HBM && p.Order == nil && p.Shard == nil }

// In is the memory space; a placement that was never written is in HBM.
func (p Placement) In() Space {
	if p.Space == "" {
		return HBM
	}
	return p.Space
}

// Equal reports whether p and q are the same space, order and sharding.
func (p Placement) Equal(q Placement) bool {
	return p.In() == q.In() && slices.Equal(p.Order, q.Order) && p.Shard.Equal(q.Shard)
}

// Tensor is a ranked tensor, dense or sparse. A "?" without a name in the encoding's dims gets a
// symbol made from where it is declared, so that every dimension is a Dim.
type Tensor struct {
	Shape []dim.Dim
	Elem  Elem
	At    Placement
	// Format is how a sparse tensor is stored, nil of others.
	Format *Format
	Enc    string // an encoding of another dialect, verbatim
}

// Rank is the number of dimensions.
func (t *Tensor) Rank() int { return len(t.Shape) }

// Elements is the product of the dimensions; 1 for rank 0.
func (t *Tensor) Elements() dim.Dim { return dim.Prod(t.Shape...) }

// Bytes is the size of all elements; of a sparse tensor that of its components.
func (t *Tensor) Bytes() dim.Dim {
	if t.Format == nil {
		return t.Elem.Size(t.Elements())
	}
	var sum dim.Dim
	for _, c := range t.Components() {
		sum = sum.Add(c.Tensor.Bytes())
	}
	return sum
}

// Values is how many elements t stores.
func (t *Tensor) Values() dim.Dim {
	if t.Format == nil {
		return t.Elements()
	}
	entries := t.Entries()
	return entries[len(entries)-1].Scale(max(t.Format.Pieces.Count(), 1))
}

// With returns a tensor of the same element type and placement-free layout with another shape.
func (t *Tensor) With(shape ...dim.Dim) *Tensor {
	return &Tensor{Shape: shape, Elem: t.Elem, At: Placement{Space: t.At.Space}}
}

// String prints MLIR: symbolic dimensions as "?" named in the encoding. A
// dimension that depends on one without a name has no text of its own: it is a
// plain "?", listed as such where others have names.
func (t *Tensor) String() string {
	var b strings.Builder
	var names []string
	named := false
	b.WriteString("tensor<")
	for _, d := range t.Shape {
		switch n, ok := d.Int(); {
		case ok:
			b.WriteString(strconv.FormatInt(n, 10))
		case d.IsUnnamed():
			b.WriteByte('?')
			names = append(names, "?")
		default:
			b.WriteByte('?')
			names = append(names, d.String())
			named = true
		}
		b.WriteByte('x')
	}
	b.WriteString(t.Elem.String())
	if !named {
		names = nil
	}
	if enc := t.encoding(names); enc != "" {
		b.WriteString(", ")
		b.WriteString(enc)
	}
	b.WriteByte('>')
	return b.String()
}

func (t *Tensor) encoding(names []string) string {
	switch {
	case t.Enc != "":
		return t.Enc
	case t.Format != nil:
		return t.Format.Text(t.Rank(), names)
	}
	var parts []string
	if t.At.In() != HBM {
		parts = append(parts, string(t.At.Space))
	}
	if t.At.Order != nil {
		o := make([]string, len(t.At.Order))
		for i, n := range t.At.Order {
			o[i] = strconv.Itoa(n)
		}
		parts = append(parts, "order = ["+strings.Join(o, ", ")+"]")
	}
	if names != nil {
		parts = append(parts, "dims = ["+strings.Join(names, ", ")+"]")
	}
	if t.At.Shard != nil {
		parts = append(parts, t.At.Shard.Text())
	}
	if parts == nil {
		return ""
	}
	return "#dm.at<" + strings.Join(parts, ", ") + ">"
}

// Func is a function type.
type Func struct{ In, Out []Type }

func (f *Func) String() string {
	out := List(f.Out)
	if len(f.Out) != 1 {
		out = "(" + out + ")"
	} else if _, isFunc := f.Out[0].(*Func); isFunc {
		out = "(" + out + ")"
	}
	return "(" + List(f.In) + ") -> " + out
}

// List joins the types with commas.
func List(ts []Type) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = t.String()
	}
	return strings.Join(s, ", ")
}

// Opaque is a type dmir does not look into (memref, vector, !other.type), kept
// as written but on one line, and the unknown type of an unknown op's result (Text "").
type Opaque struct {
	Text string
	elem string // see ForeignElem
}

func (o Opaque) String() string {
	if o.Text == "" {
		return "?"
	}
	return o.Text
}

// ForeignElem is the element type of a tensor whose elements the dialect does not
// have, such as i2; "" of other types.
func ForeignElem(t Type) string {
	o, _ := t.(Opaque)
	return o.elem
}

// Unknown is the type of results of unknown ops.
var Unknown = Opaque{}
