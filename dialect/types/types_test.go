package types_test

import (
	"math"
	"strings"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

func env(t *testing.T) *types.Env {
	t.Helper()
	var e types.Env
	for name, text := range map[string]string{"!t": "tensor<4xf16>", "!e": "f16", "!loop": "!loop"} {
		x, err := parse.Type(text)
		if err != nil {
			t.Fatal(err)
		}
		e.DefineType(name, x)
	}
	for name, text := range map[string]string{"#place": "#dm.at<smem, order = [1, 0]>", "#n": "3 : i32", "#map": "affine_map<(d0) -> (d0)>"} {
		x, err := parse.Attr(text)
		if err != nil {
			t.Fatal(err)
		}
		e.DefineAttr(name, x)
	}
	return &e
}

func TestFromExpr(t *testing.T) {
	e := env(t)
	for text, want := range map[string]string{
		"f32":                          "f32",
		"tensor<f32>":                  "tensor<f32>",
		"tensor<8x512x1024xf16>":       "tensor<8x512x1024xf16>",
		"!t":                           "tensor<4xf16>",
		"tensor<2x!e>":                 "tensor<2xf16>",
		"!q.u<i\n  2, 0.1:3>":          "!q.u<i 2, 0.1:3>",
		"!q.u<\"a // b\", // c\n\t!e>": "!q.u<\"a // b\", f16>",
		"tensor<2x3xf16, #place>":      "tensor<2x3xf16, #dm.at<smem, order = [1, 0]>>",
		"tensor<2x3xf16, #dm.at<hbm>>": "tensor<2x3xf16>",
		"tensor<2x3xf16, #dm.at<order = [0, 1]>>":                                                   "tensor<2x3xf16>",
		"tensor<?x3x?xf16, #dm.at<dims = [b*n, 1 + n]>>":                                            "tensor<?x3x?xf16, #dm.at<dims = [b*n, n + 1]>>",
		"tensor<?x?xf16, #dm.at<host, dims = [?, n]>>":                                              "tensor<?x?xf16, #dm.at<host, dims = [?, n]>>",
		"tensor<4x2xf16, #dm.at<split = @pod[{ x ,y:(2)4},{?}]>>":                                   "tensor<4x2xf16, #dm.at<split = @pod[{x, y:(2)4}, {?}]>>",
		"tensor<4x?xf16, #dm.at<host, dims = [n], split = @\"a b\"[{}, {x, ?}], partial = add{y}>>": "tensor<4x?xf16, #dm.at<host, dims = [n], split = @\"a b\"[{}, {x, ?}], partial = add{y}>>",
		"tensor<f16, #dm.at<split = @pod[], partial = max { x, y }>>":                               "tensor<f16, #dm.at<split = @pod[], partial = max{x, y}>>",
		"tensor<4xf16, #dm.at<order = [0], split = @pod[{}], partial = {x}>>":                       "tensor<4xf16, #dm.at<split = @pod[{}], partial = add{x}>>",
		"tensor<?xf16>":                   "tensor<?xf16>",
		"tensor<2xf32, #other.enc<#map>>": "tensor<2xf32, #other.enc<affine_map<(d0) -> (d0)>>>",
		"(!t) -> (f32, index)":            "(tensor<4xf16>) -> (f32, index)",
		"tensor<*xf32>":                   "tensor<*xf32>",
		"tensor<2xcomplex<f32>>":          "tensor<2xcomplex<f32>>",
		"memref<4xf32, #map>":             "memref<4xf32, affine_map<(d0) -> (d0)>>",
		"tuple<!t, f8E5M2>":               "tuple<tensor<4xf16>, f8E5M2>",
		"si32":                            "si32",
	} {
		x, err := parse.Type(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		ty, err := types.FromExpr(x, e)
		if err != nil || ty.String() != want {
			t.Errorf("%s is %v, %v; want %s", text, ty, err, want)
		}
	}
	x, err := parse.Type("!loop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := types.FromExpr(x, e); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("an alias of itself gives %v", err)
	}
}

// TestUnnamed holds that a "?" without a name is a size of its own for every
// value, and stands for anything when types are compared.
func TestUnnamed(t *testing.T) {
	x, err := parse.Type("tensor<?x4xf32>")
	if err != nil {
		t.Fatal(err)
	}
	ty, err := types.FromExpr(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := types.Distinct(ty, "%a"), types.Distinct(ty, "%b")
	if types.Equal(a, b) || !types.Equal(a, types.Distinct(ty, "%a")) {
		t.Error("the dimensions of two values are the same symbol")
	}
	if !types.Compatible(a, b) || a.String() != "tensor<?x4xf32>" {
		t.Errorf("%s and %s are not compatible", a, b)
	}
}

// TestAttrs reads attributes and prints them; what is printed means the same.
func TestAttrs(t *testing.T) {
	e := env(t)
	for text, want := range map[string]string{
		"true":                        "true",
		"42":                          "42",
		"42 : i32":                    "42 : i32",
		"255 : i8":                    "-1 : i8",
		"0xFF":                        "255",
		"18446744073709551615 : ui64": "18446744073709551615 : ui64",
		"1.5":                         "1.5",
		"1.0e-5":                      "1.0e-05",
		"0.1 : f16":                   "0.099975586 : f16",
		"0x7F800000 : f32":            "0x7F800000 : f32",
		"0x7FC0 : bf16":               "0x7FC0 : bf16",
		`"a\22b\0A"`:                  `"a\22b\0A"`,
		"@f::@g":                      "@f::@g",
		`@"a b"`:                      `@"a b"`,
		"[1, 2.0, \"x\"]":             `[1, 2.0, "x"]`,
		"{a = 1, b}":                  "{a = 1, b}",
		"tensor<4xf32>":               "tensor<4xf32>",
		"array<i64: 1, 2>":            "array<i64: 1, 2>",
		"array<i1: true, false>":      "array<i1: true, false>",
		"array<f32>":                  "array<f32>",
		"#n":                          "3 : i32",
		"#place":                      "#dm.at<smem, order = [1, 0]>",
		"[#n, #map]":                  "[3 : i32, affine_map<(d0) -> (d0)>]",
		"#dm.at<hbm>":                 "#dm.at<hbm>",
		"unit":                        "unit",
		"dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>": "dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>",
		"dense<1.0> : vector<4xf32>":               "dense<1.0> : vector<4xf32>",
	} {
		x, err := parse.Attr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		a, err := types.AttrFromExpr(x, e)
		if err != nil || a.String() != want {
			t.Errorf("%s is %v, %v; want %s", text, a, err, want)
			continue
		}
		y, err := parse.Attr(a.String())
		if err != nil {
			t.Errorf("%s prints as %s: %v", text, a, err)
			continue
		}
		if b, err := types.AttrFromExpr(y, e); err != nil || !types.EqualAttr(a, b) {
			t.Errorf("%s prints as %s, which is %v, %v", text, a, b, err)
		}
	}
}

func TestDense(t *testing.T) {
	tests := []struct {
		text   string
		floats []float64
		ints   []int64
		splat  bool
	}{
		{text: "dense<[1.0, -2.5]> : tensor<2xf32>", floats: []float64{1, -2.5}},
		{text: "dense<0.1> : tensor<8xf16>", floats: []float64{0.0999755859375}, splat: true},
		{text: `dense<"0x0000803F000000C0"> : tensor<2xf32>`, floats: []float64{1, -2}},
		{text: `dense<"0x003C"> : tensor<4xf16>`, floats: []float64{1}, splat: true},
		{text: `dense<"0x803F40C0"> : tensor<2xbf16>`, floats: []float64{1, -3}},
		{text: `dense<"0x387E"> : tensor<2xf8E4M3FN>`, floats: []float64{1, 448}},
		{text: "dense<0x3C00> : tensor<2xf16>", floats: []float64{1}, splat: true},
		{text: "dense<[-128, 255]> : tensor<2xi8>", ints: []int64{-128, -1}},
		{text: "dense<[true, false]> : tensor<2xi1>", ints: []int64{1, 0}},
		{text: `dense<"0x0501"> : tensor<9xi1>`, ints: []int64{1, 0, 1, 0, 0, 0, 0, 0, 1}},
		{text: "dense<> : tensor<0x3xi32>"},
		{text: "dense<7> : tensor<i64>", ints: []int64{7}, splat: true},
	}
	for _, test := range tests {
		x, err := parse.Attr(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		a, err := types.AttrFromExpr(x, nil)
		d, ok := a.(*types.Dense)
		if err != nil || !ok {
			t.Errorf("%s is %v, %v", test.text, a, err)
			continue
		}
		same := d.Len() == max(len(test.floats), len(test.ints)) && d.Splat == test.splat && int64(len(d.Bytes())) == int64(d.Len())*d.Elem.Bytes()
		for i := range test.floats {
			same = same && d.Float(i) == test.floats[i]
		}
		for i := range test.ints {
			same = same && d.Int(i) == test.ints[i]
		}
		if !same || d.String() != test.text {
			t.Errorf("%s is %s: %x, splat %v", test.text, d, d.Bytes(), d.Splat)
		}
		if d.Len() == 0 {
			continue
		}
		// Its bytes are the same literal, whose text reads back as it.
		all, _ := d.All()
		made := types.DenseOf(d.Type, all)
		y, err := parse.Attr(made.String())
		if err != nil {
			t.Errorf("%s is written as %s: %v", test.text, made, err)
			continue
		}
		if again, err := types.AttrFromExpr(y, nil); err != nil || !types.EqualAttr(made, d) || !types.EqualAttr(again, d) {
			t.Errorf("%s is written as %s, which is %v, %v", test.text, made, again, err)
		}
	}
}

// A literal made of many bytes keeps them, is written as them, and is a splat
// where all elements are the same.
func TestDenseOf(t *testing.T) {
	typ := &types.Tensor{Elem: types.I16, Shape: []dim.Dim{dim.Const(2), dim.Const(1024)}}
	data := make([]byte, 4096)
	d := types.DenseOf(typ, data)
	if all, _ := d.All(); d.String() != "dense<0> : tensor<2x1024xi16>" || d.Len() != 1 || len(all) != len(data) {
		t.Errorf("zeros are %s", d)
	}
	data[2] = 7
	d = types.DenseOf(typ, data)
	if &d.Bytes()[0] != &data[0] || d.Int(1) != 7 {
		t.Error("the bytes were copied")
	}
	x, err := parse.Attr(d.String())
	if err != nil || !strings.HasPrefix(d.Text(), `"0x00000700`) {
		t.Fatalf("written as %.40s…, %v", d, err)
	}
	if again, err := types.AttrFromExpr(x, nil); err != nil || !types.EqualAttr(again, d) {
		t.Errorf("reads back as %.40s…, %v", again, err)
	}
}

// TestEqualAttr holds that spelling does not count.
func TestEqualAttr(t *testing.T) {
	for _, pair := range [][2]string{
		{"1", "1 : i64"},
		{"1.0", "1.0e+0 : f64"},
		{"dense<[2.0, 2.0]> : tensor<2xf32>", "dense<2.0> : tensor<2xf32>"},
		{`dense<"0x0000803F"> : tensor<2xf32>`, "dense<1.0> : tensor<2xf32>"},
		{"{a = 1, b = 2}", "{b = 2 : i64, a = 1}"},
		{"dense<0x7FC00000> : tensor<2xf32>", "dense<[0x7FC00000, 0x7FC00000]> : tensor<2xf32>"},
	} {
		if a, b := attr(t, pair[0]), attr(t, pair[1]); !types.EqualAttr(a, b) {
			t.Errorf("%s is not %s", a, b)
		}
	}
	for _, pair := range [][2]string{
		{"1", "1 : i32"},
		{"1", "1.0"},
		{"0.0", "-0.0"},
		{"[1]", "[1, 1]"},
		{"{a}", "{b}"},
		{"dense<[2.0, 2.5]> : tensor<2xf32>", "dense<2.0> : tensor<2xf32>"},
		{"dense<2.0> : tensor<2xf32>", "dense<2.0> : tensor<3xf32>"},
		{"@f", `"f"`},
	} {
		if a, b := attr(t, pair[0]), attr(t, pair[1]); types.EqualAttr(a, b) {
			t.Errorf("%s is %s", a, b)
		}
	}
	if !types.EqualAttr(types.Keyword("lt"), types.Str("lt")) {
		t.Error("a keyword is not the string that generic form writes for it")
	}
}

func attr(t *testing.T, text string) types.Attr {
	t.Helper()
	x, err := parse.Attr(text)
	if err != nil {
		t.Fatal(err)
	}
	a, err := types.AttrFromExpr(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestBits walks every value of the narrow formats: decoding and encoding are
// inverse, and rounding leaves representable values alone.
func TestBits(t *testing.T) {
	for _, e := range []types.Elem{types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2} {
		for b := range uint64(1) << (8 * e.Bytes()) {
			v := types.FromBits(b, e)
			if math.IsNaN(v) {
				if !math.IsNaN(types.FromBits(types.ToBits(v, e), e)) {
					t.Fatalf("%s: NaN does not stay NaN", e)
				}
				continue
			}
			if got := types.ToBits(v, e); got != b {
				t.Fatalf("%s: %#x is %v, which is encoded as %#x", e, b, v, got)
			}
			if r := types.Round(v, e); r != v {
				t.Fatalf("%s: %v rounds to %v", e, v, r)
			}
		}
	}
}

func TestRound(t *testing.T) {
	for _, test := range []struct {
		e       types.Elem
		v, want float64
	}{
		{types.F16, 2049, 2048}, // halfway, to even
		{types.F16, 2051, 2052},
		{types.F16, 65519, 65504},
		{types.F16, 65520, math.Inf(1)},
		{types.F16, 5e-8, math.Ldexp(1, -24)}, // the least subnormal
		{types.F16, 2e-8, 0},
		{types.BF16, 257, 256},
		{types.F8E4M3FN, 460, 448},
		{types.F8E5M2, -1e9, math.Inf(-1)},
		{types.F32, 1e39, math.Inf(1)},
		{types.F32, 0.1, float64(float32(0.1))},
		{types.F64, 0.1, 0.1},
	} {
		if got := types.Round(test.v, test.e); got != test.want {
			t.Errorf("%v rounds to %v in %s; want %v", test.v, got, test.e, test.want)
		}
	}
	if got := types.Round(1000, types.F8E4M3FN); !math.IsNaN(got) {
		t.Errorf("f8E4M3FN has no infinity, but 1000 rounds to %v", got)
	}
}

func TestSizes(t *testing.T) {
	x, err := parse.Type("tensor<?x4xbf16, #dm.at<dims = [n]>>")
	if err != nil {
		t.Fatal(err)
	}
	ty, err := types.FromExpr(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := ty.(*types.Tensor).Bytes(); b.String() != "8*n" {
		t.Errorf("%s takes %s bytes; want 8*n", ty, b)
	}
}

// Literals in files are equal if they are one array of one file; what a file has is not
// known.
func TestFilesEqual(t *testing.T) {
	typ := &types.Tensor{Elem: types.F32, Shape: []dim.Dim{dim.Const(2)}}
	in := func(path, name string) *types.Dense { return types.InFile(typ, &types.File{Path: path, Name: name}) }
	for _, c := range []struct {
		a, b *types.Dense
		want bool
	}{
		{in("w.npz", "a"), in("w.npz", "a"), true},
		{in("w.npz", "a"), in("w.npz", "b"), false},
		{in("w.npz", "a"), in("v.npz", "a"), false},
		{in("w.npz", "a"), types.SplatOf(typ, 1), false},
		{in("w.npz", "a"), types.DenseOf(typ, []byte{1, 2, 3, 4, 5, 6, 7, 8}), false},
	} {
		if types.EqualAttr(c.a, c.b) != c.want || types.EqualAttr(c.b, c.a) != c.want || (c.a.Key() == c.b.Key()) != c.want {
			t.Errorf("%s and %s: equal %t", c.a, c.b, !c.want)
		}
	}
}

// FuzzSharding holds that no placement makes the parser panic, and that one that is read is the
// same after it was printed.
func FuzzSharding(f *testing.F) {
	for _, text := range []string{
		"split = @pod[{data}, {model:(2)4, ?}], partial = max{x}", "split=@\"a b\"[{?},{ }]", "split = @pod[{a:(1)2}, {a:(2)2}], partial = {b}",
		"partial = {x}, split = @m[]", "hbm, order = [1, 0], split = @m[{}, {}]", "split = @m[{x}, {x}]", "split = @m[{x:(9223372036854775807)2}, {}]", "split = @[{}]]", "split = @m::@n[{}, {}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := parse.Type("tensor<4x8xf32, #dm.at<" + text + ">>")
		if err != nil {
			return
		}
		ty, err := types.FromExpr(x, nil)
		if err != nil {
			return
		}
		if x, err = parse.Type(ty.String()); err != nil {
			t.Fatalf("%s: %v", ty, err)
		}
		back, err := types.FromExpr(x, nil)
		if err != nil || !types.Equal(ty, back) || back.String() != ty.String() {
			t.Errorf("%q is %s, read again %v: %v", text, ty, back, err)
		}
	})
}
