package patterns_test

import (
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/compile/patterns"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

const text = `!big = tensor<10000000x10000000xf32, #dm.csr<nnz = 500000000>>
func.func @main(%open: tensor<?x?xf32, #dm.csr<nnz = e, dims = [n, n]>>, %band: !big {dm.pattern = "band"}, %web: !big {dm.pattern = "power_law"},
    %blocks: tensor<256x512xf32, #dm.bsr<16x16, nnz = 40>> {dm.pattern = "blocks"}, %cube: tensor<4x8x6xf32, #dm.csf<nnz = 20>>, %v: tensor<90xf32, #dm.sparse_vector<nnz = 9>>, %m: tensor<3x5xf32, #dm.csr<nnz = 2>>) -> tensor<2x4xf32, #dm.csr<nnz = 2>> {
  %p = dm.constant dense<[0, 1, 2]> : tensor<3xi32>
  %c = dm.constant dense<[3, 0]> : tensor<2xi32>
  %x = dm.constant dense<1.0> : tensor<2xf32>
  %k = dm.pack %p, %c, %x : (tensor<3xi32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2x4xf32, #dm.csr<nnz = 2>>
  return %k : tensor<2x4xf32, #dm.csr<nnz = 2>>
}`

// Each sparse argument and constant has a picture, of a bounded size however large it is, or a reason for none.
func TestOf(t *testing.T) {
	p := program.Load(source.New("p.dmir", text), program.Options{})
	if p.HasErrors() {
		t.Fatal(p.Diags[0].Message)
	}
	m := &sparse.COO{Shape: []int{3, 5}, At: [][]int64{{0, 2}, {4, 1}}, Values: tensor.New(types.F32, 2)}
	all := patterns.Of(p.Funcs[0].Func, nil, map[string]patterns.Given{"m": {File: "m.mtx", Elements: m}})
	var names []string
	by := map[string]report.Pattern{}
	for _, x := range all {
		names, by[x.Name] = append(names, x.Name), x.Pattern
		var sum int64
		for _, n := range x.Counts {
			sum += n
		}
		if len(x.Counts) != x.Down*x.Across || len(x.Counts) > sparse.SpySide*sparse.SpySide || sum > 1<<18 || (sum == 0) != (x.Reason != "") {
			t.Errorf("%s: a grid of %d × %d with %d elements, %q", x.Name, x.Down, x.Across, sum, x.Reason)
		}
	}
	if !slices.Equal(names, []string{"%open", "%band", "%web", "%blocks", "%cube", "%v", "%m", "%k"}) {
		t.Fatal(names)
	}
	if r := by["%open"].Reason; !strings.Contains(r, "bind") {
		t.Errorf("%%open: %q", r)
	}
	for k, n := range by["%band"].Counts {
		if row, column := k/64, k%64; n > 0 && (row-column > 1 || column-row > 1) {
			t.Errorf("the band has %d elements in cell (%d, %d)", n, row, column)
		}
	}
	if b := by["%blocks"]; b.Stored != 40*256 || b.Down != 32 || b.Across != 64 {
		t.Errorf("%+v", b)
	}
	if v := by["%v"]; v.Down != 1 || v.Across != 64 || v.Stored != 9 {
		t.Errorf("%+v", v)
	}
	if g := by["%m"]; g.From != "counted from m.mtx" || g.Longest != 1 || g.Empty != 1 || g.Counts[4] != 1 || g.Counts[2*5+1] != 1 {
		t.Errorf("%+v", g)
	}
	if k := by["%k"]; k.Kind != report.PatternConstant || k.Counts[3] != 1 || k.Counts[4] != 1 {
		t.Errorf("%+v", k)
	}
}
