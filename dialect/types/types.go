// Package types is the meaning of type and attribute texts: element types and
// their sizes, ranked tensors with symbolic dimensions and a placement, and
// attribute values. Values are immutable and may be shared.
package types

import (
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
	I1
	UI64
	UI32
	UI16
	UI8
	Index
)

var elems = [...]struct {
	name  string
	bytes int64
}{
	{"?", 0},
	{"f64", 8},
	{"f32", 4},
	{"f16", 2},
	{"bf16", 2},
	{"f8E4M3FN", 1},
	{"f8E5M2", 1},
	{"i64", 8},
	{"i32", 4},
	{"i16", 2},
	{"i8", 1},
	{"i1", 1},
	{"ui64", 8},
	{"ui32", 4},
	{"ui16", 2},
	{"ui8", 1},
	{"index", 8},
}

func (e Elem) String() string { return elems[e].name }

// Bytes is the size in memory of one element; an i1 takes a byte.
func (e Elem) Bytes() int64 { return elems[e].bytes }

// IsFloat reports whether e is a floating-point type.
func (e Elem) IsFloat() bool { return e >= F64 && e <= F8E5M2 }

// IsInt reports whether e is an integer type, i1 and index included.
func (e Elem) IsInt() bool { return e >= I64 }

// IsUnsigned reports whether e is one of ui8 … ui64, or i1.
func (e Elem) IsUnsigned() bool { return e >= UI64 && e <= UI8 || e == I1 }

// ElemByName is the element type called name.
func ElemByName(name string) (Elem, bool) {
	for i := F64; int(i) < len(elems); i++ {
		if elems[i].name == name {
			return i, true
		}
	}
	return InvalidElem, false
}

// Type is a type: *Tensor, Scalar, *Func, or Opaque.
type Type interface {
	String() string // MLIR text, aliases expanded
}

// Scalar is a bare element type, as block arguments of scalar regions have.
type Scalar struct{ Elem Elem }

func (s Scalar) String() string { return s.Elem.String() }

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

// Placement is the encoding #dm.at<space, order = […], dims = […]>.
type Placement struct {
	Space Space
	Order []int // permutation, outermost first; nil is row-major
}

// Default reports whether p is row-major in hbm, which is never printed.
func (p Placement) Default() bool { return p.Space == HBM && p.Order == nil }

// Tensor is a ranked tensor. A "?" without a name in the encoding's dims gets a
// symbol made from where it is declared, so that every dimension is a Dim.
type Tensor struct {
	Shape []dim.Dim
	Elem  Elem
	At    Placement
	Enc   string // an encoding of another dialect, verbatim
}

// Rank is the number of dimensions.
func (t *Tensor) Rank() int { return len(t.Shape) }

// Elements is the product of the dimensions; 1 for rank 0.
func (t *Tensor) Elements() dim.Dim { return dim.Prod(t.Shape...) }

// Bytes is Elements times the element size.
func (t *Tensor) Bytes() dim.Dim { return t.Elements().Scale(t.Elem.Bytes()) }

// With returns a tensor of the same element type and placement-free layout with another shape.
func (t *Tensor) With(shape ...dim.Dim) *Tensor {
	return &Tensor{Shape: shape, Elem: t.Elem, At: Placement{Space: t.At.Space}}
}

// String prints MLIR: symbolic dimensions as "?" named in the encoding.
func (t *Tensor) String() string {
	var b, names strings.Builder
	b.WriteString("tensor<")
	for _, d := range t.Shape {
		if n, ok := d.Int(); ok {
			b.WriteString(dim.Const(n).String())
		} else {
			b.WriteByte('?')
			if names.Len() > 0 {
				names.WriteString(", ")
			}
			names.WriteString(d.String())
		}
		b.WriteByte('x')
	}
	b.WriteString(t.Elem.String())
	if enc := t.encoding(names.String()); enc != "" {
		b.WriteString(", ")
		b.WriteString(enc)
	}
	b.WriteByte('>')
	return b.String()
}

func (t *Tensor) encoding(names string) string {
	if t.Enc != "" {
		return t.Enc
	}
	var parts []string
	if t.At.Space != HBM && t.At.Space != "" {
		parts = append(parts, string(t.At.Space))
	}
	if t.At.Order != nil {
		o := make([]string, len(t.At.Order))
		for i, n := range t.At.Order {
			o[i] = dim.Const(int64(n)).String()
		}
		parts = append(parts, "order = ["+strings.Join(o, ", ")+"]")
	}
	if names != "" {
		parts = append(parts, "dims = ["+names+"]")
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
// verbatim, and the unknown type of an unknown op's result (Text "").
type Opaque struct{ Text string }

func (o Opaque) String() string {
	if o.Text == "" {
		return "?"
	}
	return o.Text
}

// Unknown is the type of values whose op dmir does not know.
var Unknown = Opaque{}

// Equal reports whether a and b are the same type.
func Equal(a, b Type) bool {
	switch a := a.(type) {
	case *Tensor:
		t, ok := b.(*Tensor)
		if !ok || a.Elem != t.Elem || a.Enc != t.Enc || a.At.Space != t.At.Space || len(a.Shape) != len(t.Shape) || len(a.At.Order) != len(t.At.Order) {
			return false
		}
		if a == t {
			return true
		}
		for i := range a.Shape {
			if !a.Shape[i].Equal(t.Shape[i]) {
				return false
			}
		}
		for i := range a.At.Order {
			if a.At.Order[i] != t.At.Order[i] {
				return false
			}
		}
		return true
	case *Func:
		f, ok := b.(*Func)
		if !ok || len(a.In) != len(f.In) || len(a.Out) != len(f.Out) {
			return false
		}
		for i := range a.In {
			if !Equal(a.In[i], f.In[i]) {
				return false
			}
		}
		for i := range a.Out {
			if !Equal(a.Out[i], f.Out[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}
