package parse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dmir/syntax/ast"
	"dmir/syntax/diag"

	"github.com/google/go-cmp/cmp"
)

// show writes a type so that every part of its tree can be seen.
func showType(t *ast.TypeExpr) string {
	if t == nil {
		return "-"
	}
	list := func(ts []*ast.TypeExpr) string {
		s := make([]string, len(ts))
		for i, t := range ts {
			s[i] = showType(t)
		}
		return strings.Join(s, " ")
	}
	switch t.Kind {
	case ast.TScalar, ast.TAlias:
		return t.Name
	case ast.TDialect:
		return "!" + t.Name + "[" + t.Body + "]"
	case ast.TTuple:
		return "tuple(" + list(t.In) + ")"
	case ast.TFunction:
		return "fn(" + list(t.In) + ")(" + list(t.Out) + ")"
	case ast.TComplex:
		return "complex(" + showType(t.Elem) + ")"
	}
	name := map[ast.TypeKind]string{ast.TTensor: "tensor", ast.TMemRef: "memref", ast.TVector: "vector"}[t.Kind]
	shape := fmt.Sprint(t.Shape)
	if t.Unranked {
		shape = "[*]"
	}
	s := name + shape + "(" + showType(t.Elem) + ")"
	if t.Encoding != nil {
		s += "@" + showAttr(t.Encoding)
	}
	if t.Body != "" {
		s += "+" + t.Body
	}
	return s
}

func showAttr(a *ast.AttrExpr) string {
	typ := ""
	if a.Type != nil {
		typ = ":" + showType(a.Type)
	}
	elems := make([]string, len(a.Elems))
	for i, e := range a.Elems {
		elems[i] = showAttr(e)
	}
	list := strings.Join(elems, " ")
	switch a.Kind {
	case ast.AUnit:
		return "unit"
	case ast.ABool:
		return fmt.Sprint(a.Bool)
	case ast.AInt:
		if a.Big {
			return "big" + typ
		}
		return fmt.Sprint(a.Int) + typ
	case ast.AFloat:
		return fmt.Sprintf("%g", a.Float) + typ
	case ast.AString:
		return fmt.Sprintf("%q", a.Str) + typ
	case ast.ASymbol:
		return "@" + a.Str
	case ast.AArray:
		return "[" + list + "]"
	case ast.ADict:
		s := make([]string, len(a.Entries))
		for i, e := range a.Entries {
			s[i] = fmt.Sprintf("%s@%d=%s@%d", e.Key, e.Span.Start, showAttr(e.Value), e.VSpan.Start)
		}
		return "{" + strings.Join(s, " ") + "}"
	case ast.AType:
		return "type" + typ
	case ast.ADense:
		return "dense(" + list + ")" + typ
	case ast.ADenseResource:
		return "resource(" + a.Str + ")" + typ
	case ast.AArrayOf:
		return "array(" + list + ")" + typ
	case ast.ASparse:
		return "sparse(" + a.Body + ")" + typ
	case ast.AAffine:
		return "affine(" + a.Body + ")"
	case ast.ALoc:
		return "loc"
	case ast.AAlias:
		return a.Name + typ
	case ast.ADialect:
		return "#" + a.Name + "[" + a.Body + "]" + typ
	case ast.AKeyword:
		return "word(" + a.Str + ")"
	}
	return "other(" + a.Text + ")" + typ
}

// exprCase is a text and its tree, or the code and place of its error.
type exprCase struct{ text, want string }

func (c exprCase) check(t *testing.T, got string, err error) {
	t.Helper()
	var e *Error
	if errors.As(err, &e) {
		errorInside(t, err, c.text)
		got = fmt.Sprintf("%s `%s` %s", e.Code, c.text[e.Span.Start:e.Span.End], e.Msg)
	}
	if got != c.want {
		t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
	}
}

var typeCases = []exprCase{
	{"f32", "f32"},
	{"index", "index"},
	{"ui8", "ui8"},
	{"f8E4M3FN", "f8E4M3FN"},
	{"tensor<8x?xf16>", "tensor[8 -1](f16)"},
	{"tensor<f32>", "tensor[](f32)"},
	{"tensor<*xf32>", "tensor[*](f32)"},
	{"tensor<0x0xf32>", "tensor[0 0](f32)"},
	{"tensor<4 x 8 x f32 >", "tensor[4 8](f32)"},
	{"tensor<8x?xf16, #dm.at<hbm, order = [1, 0]>>", "tensor[8 -1](f16)@#dm.at[hbm, order = [1, 0]]"},
	{"tensor<8xf16, #layout>", "tensor[8](f16)@#layout"},
	{"tensor<1x!x.y<3x4>, affine_map<(d0) -> (d0 - 1)>>", "tensor[1](!x.y[3x4])@affine((d0) -> (d0 - 1))"},
	{"tensor<2xtensor<3xf32>>", "tensor[2](tensor[3](f32))"},
	{"vector<4x[8]xi1>", "vector[4 8](i1)"},
	{"memref<4xf32, strided<[1], offset: 2>, 1>", "memref[4](f32)+strided<[1], offset: 2>, 1"},
	{"memref<*xf32>", "memref[*](f32)"},
	{"complex<f64>", "complex(f64)"},
	{"tuple<>", "tuple()"},
	{"tuple<f32, tuple<i1>>", "tuple(f32 tuple(i1))"},
	{"!t", "!t"},
	{"!llvm.ptr", "!llvm.ptr[]"},
	{"!x.y<a -> b, \">\">", "!x.y[a -> b, \">\"]"},
	{"() -> ()", "fn()()"},
	{"(f32, i1) -> (f32)", "fn(f32 i1)(f32)"},
	{"(f32) -> ((f32) -> i1)", "fn(f32)(fn(f32)(i1))"},
	{"", "DM040 `` expected a type"},
	{"float", "DM040 `float` `float` is not a type"},
	{"tensor<4x", "DM010 `<` this `<` is never closed"},
	{"tensor<4xf32> x", "DM040 `x` unexpected `x` in a type"},
	{"tensor<4x8>", "DM040 `8` unexpected `8` in a type"},
	{"tensor<99999999999999999999xf32>", "DM041 `tensor<99999999999999999999xf32>` the dimension 99999999999999999999 does not fit in 63 bits"},
	{"tensor<4xf32, #dm.at<[1)>>", "DM042 `[` this `[` is never closed"},
	{"!x.y<(>", "DM042 `<` this `<` is never closed"},
	{"(f32) -> (f32) -> f32", "DM040 `->` unexpected `->` in a type"},
}

func TestType(t *testing.T) {
	for _, c := range typeCases {
		e, err := Type(c.text)
		c.check(t, showType(e), err)
	}
	a, _ := Type("tensor<4x8xf32>")
	b, _ := Type("tensor<4x8xf32>")
	if a != b {
		t.Error("equal texts have different trees")
	}
}

// TestTypeRemedies holds what a person is told whose word is no type, but close to one.
func TestTypeRemedies(t *testing.T) {
	if _, err := Signature("tensor<4xf32>, f32 -> f32"); err == nil || err.(*Error).Help != "write `(tensor<4xf32>, f32) -> f32`" {
		t.Errorf("operands without parentheses: %+v", err)
	}
	general := diag.Find("DM040").Help
	for text, want := range map[string]string{
		"float32":            "did you mean f32?",
		"tensor<4xbfloat16>": "did you mean bf16?",
		"tensor<mxkxf32>":    "a size with a name is `?`, and the names follow: `?x?xf32, #dm.at<dims = [m, k]>`",
		"tensor<mx4xkxf32>":  "a size with a name is `?`, and the names follow: `?x4x?xf32, #dm.at<dims = [m, k]>`",
		"tensor<8xmxf16>":    "a size with a name is `?`, and the names follow: `?xf16, #dm.at<dims = [m]>`",
		"tensor<maxxf32>":    general,
		"tensor<mxtext>":     general,
		"tensor<x>":          general,
	} {
		_, err := Type(text)
		if e, ok := err.(*Error); !ok || e.Help != want {
			t.Errorf("%s: %+v, want the remedy %s", text, err, want)
		}
	}
}

var attrCases = []exprCase{
	{"1", "1"},
	{"-1 : i32", "-1:i32"},
	{"0xFF", "255"},
	{"9223372036854775808", "big"},
	{"-9223372036854775808", "-9223372036854775808"},
	{"1.5e-3 : f16", "0.0015:f16"},
	{"1e400", "+Inf"},
	{"2.", "2"},
	{`"a\22b\n\\\t\"" `, `"a\"b\n\\\t\""`},
	{`"x" : !dm.s`, `"x":!dm.s[]`},
	{"@f::@g", "@f::@g"},
	{`@"odd name"`, `@"odd name"`},
	{"[]", "[]"},
	{"[1, 2 : i8, [true], @f]", "[1 2:i8 [true] @f]"},
	{"[[1, -2], [], [3.5]]", "[[1 -2] [] [3.5]]"},
	{"[1, 2.5e-3, 0xF, true]", "[1 0.0025 15 true]"},
	{"[e, 1]", "[word(e) 1]"},
	{"[1, ]", "DM042 `]` expected a number, found `]`"},
	{"4x8", "DM042 `4x8` `4x8` is not a number"},
	{"[1e, 2]", "DM042 `1e` expected a number, found `1e`"},
	{"[1 2]", "DM042 `2` expected `,` between elements, found `2`"},
	{"{}", "{}"},
	{`{a = 1, b, "c d" = f32, f32 = {x}}`, "{a@1=1@5 b@8=unit@0 c d@11=type:f32@19 f32@24={x@1=unit@0}@30}"},
	{"{\n  // why\n  dm.max = \"1 GB\" // how much\n}", "{dm.max@13=\"1 GB\"@22}"},
	{"dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>", "dense([[1 2] [3 -4]]):tensor[2 2](i32)"},
	{"dense<[1]> : tensor<1xi32>", "dense([1]):tensor[1](i32)"},
	{"dense<1.0> : tensor<4xf32>", "dense(1):tensor[4](f32)"},
	{"dense<1.0>", "dense(1)"},
	{`dense<"0xAB"> : tensor<1xi8>`, `dense("0xAB"):tensor[1](i8)`},
	{"dense<> : tensor<0xi8>", "dense():tensor[0](i8)"},
	{"dense<(1.0, 2.0)> : tensor<complex<f32>>", "dense([1 2]):tensor[](complex(f32))"},
	{"dense<true> : tensor<i1>", "dense(true):tensor[](i1)"},
	{"dense_resource<w> : tensor<3xf32>", "resource(w):tensor[3](f32)"},
	{"array<i64: 1, -2>", "array(1 -2):i64"},
	{"array<i1>", "array():i1"},
	{"sparse<[[0]], [1.0]> : tensor<1xf32>", "sparse([[0]], [1.0]):tensor[1](f32)"},
	{"affine_map<(d0)[s0] -> (d0 + s0)>", "affine((d0)[s0] -> (d0 + s0))"},
	{"affine_set<(d0) : (d0 >= 0, d0 - 1 == 0)>", "affine((d0) : (d0 >= 0, d0 - 1 == 0))"},
	{"loc(fused[\"a\", \"b\"])", "loc"},
	{"#map", "#map"},
	{"#a-b", "#a-b"},
	{"#dm.at<hbm, order = [1, 0]>", "#dm.at[hbm, order = [1, 0]]"},
	{"#hal.target<\"a -> b\"> : !hal.device", "#hal.target[\"a -> b\"]:!hal.device[]"},
	{"#foo<bar>", "#foo[bar]"},
	{"strided<[1, 2], offset: ?>", "other(strided<[1, 2], offset: ?>)"},
	{"distinct[0]<1 : i1>", "other(distinct[0]<1 : i1>)"},
	{"add", "word(add)"},
	{"unit", "unit"},
	{"tensor<4xf32>", "type:tensor[4](f32)"},
	{"(i1) -> i1", "type:fn(i1)(i1)"},
	{"!t", "type:!t"},
	{"", "DM042 `` expected an attribute"},
	{"1 2", "DM042 `2` unexpected `2` in an attribute"},
	{"[1, 2", "DM010 `[` this `[` is never closed"},
	{"{a = 1, a = 2}", "DM045 `a` `a` appears twice in this dictionary"},
	{"dense<[1, x]> : tensor<2xi1>", "DM042 `x` expected a number, found `x`"},
	{"dense<[1 2]> : tensor<2xi1>", "DM042 `2` expected `,` between elements, found `2`"},
	{"dense<[1, 2> : tensor<2xi1>", "DM042 `<` this `<` is never closed"},
	{"array<x: 1>", "DM042 `x` expected an element type, as in `array<i64: 1, 2>`"},
	{"{a = 1 b}", "DM044 `b` unexpected `b` in a dictionary"},
	{"@f : i32", "DM042 `:` unexpected `:` in an attribute"},
}

func TestAttr(t *testing.T) {
	for _, c := range attrCases {
		a, err := Attr(c.text)
		got := ""
		if err == nil {
			got = showAttr(a)
		}
		c.check(t, got, err)
	}
}

func TestSignature(t *testing.T) {
	cases := []exprCase{
		{"(f32, i1) -> f32", "in 1:f32 6:i1 out 13:f32"},
		{"(f32) -> (f32, !t)", "in 1:f32 out 10:f32 15:!t"},
		{"() -> ()", "in out"},
		{"f32", "in 0:f32 out 0:f32 single"},
		{"f32, tensor<4xf32>", "in 0:f32 5:tensor[4](f32) out list"},
		{"-> f32", "in out 3:f32"},
		{"-> (f32, i1)", "in out 4:f32 9:i1"},
		{"(f32, i1)", "DM043 `)` the op's type is incomplete"},
		{"f32 f32", "DM043 `f32` unexpected `f32` in the op's type"},
		{"(f32) -> what", "DM040 `what` `what` is not a type"},
		{"", "DM043 `` expected the op's type"},
	}
	for _, c := range cases {
		s, err := Signature(c.text)
		got := ""
		if err == nil {
			got = "in"
			for i, e := range s.In {
				got += fmt.Sprintf(" %d:%s", s.InSpans[i].Start, showType(e))
			}
			got += " out"
			for i, e := range s.Out {
				got += fmt.Sprintf(" %d:%s", s.OutSpans[i].Start, showType(e))
			}
			if s.Single {
				got += " single"
			}
			if s.List {
				got += " list"
			}
		}
		c.check(t, got, err)
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\t\x00\x7f", "ä → ∞", "\xff\xfe", `\0A`} {
		if q := Quote(s); Unquote(q) != s {
			t.Errorf("%q is quoted as %s and reads back as %q", s, q, Unquote(q))
		}
	}
}

// TestInternedIsBounded asks for more distinct types than are kept.
func TestInternedIsBounded(t *testing.T) {
	var m interned[int]
	for i := range 3 * maxInterned {
		text := fmt.Sprint(i % (maxInterned + maxInterned/2))
		if _, err := m.get(text, func(string) (int, *Error) { return i, nil }); err != nil {
			t.Fatal(err)
		}
		if n := len(m.young) + len(m.old); n > 2*maxInterned {
			t.Fatalf("%d texts are kept", n)
		}
	}
}

// What is read without the grammar is what the grammar reads.
func TestPlainAttrEqualsGrammar(t *testing.T) {
	texts := []string{`"a"`, `"a\\22b"`, `{}`, `{a}`, `{a, b = 1 : i64}`, `{a = "x", b = [1, 2], c = {d = "e"}}`, `{a = 1, a = 2}`, `{a = }`, `{"a" = 1}`, `{a = #x<b, {c}>, d}`, `{a = b c}`, `{a = (i32) -> i32, b}`, `{a = 1} x`}
	for _, c := range attrCases {
		texts = append(texts, c.text, "{x = "+c.text+", y = \"z\"}")
	}
	plain := 0
	for _, text := range texts {
		plain += comparePlain(t, text)
	}
	inputs, err := readCorpus()
	if err != nil {
		t.Log("the conformance inputs are not here")
	}
	for _, src := range inputs {
		ast.Walk(File(src).Items, func(o *ast.Op) bool {
			if !o.Attrs.Empty() {
				plain += comparePlain(t, o.Text(src, o.Attrs))
			}
			return !t.Failed()
		})
	}
	if t.Logf("%d texts were read without the grammar", plain); plain < 10 {
		t.Error("hardly any text was")
	}
}

func comparePlain(t *testing.T, text string) int {
	t.Helper()
	got, ok := plainAttr(text)
	if !ok {
		return 0
	}
	want, err := grammarAttr(text)
	if err != nil {
		t.Errorf("%s: the grammar does not allow it: %v", text, err)
	} else if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-grammar +plain):\n%s", text, d)
	}
	return 1
}
