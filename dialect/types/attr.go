package types

// Attr is an attribute value: Bool, Int, Float, Str, Keyword, Symbol, Array,
// Dict, *Dense, TypeAttr, Unit or Raw. String is MLIR text.
type Attr interface{ String() string }

// The attribute values. Their String methods print MLIR.
type (
	Bool bool
	Int  struct {
		V    int64
		Elem Elem // InvalidElem where no type was written
	}
	Float struct {
		V    float64
		Elem Elem
	}
	Str      string
	Keyword  string // a bare word in a dm clause; generic form writes it as a string
	Symbol   string // without "@"; nested references as "a::b"
	Array    []Attr
	Dict     []Named // in textual order
	TypeAttr struct{ T Type }
	Unit     struct{}
	Raw      string // anything else, verbatim: affine maps, dialect attributes, locations
)

// Named is one entry of a dictionary or of an op's attributes.
type Named struct {
	Name  string
	Value Attr
}

// Dense is dense<…> : tensor type. A splat has one value and any shape.
// Floats hold the values of floating-point tensors, Ints those of integers.
type Dense struct {
	Type   *Tensor
	Splat  bool
	Floats []float64
	Ints   []int64
	Text   string // as written, so that printing loses nothing
}
