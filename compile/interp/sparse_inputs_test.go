package interp_test

import (
	"slices"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/lower"
	"dmir/dialect/types"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// A symbol that is 0 only when a program runs leaves nothing of an operand: of what it is merged with, the other one.
func TestNothingStored(t *testing.T) {
	const text = `
!a = tensor<4x5xf32, #dm.csr<nnz = a>>
!b = tensor<4x5xf32, #dm.csr<nnz = b>>
!g = tensor<4x5xf32, #dm.csr<nnz = 9>>
!o = tensor<4x5xi8, #dm.csr<nnz = 9>>
!d = tensor<4x5xf32>
func.func @f(%a: !a, %b: !b) -> (!d, !d) {
  %x, %y, %of = dm.merge union %a, %b : (!a, !b) -> (!g, !g, !o)
  %z = dm.add %x, %y : !g
  %got = dm.convert_format %z : (!g) -> !d
  %c = dm.convert_format %a : (!a) -> !d
  %e = dm.convert_format %b : (!b) -> !d
  %want = dm.add %c, %e : !d
  return %got, %want : !d, !d
}`
	m := lower.File(parse.File(source.New("f.dmir", text)))[0]
	for _, bind := range []map[string]int64{{"a": 7, "b": 0}, {"a": 0, "b": 7}, {"a": 0, "b": 0}} {
		args, err := interp.Inputs(t.Context(), m.Funcs[0], bind, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := interp.Run(t.Context(), m, m.Funcs[0], args, interp.Options{Bind: bind})
		if err != nil {
			t.Fatalf("%v: %v", bind, err)
		}
		if out := res.Outputs; tensor.MaxDiff(out[0], out[1]) > 0 {
			t.Errorf("%v: got %v, want %v", bind, out[0], out[1])
		}
	}
}

// A format without a number of elements is told apart from a shape without sizes.
func TestNoNumberOfElements(t *testing.T) {
	for typ, want := range map[string]string{"3x5xf32, #dm.csr": "how many elements tensor<3x5xf32, #dm.csr> stores", "?x5xf32": "a size of tensor<?x5xf32>"} {
		fn := lower.File(parse.File(source.New("f.dmir", "func.func @f(%a: tensor<"+typ+">) {\n  return\n}")))[0].Funcs[0]
		_, err := interp.Inputs(t.Context(), fn, nil, 7, nil)
		if e, ok := err.(*interp.Error); !ok || e.Code != "DM701" || !strings.HasPrefix(e.Msg, want) || e.Help == "" {
			t.Errorf("%s: got %v, want DM701: %s", typ, err, want)
		}
	}
}

// Sparse arguments are drawn, given in part or in whole, and checked; nothing else changes the values.
func TestSparseInputs(t *testing.T) {
	const head = "func.func @f(%x: tensor<2xf32>, %a: tensor<3x?xf32, #dm.csr<nnz = e, dims = [n]>> ATTRS, %p: tuple<tensor<2xf32>, tensor<4x4xf32, #dm.coo<nnz = 3>>>) {\n  return\n}"
	ints := func(v ...int64) *tensor.Tensor { return tensor.FromInts(types.I32, []int{len(v)}, v) }
	floats := func(v ...float64) *tensor.Tensor { return tensor.FromFloats(types.F32, []int{len(v)}, v) }
	type given = map[string]*tensor.Tensor
	for _, k := range []struct {
		name, attrs string
		bind        map[string]int64
		given       given
		want        string // of an error; "": none
		values      string // of %a
	}{
		{name: "drawn", bind: map[string]int64{"n": 5, "e": 4}},
		{name: "one number", attrs: "{dm.init = 2.0}", bind: map[string]int64{"n": 5, "e": 4}, values: "[2 2 2 2]"},
		{name: "all of it", bind: map[string]int64{"n": 5, "e": 15}},
		{name: "no elements", bind: map[string]int64{"n": 5, "e": 0}, values: "[]"},
		{name: "values alone", bind: map[string]int64{"n": 5}, given: given{"a.values": floats(1, 2, 3)}, values: "[1 2 3]"},
		{name: "a pattern alone, with padding", attrs: "{dm.init = 2.0}", bind: map[string]int64{"n": 5}, given: given{"a.positions": ints(0, 1, 1, 2), "%a.coordinates": ints(4, 0, 0)}, values: "[2 2 0]"},
		{name: "everything", bind: map[string]int64{"n": 5}, given: given{"a.positions": ints(0, 1, 1, 2), "a.coordinates": ints(4, 0), "a.values": floats(7, 8)}, values: "[7 8]"},
		{name: "no columns", bind: map[string]int64{"e": 4}, want: `DM701: the size "n" of tensor<3x?xf32, #dm.csr<nnz = 4, dims = [n]>> has no value`},
		{name: "no number of elements", bind: map[string]int64{"n": 4}, want: `DM701: the size "e" of`},
		{name: "too many", bind: map[string]int64{"n": 5, "e": 16}, want: "DM712: argument %a of @f: tensor<3x5xf32, #dm.csr<nnz = 16>> stores 16 entries, but has 15 places for them"},
		{name: "outside of a band", attrs: `{dm.pattern = {kind = "band", width = 0}}`, bind: map[string]int64{"n": 5, "e": 4}, want: "a band of 0 on both sides of the diagonal has 3 places, and 4 entries are stored"},
		{name: "a part of a pattern", bind: map[string]int64{"n": 5, "e": 2}, given: given{"a.coordinates": ints(4, 0)}, want: "DM712: argument %a of @f: coordinates given, and positions not"},
		{name: "unsorted", bind: map[string]int64{"n": 5}, given: given{"a.positions": ints(0, 2, 2, 2), "a.coordinates": ints(4, 0)}, want: "DM712: argument %a of @f: %a.coordinates[1] is 0, behind 4"},
		{name: "outside", bind: map[string]int64{"n": 4}, given: given{"a.positions": ints(0, 1, 2, 2), "a.coordinates": ints(4, 0)}, want: "%a.coordinates[0] is 4, outside of level 1"},
		{name: "padding", bind: map[string]int64{"n": 5}, given: given{"a.positions": ints(0, 1, 1, 1), "a.coordinates": ints(4, 0), "a.values": floats(7, 8)}, want: "%a.values[1] is 8, but 1 values are stored"},
		{name: "sizes that differ", bind: map[string]int64{"n": 5}, given: given{"a.positions": ints(0, 1, 1, 1), "a.coordinates": ints(4, 0), "a.values": floats(7)}, want: "DM702: input %a.values of @f: expected tensor<2xf32>, got tensor<1xf32>"},
		{name: "a member", bind: map[string]int64{"n": 5, "e": 4}, given: given{"p.1.positions": ints(0, 3), "p.1.coordinates0": ints(0, 1, 1), "p.1.coordinates1": ints(0, 3, 3)}, want: "DM712: argument %p.1 of @f: %p.1.coordinates0[2] is (1, 3), as is entry 1"},
	} {
		t.Run(k.name, func(t *testing.T) {
			fn := lower.File(parse.File(source.New("f.dmir", strings.Replace(head, "ATTRS", k.attrs, 1))))[0].Funcs[0]
			args, err := interp.Inputs(t.Context(), fn, k.bind, 7, k.given)
			if k.want != "" || err != nil {
				code := ""
				if e, ok := err.(*interp.Error); ok {
					code = e.Code + ": " + e.Msg
					if e.Help == "" || e.Span.Len() == 0 {
						t.Errorf("%v has no help or no place", err)
					}
				}
				if k.want == "" || !strings.Contains(code, k.want) {
					t.Fatalf("got %v, want %q", err, k.want)
				}
				return
			}
			if got := args[3].String(); k.values != "" && !strings.HasSuffix(got, k.values) {
				t.Errorf("the values are %s, want %s", got, k.values)
			}
			again, err := interp.Inputs(t.Context(), fn, k.bind, 7, nil)
			if err == nil && !slices.Equal(again[0].F32, args[0].F32) {
				t.Error("another argument depends on what is given")
			}
		})
	}
}
