package op_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// checkFactors holds the rule of a verified op to its shapes: dimensions are the products of their
// factors, and the op on the whole is a piece of itself.
func checkFactors(t *testing.T, o *ir.Op) {
	t.Helper()
	f := op.FactorsOf(o)
	if f == nil {
		return
	}
	side := func(what string, vs []*ir.Value, tensors [][][]int) {
		if len(tensors) != len(vs) {
			t.Fatalf("%s: factors of %d %ss, not %d", o.Name, len(tensors), what, len(vs))
		}
		for i, dims := range tensors {
			v := vs[i].Tensor()
			if v == nil {
				continue
			}
			if len(dims) != v.Rank() {
				t.Fatalf("%s: %s %d has factors %v for shape %s", o.Name, what, i, dims, op.ShapeText(v.Shape))
			}
			for d, list := range dims {
				product := dim.Const(1)
				for _, k := range list {
					product = product.Mul(f.Sizes[k])
				}
				if len(list) > 0 && !op.SameDim(product, v.Shape[d]) {
					t.Errorf("%s %s %v: %s %d, dimension %d of %s is the product %s of factors %v", o.Name, operandText(o), o.Attrs, what, i, d, op.ShapeText(v.Shape), product, list)
				}
			}
		}
	}
	side("operand", o.Operands, f.Operands)
	side("result", o.Results, f.Results)
	if d := op.Of(o); d.Piece != nil {
		p := *o
		p.Attrs = slices.Clone(o.Attrs)
		d.Piece(&p, o)
		if problem := verify.Op(&p); problem != nil {
			t.Errorf("%s %s %v: its piece %v is not valid: %s", o.Name, operandText(o), o.Attrs, p.Attrs, problem.Msg)
		}
	}
}

// factorsText is a rule as "a b -> c": the dimensions of operands and results with their
// factors, a factor that is fixed with "!", one of which results are partial with "+" and one
// that is exchanged with "~".
func factorsText(f *op.Factors) string {
	if f == nil {
		return "none"
	}
	tensors := func(all [][][]int) string {
		var out []string
		for _, dims := range all {
			var s []string
			for _, list := range dims {
				var p []string
				for _, k := range list {
					p = append(p, f.Sizes[k].String()+[]string{"", "+", "!", "~"}[f.Kinds[k]])
				}
				s = append(s, strings.Join(p, "·"))
			}
			out = append(out, "["+strings.Join(s, ",")+"]")
		}
		return strings.Join(out, " ")
	}
	text := tensors(f.Operands) + " -> " + tensors(f.Results)
	if f.Combine != types.Add {
		text += " " + f.Combine.Word()
	}
	if f.Linear != nil {
		text += fmt.Sprint(" linear ", f.Linear)
	}
	return text
}

func TestFactors(t *testing.T) {
	for _, c := range []struct{ name, in, attrs, out, want string }{
		{"reshape", "6x4xf32", "", "3x8xf32", "[3·2,4] -> [3,2·4] linear [[0]]"},
		{"reshape", "6x2x7xf32", "", "4x3x7xf32", "[2·3!,,7] -> [2·2!,,7] linear [[0]]"},
		{"reshape", "3x5xf32", "", "5x3xf32", "[,] -> [,] linear [[0]]"},
		{"reshape", "bxsx8xf32", "", "b*sx8xf32", "[b,s,8] -> [b·s,8] linear [[0]]"},
		{"reshape", "b*sx12x8xf32", "", "bxsx3x4x8xf32", "[b·s,3·4,8] -> [b,s,3,4,8] linear [[0]]"},
		{"reshape", "n+1x2x8xf32", "", "2xn+1x8xf32", "[,,8] -> [,,8] linear [[0]]"},
		{"reshape", "12xn+1xf32", "", "3x2*n+2x2xf32", "[3·4!,] -> [3,,] linear [[0]]"},
		{"reshape", "6x0xf32", "", "2x0x5xf32", "[,] -> [,,] linear [[0]]"},
		{"reduce", "2x3xi32", `kind = "max", dims = [0]`, "3xi32", "[2+,3] -> [3] max"},
		{"einsum", "3x3xf32 3x4xf32", `equation = "ii,ij->j"`, "4xf32", "[,] [,4] -> [4] linear [[0] [1]]"},
		{"einsum", "2x3xf8E5M2 3x4xf8E5M2", `equation = "ik,kj->ij"`, "2x4xf8E5M2", "[2,] [,4] -> [2,4]"},
		{"convolution", "2x6x5x1xf32 4x3x3x1xf32", "feature_group_count = 2", "2x4x3x1xf32", "[2,2·3+,,] [2·2,3+,,] -> [2,2·2,,] linear [[0] [1]]"},
		{"convolution", "2x6x5x4xf32 6x1x3x1xf32", "feature_group_count = 6", "2x6x3x4xf32", "[2,6,,4] [6,,,] -> [2,6,,4] linear [[0] [1]]"},
		{"convolution", "2x6x5x4xf32 6x1x5x1xf32", "feature_group_count = 6", "2x6x1x4xf32", "[2,6,5+,4] [6,,5+,] -> [2,6,,4] linear [[0] [1]]"},
		{"group_norm", "2x6x5xf32 6xf32", "groups = 3", "2x6x5xf32", "[2,3·2!,] [3·2!] -> [2,3·2!,]"},
		{"group_norm", "2x6x5xf32 6xf32", "groups = 1", "2x6x5xf32", "[2,,] [] -> [2,,]"},
		{"attention", "2x8x4x6xf32 2x4x5x6xf32 2x4x5x3xf32", "", "2x8x4x3xf32", "[2,4·2,4,] [2,4,,] [2,4,,] -> [2,4·2,4,] linear [[2]]"},
		{"attention", "2x8x4x6xf32 2x1x5x6xf32 2x1x5x3xf32", "causal = true", "2x8x4x3xf32", "[2,8,,] [2,,,] [2,,,] -> [2,8,,] linear [[2]]"},
		{"attention", "4x4x6xf32 4x5x6xf32 4x5x3xf32", "dropout = 0.5", "4x4x3xf32", "none"},
		{"cross_entropy", "3x5xf32 3xi64", `reduction = "sum"`, "f32", "[3+,] [3+] -> []"},
		{"cross_entropy", "3x5xf32 3xi64", "", "f32", "none"},
		{"gather", "2x4x5xf32 2x3xi64", "dim = 1, batch_dims = 1", "2x3x5xf32", "[2,,5] [2,3] -> [2,3,5] linear [[0]]"},
		{"scatter", "2x4x5xf32 2x3xi64 2x3x5xf32", "dim = 1, batch_dims = 1", "2x4x5xf32", "[2,,5] [2,] [2,,5] -> [2,,5] linear [[0 2]]"},
		{"div", "2x3xi32 3xi32", "", "2x3xi32", "[2,3] [3] -> [2,3]"},
		{"convert", "2x3xf32", "", "2x3xf16", "[2,3] -> [2,3]"},
		{"convert", "2x3xf16", "", "2x3xf32", "[2,3] -> [2,3] linear [[0]]"},
		{"dropout", "2x3xf32", "rate = 0.5", "2x3xf32", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := build(t, c.name, c.in, c.attrs, c.out)
			if p := verify.Op(o); p != nil {
				t.Fatal(p.Msg)
			}
			checkFactors(t, o)
			if got := factorsText(op.FactorsOf(o)); got != c.want {
				t.Errorf("%s %s to %s:\n got %s\nwant %s", c.in, c.attrs, c.out, got, c.want)
			}
		})
	}
}

func TestDivisionOf(t *testing.T) {
	for _, c := range []struct{ name, in, attrs, out, want string }{
		{"embedding", "10x4xf32 2x3xi64", "", "2x3x4xf32", "[10~,4] [2,3] -> [2,3,4] linear [[0]]"},
		{"gather", "2x4x5xi1 2x3xi64", "dim = 1, batch_dims = 1", "2x3x5xi1", "[2,4~,5] [2,3] -> [2,3,5] or"},
		{"gather", "nx5xf32 3xi64", "", "3x5xf32", "[,5] [3] -> [3,5] linear [[0]]"},
		{"scatter", "4x5xf32 3xi64 3x5xf32", "", "4x5xf32", "[4~,5] [] [,5] -> [4~,5] linear [[0 2]]"},
		{"scatter", "4x5xf32 3xi64 3x5xf32", `kind = "max"`, "4x5xf32", "[4~,5] [3~] [3~,5] -> [4~,5] max"},
		{"one_hot", "3xi64", "classes = 5", "3x5xf32", "[3] -> [3,5~]"},
		{"cumsum", "2x4xf32", "dim = 1", "2x4xf32", "[2,4~] -> [2,4~] linear [[0]]"},
		{"cumsum", "2x4xf16", `dim = 1, accumulate = "f16"`, "2x4xf16", "[2,] -> [2,] linear [[0]]"},
		{"top_k", "2x5xf32", "k = 3", "2x3xf32", "[2,5~] -> [2,]"},
		{"convolution", "2x6x5x4xf32 6x1x3x1xf32", "feature_group_count = 6", "2x6x3x4xf32", "[2,6,5~,4] [6,,,] -> [2,6,5~,4] linear [[0] [1]]"},
		{"convolution", "2x3x8xf32 4x3x8xf32", "padding = [[1, 1]]", "2x4x3xf32", "[2,3+,8~] [4,3+,8~] -> [2,4,] linear [[0] [1]]"},
		{"slice", "4x6xf32", "start_indices = [0, 1], limit_indices = [4, 5]", "4x4xf32", "[4,6~] -> [4,6~] linear [[0]]"},
		{"attention", "8x4x6xf32 4x5x6xf32 4x5x3xf32", "causal = true", "8x4x3xf32", "[4·2,4~,] [4,5~,] [4,5~,] -> [4·2,4~,] linear [[2]]"},
		{"attention", "4x4x6xf32 4x5x6xf32 4x5x3xf32", "dropout = 0.5", "4x4x3xf32", "[4,4,] [4,,] [4,,] -> [4,4,] linear [[2]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := build(t, c.name, c.in, c.attrs, c.out)
			if p := verify.Op(o); p != nil {
				t.Fatal(p.Msg)
			}
			if got := factorsText(op.DivisionOf(o)); got != c.want {
				t.Errorf("%s %s to %s:\n got %s\nwant %s", c.in, c.attrs, c.out, got, c.want)
			}
		})
	}
}
