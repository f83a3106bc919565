package ast

import "strings"

// The grammars of types and attributes have trees of their own, because their
// texts repeat endlessly: each distinct text is parsed once, by parse.Type and
// parse.Attr, and the tree is shared and must not be changed. Positions are
// relative to the parsed text.

// TypeKind is the kind of a TypeExpr.
type TypeKind uint8

// The kinds of type expressions.
const (
	TScalar   TypeKind = iota // f16, i32, ui8, index, none, bf16, f8E4M3FN … (Name)
	TTensor                   // tensor<8x?xf16, enc>; Unranked for tensor<*xf16>
	TMemRef                   // memref<…>: Shape, Elem; the rest stays in Text
	TVector                   // vector<4x[8]xf32>: Shape, Elem
	TTuple                    // tuple<…>: In
	TComplex                  // complex<f32>: Elem
	TFunction                 // (In) -> Out
	TAlias                    // !name
	TDialect                  // !dm.token, !llvm.ptr<…>: Name is "dm.token", Body the text in <…>
)

// Dynamic is the dimension "?" in TypeExpr.Shape.
const Dynamic int64 = -1

// TypeExpr is a parsed type.
type TypeExpr struct {
	Kind     TypeKind
	Text     string
	Name     string
	Shape    []int64 // dimensions beyond int64 are a parse error with its own code
	Unranked bool
	Elem     *TypeExpr
	Encoding *AttrExpr // tensor encoding, nil if absent
	In, Out  []*TypeExpr
	Body     string
}

// AttrKind is the kind of an AttrExpr.
type AttrKind uint8

// The kinds of attribute expressions.
const (
	AUnit          AttrKind = iota // unit, or a dictionary entry without value
	ABool                          // true, false
	AInt                           // 42, -1, 0xFF; Type may be nil
	AFloat                         // 1.0, -2.5e3; hexadecimal bits keep Text; Type may be nil
	AString                        // "text": Str is unescaped; Type may be nil
	ASymbol                        // @f::@g (Str as written without the first "@")
	AArray                         // [a, b]: Elems
	ADict                          // {k = v}: Entries
	AType                          // a type: Type
	ADense                         // dense<…> : type; Elems is empty (dense<>) or the literal alone: nested AArrays, a scalar (splat), or an AString of hexadecimal digits; a complex number is an AArray whose Text begins with "("; Type may be nil; Body the text in <…>
	ADenseResource                 // dense_resource<key> : type (Str); Type may be nil
	AArrayOf                       // array<i64: 1, 2>: Type is the element type, Elems
	ASparse                        // sparse<…, …> : type
	AAffine                        // affine_map<…>, affine_set<…> (Text)
	ALoc                           // loc(…)
	AAlias                         // #name (Name)
	ADialect                       // #dm.at<…>: Name is "dm.at", Body the text in <…>
	AKeyword                       // a bare word such as "lt" or "add" in a dm clause (Str)
	AStrided                       // strided<…>, distinct[…]<…> and other builtin forms kept as Text
)

// AttrExpr is a parsed attribute.
type AttrExpr struct {
	Kind    AttrKind
	Text    string
	Name    string
	Str     string
	Int     int64 // AInt that fits; otherwise Text has it and Big is set
	Big     bool
	Float   float64
	Bool    bool
	Elems   []*AttrExpr
	Entries []Entry
	Type    *TypeExpr
	Body    string
}

// Entry is key = value of a dictionary, in textual order.
type Entry struct {
	Key   string // unquoted
	Span  Rel    // of the key, relative to the dictionary's text
	Value *AttrExpr
	VSpan Rel // of the value; empty for a unit entry
}

// Get is the value of key in a dictionary, nil where absent.
func (a *AttrExpr) Get(key string) *AttrExpr {
	if a == nil {
		return nil
	}
	for _, e := range a.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// NotFinite reports whether text is a word for an infinity or NaN, such as "-inf",
// for which MLIR has no literal but the bits.
func NotFinite(text string) bool {
	if text != "" && text[0] == '-' {
		text = text[1:]
	}
	if len(text) < 3 || text[0]|0x20 != 'i' && text[0]|0x20 != 'n' {
		return false
	}
	switch strings.ToLower(text) {
	case "inf", "infinity", "nan":
		return true
	}
	return false
}
