package types_test

import (
	"strings"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// TestBind binds the symbols of parameters to the sizes of values.
func TestBind(t *testing.T) {
	read := func(text string) (out []types.Type) {
		for _, part := range strings.Split(text, "; ") {
			x, err := parse.Type(part)
			if err != nil {
				t.Fatal(part, err)
			}
			ty, err := types.FromExpr(x, &types.Env{})
			if err != nil {
				t.Fatal(part, err)
			}
			out = append(out, types.Distinct(ty, string(rune('a'+len(out)))))
		}
		return out
	}
	vec := func(size string) string { return `tensor<?xf32, #dm.at<dims = [` + size + `]>>` }
	for _, c := range []struct {
		name, params, given string
		want                string // sizes, with commas between them
		mismatch            string // "parameter.dimension want have"
	}{
		{"a symbol", vec("n"), "tensor<4xf32>", "n=4", ""},
		{"a symbol of the caller", vec("n"), vec("m"), "n=m", ""},
		{"a formula of the caller", vec("n"), vec("2*m + 1"), "n=2*m + 1", ""},
		{"a formula", vec("2*h"), "tensor<6xf32>", "h=3", ""},
		{"a formula with a number", vec("2*h + 1"), "tensor<7xf32>", "h=3", ""},
		{"a formula of a formula", vec("2*h"), vec("4*m"), "h=2*m", ""},
		{"a symbol of the caller's with the same name", vec("c + 1") + "; " + vec("c + 1") + "; " + vec("2*c"), vec("c") + "; " + vec("c") + "; " + vec("2*c - 2"), "c=c - 1", ""},
		{"an odd size", vec("2*h"), "tensor<7xf32>", "", "0.0 2*h 7"},
		{"less than none", vec("h + 8"), "tensor<7xf32>", "", "0.0 h + 8 7"},
		{"a formula before its symbol", vec("n*m") + "; " + vec("n"), "tensor<6xf32>; tensor<2xf32>", "m=3, n=2", ""},
		{"a formula of two before both", vec("a + b") + "; " + vec("2*a"), "tensor<6xf32>; tensor<2xf32>", "a=1, b=5", ""},
		{"the same symbol", vec("n") + "; " + vec("n"), "tensor<6xf32>; tensor<2xf32>", "", "1.0 n 2"},
		{"a size that has a name first", vec("n") + "; " + vec("n"), "tensor<?xf32>; tensor<2xf32>", "n=2", ""},
		{"two formulas that disagree", vec("2*n") + "; " + vec("3*n"), "tensor<4xf32>; tensor<9xf32>", "", "1.0 3*n 9"},
		{"a division is no way to a symbol", vec("(n + 1)/2"), "tensor<4xf32>", "", "0.0 (n + 1)/2 4"},
		{"a division of a bound symbol", vec("(n + 1)/2") + "; " + vec("n"), "tensor<4xf32>; tensor<7xf32>", "n=7", ""},
		{"a tuple", "tuple<tensor<2xf32>, " + vec("n") + ">", "tuple<tensor<2xf32>, tensor<5xf32>>", "n=5", ""},
		{"another element type", vec("n"), "tensor<4xf16>", "", "type"},
		{"another rank", vec("n"), "tensor<4x4xf32>", "", "type"},
		{"a number", "tensor<4xf32>", "tensor<5xf32>", "", "0.0 4 5"},
		{"a stored number", "tensor<?x?xf32, #dm.csr<nnz = e, dims = [n, n]>>", "tensor<8x8xf32, #dm.csr<nnz = 12>>", "e=12, n=8", ""},
	} {
		b, m := types.Bind(read(c.params), read(c.given))
		got := ""
		if m != nil && m.Type {
			got = "type"
		} else if m != nil {
			got = string(rune('0'+m.Param)) + "." + string(rune('0'+m.Size)) + " " + m.Want.String() + " " + m.Have.String()
		}
		if got != c.mismatch {
			t.Errorf("%s: mismatch %q, want %q", c.name, got, c.mismatch)
		}
		for _, want := range strings.Split(c.want, ", ") {
			name, text, _ := strings.Cut(want, "=")
			if size, err := dim.Parse(text); name != "" && (err != nil || !b.Sizes[name].Equal(size)) {
				t.Errorf("%s: %s is %s, want %s", c.name, name, b.Sizes[name], text)
			}
		}
	}
}
