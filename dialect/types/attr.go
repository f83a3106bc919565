package types

import (
	"math"
	"strconv"
	"strings"

	"dmir/syntax/parse"
)

// Attr is an attribute value: Bool, Int, Float, Str, Keyword, Symbol, Array,
// Dict, *Dense, *ArrayOf, TypeAttr, Place, Unit or Raw. String is MLIR text.
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
	Symbol   string // as MLIR spells it without the first "@"; see ParseSymbol
	Array    []Attr
	Dict     []Named // in textual order
	TypeAttr struct{ T Type }
	Place    struct{ Placement } // #dm.at<…> as the value of an attribute
	Unit     struct{}
	Raw      string // anything else, verbatim: affine maps, dialect attributes, locations
)

// Named is one entry of a dictionary or of an op's attributes.
type Named struct {
	Name  string
	Value Attr
}

// Dense is dense<…> : tensor type. A splat has one value and any shape.
// Floats hold the values of floating-point tensors, Ints those of integers
// (0 and 1 for i1; the bits of ui64 values beyond the signed range).
type Dense struct {
	Type   *Tensor // nil until the type is known from the op's result
	Splat  bool
	Floats []float64
	Ints   []int64
	Text   string // what stands in <…>, so that printing loses nothing
}

// ArrayOf is array<i64: 1, 2>, MLIR's array of numbers of one type.
type ArrayOf struct {
	Elem   Elem
	Ints   []int64   // of an integer type; 0 and 1 for i1
	Floats []float64 // of a floating-point type
}

func (a *ArrayOf) String() string {
	s := make([]string, 0, len(a.Ints)+len(a.Floats))
	for _, n := range a.Ints {
		if a.Elem == I1 {
			s = append(s, strconv.FormatBool(n != 0))
			continue
		}
		s = append(s, strconv.FormatInt(n, 10))
	}
	for _, v := range a.Floats {
		s = append(s, FloatText(v, a.Elem))
	}
	if len(s) == 0 {
		return "array<" + a.Elem.String() + ">"
	}
	return "array<" + a.Elem.String() + ": " + strings.Join(s, ", ") + ">"
}

func (a Bool) String() string { return strconv.FormatBool(bool(a)) }

func (a Int) String() string { return strconv.FormatInt(a.V, 10) + elemSuffix(a.Elem) }

func (a Float) String() string {
	if a.Elem == InvalidElem && (math.IsInf(a.V, 0) || math.IsNaN(a.V)) {
		a.Elem = F64 // its bits are only readable with the type behind them
	}
	return FloatText(a.V, a.Elem) + elemSuffix(a.Elem)
}

func (a Str) String() string { return parse.Quote(string(a)) }

func (a Keyword) String() string { return string(a) }

func (a Symbol) String() string { return "@" + string(a) }

func (a Array) String() string {
	s := make([]string, len(a))
	for i, e := range a {
		s[i] = e.String()
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func (a Dict) String() string {
	s := make([]string, len(a))
	for i, e := range a {
		s[i] = e.String()
	}
	return "{" + strings.Join(s, ", ") + "}"
}

// String is "name = value", or the name alone for a unit.
func (n Named) String() string {
	name := n.Name
	if !isBareID(name) {
		name = parse.Quote(name)
	}
	if _, unit := n.Value.(Unit); unit {
		return name
	}
	return name + " = " + n.Value.String()
}

func (a *Dense) String() string {
	s := "dense<" + a.Text + ">"
	if a.Type != nil {
		s += " : " + a.Type.String()
	}
	return s
}

func (a TypeAttr) String() string { return a.T.String() }

func (a Place) String() string {
	if s := (&Tensor{At: a.Placement}).encoding(nil); s != "" {
		return s
	}
	return "#dm.at<hbm>"
}

// Spread is the integers of a dense literal one by one, a splat repeated for
// every element, which are at most a few; nil for floating-point literals.
func (a *Dense) Spread() []int64 {
	if a.Type == nil || !a.Type.Elem.IsInt() {
		return nil
	}
	n, ok := a.Type.Elements().Int()
	if !a.Splat || !ok || n > 1<<16 {
		return append([]int64{}, a.Ints...)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = a.Ints[0]
	}
	return out
}

func (Unit) String() string { return "unit" }

func (a Raw) String() string { return string(a) }

func elemSuffix(e Elem) string {
	if e == InvalidElem {
		return ""
	}
	return " : " + e.String()
}

// isBareID reports whether s can name an attribute or a symbol without quotes.
func isBareID(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '$' && c != '.') {
			return false
		}
	}
	return s != ""
}
