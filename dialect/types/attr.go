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

// ArrayOf is array<i64: 1, 2>, MLIR's array of numbers of one type.
type ArrayOf struct{ Elements }

// IntArray is the array of ns as elements of an integer type.
func IntArray(e Elem, ns ...int64) *ArrayOf {
	a := &ArrayOf{Elements{Elem: e}}
	for _, n := range ns {
		a.add(uint64(n))
	}
	return a
}

func (a *ArrayOf) String() string {
	out := []byte("array<" + a.Elem.String())
	for i := range a.Len() {
		if i == 0 {
			out = append(out, ':')
		} else {
			out = append(out, ',')
		}
		out = a.appendText(append(out, ' '), i)
	}
	return string(append(out, '>'))
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

func (a TypeAttr) String() string { return a.T.String() }

func (a Place) String() string {
	if s := (&Tensor{At: a.Placement}).encoding(nil); s != "" {
		return s
	}
	return "#dm.at<hbm>"
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
