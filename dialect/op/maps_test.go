package op_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// checkMaps holds an iteration space to the shapes: every dimension lies on a
// loop of its size, or is a broadcast 1.
func checkMaps(t *testing.T, o *ir.Op) {
	t.Helper()
	if op.Of(o).Maps == nil {
		return
	}
	it := op.Of(o).Maps(o)
	if it == nil {
		t.Error("no iteration space")
		return
	}
	if len(it.Names) != len(it.Loops) || len(it.Reduces) != len(it.Loops) || len(it.Operands) != len(o.Operands) || len(it.Results) != len(o.Results) {
		t.Fatalf("iteration space %+v of %d operands and %d results", it, len(o.Operands), len(o.Results))
	}
	side := func(what string, vs []*ir.Value, maps [][]int) {
		for i, v := range vs {
			tt := v.Tensor()
			if tt == nil {
				continue
			}
			if len(maps[i]) != tt.Rank() {
				t.Errorf("%s %d: map %v of shape %s", what, i, maps[i], op.ShapeText(tt.Shape))
				continue
			}
			for d, l := range maps[i] {
				switch {
				case l < 0 && !tt.Shape[d].Equal(dim.Const(1)):
					t.Errorf("%s %d: dimension %d of %s lies on no loop", what, i, d, op.ShapeText(tt.Shape))
				case l >= 0 && !op.SameDim(it.Loops[l], tt.Shape[d]):
					t.Errorf("%s %d: dimension %d of %s lies on a loop of %s", what, i, d, op.ShapeText(tt.Shape), it.Loops[l])
				case l >= 0 && what == "result" && it.Reduces[l]:
					t.Errorf("result %d: dimension %d lies on a reducing loop", i, d)
				}
			}
		}
	}
	side("operand", o.Operands, it.Operands)
	side("result", o.Results, it.Results)
}

func TestMaps(t *testing.T) {
	cases := []struct {
		name, in, attrs, out string
		names                []string
		reduces              []bool
		operands, results    [][]int
	}{
		{
			"einsum", "8x512x1024xf16 1024x4096xf16", `equation = "bln,nu->blu"`, "8x512x4096xf16",
			[]string{"b", "l", "u", "n"},
			[]bool{false, false, false, true},
			[][]int{{0, 1, 3}, {3, 2}},
			[][]int{{0, 1, 2}},
		},
		{
			"matmul", "5x3x2xf32 3x4xf32", "transpose_a = true", "5x2x4xf32",
			[]string{"b0", "m", "n", "k"},
			[]bool{false, false, false, true},
			[][]int{{0, 3, 1}, {3, 2}},
			[][]int{{0, 1, 2}},
		},
		{
			"add", "2x1xf32 3xf32", "", "2x3xf32",
			[]string{"d0", "d1"},
			[]bool{false, false},
			[][]int{{0, -1}, {1}},
			[][]int{{0, 1}},
		},
		{
			"reduce", "2x3x4xf32", `kind = "add", dims = [1], keep_dims = true`, "2x1x4xf32",
			[]string{"d0", "d1", "d2"},
			[]bool{false, true, false},
			[][]int{{0, 1, 2}},
			[][]int{{0, -1, 2}},
		},
		{
			"transpose", "2x3x4xf32", "dims = [2, 0, 1]", "4x2x3xf32",
			[]string{"d0", "d1", "d2"},
			[]bool{false, false, false},
			[][]int{{1, 2, 0}},
			[][]int{{0, 1, 2}},
		},
		{
			"broadcast", "3x1xf32", "dims = [0, 2]", "3x5x4xf32",
			[]string{"d0", "d1", "d2"},
			[]bool{false, false, false},
			[][]int{{0, -1}},
			[][]int{{0, 1, 2}},
		},
	}
	for _, c := range cases {
		it := op.Lookup("dm." + c.name).Maps(build(t, c.name, c.in, c.attrs, c.out))
		if d := cmp.Diff(c.names, it.Names) + cmp.Diff(c.reduces, it.Reduces) + cmp.Diff(c.operands, it.Operands) + cmp.Diff(c.results, it.Results); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
