package interp

import (
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Conversions between every two element types keep 0 and 1, and 2 where i1 is
// not one of the two.
func TestConvertEveryPair(t *testing.T) {
	elems := op.Lookup("dm.convert").Operands[0].Elems
	pairs := 0
	for _, from := range elems {
		for _, to := range elems {
			vals := []float64{0, 1, 2}
			x := tensor.FromFloats(from, []int{3}, vals)
			y := run(t, "func.func @f(%x: "+x.Type()+") -> tensor<3x"+to.String()+"> {\n  %y = dm.convert %x : ("+x.Type()+") -> tensor<3x"+to.String()+
				">\n  return %y : tensor<3x"+to.String()+">\n}", x)[0]
			for i, want := range vals {
				if from == types.I1 || to == types.I1 {
					want = min(want, 1)
				}
				if got := y.Float(i); got != want {
					t.Errorf("%s to %s: %g becomes %g, want %g", from, to, vals[i], got, want)
				}
			}
			pairs++
		}
	}
	t.Logf("%d pairs", pairs)
}

// Operands and results other than the first, in every element type that the
// registry allows them.
func TestOtherElementTypes(t *testing.T) {
	for _, c := range []struct {
		name, op string
		operand  int // whose element types are tried, or -1 for the results
		result   int
		text     string // ELEM stands for the type
	}{
		{"gather indices", "gather", 1, 0, "func.func @f(%x: tensor<10x3xf32>, %i: tensor<4xELEM>) -> tensor<4x3xf32> {\n  %y = dm.gather %x, %i : (tensor<10x3xf32>, tensor<4xELEM>) -> tensor<4x3xf32>\n  return %y : tensor<4x3xf32>\n}"},
		{"embedding ids", "embedding", 1, 0, "func.func @f(%x: tensor<10x3xf32>, %i: tensor<4xELEM>) -> tensor<4x3xf32> {\n  %y = dm.embedding %x, %i : (tensor<10x3xf32>, tensor<4xELEM>) -> tensor<4x3xf32>\n  return %y : tensor<4x3xf32>\n}"},
		{"scatter indices", "scatter", 1, 0, "func.func @f(%x: tensor<10x3xf32>, %i: tensor<4xELEM>, %u: tensor<4x3xf32>) -> tensor<10x3xf32> {\n  %y = dm.scatter max %x, %i, %u : (tensor<10x3xf32>, tensor<4xELEM>, tensor<4x3xf32>) -> tensor<10x3xf32>\n  return %y : tensor<10x3xf32>\n}"},
		{"dynamic_slice starts", "dynamic_slice", 1, 0, "func.func @f(%x: tensor<10xf32>, %i: tensor<ELEM>) -> tensor<4xf32> {\n  %y = dm.dynamic_slice %x, %i, slice_sizes = [4] : (tensor<10xf32>, tensor<ELEM>) -> tensor<4xf32>\n  return %y : tensor<4xf32>\n}"},
		{"dynamic_update_slice starts", "dynamic_update_slice", 2, 0, "func.func @f(%x: tensor<10xf32>, %u: tensor<4xf32>, %i: tensor<ELEM>) -> tensor<10xf32> {\n  %y = dm.dynamic_update_slice %x, %u, %i : (tensor<10xf32>, tensor<4xf32>, tensor<ELEM>) -> tensor<10xf32>\n  return %y : tensor<10xf32>\n}"},
		{"labels", "cross_entropy", 1, 0, "func.func @f(%x: tensor<3x10xf32>, %l: tensor<3xELEM>) -> tensor<f32> {\n  %y = dm.cross_entropy %x, %l : (tensor<3x10xf32>, tensor<3xELEM>) -> tensor<f32>\n  return %y : tensor<f32>\n}"},
		{"argmax positions", "argmax", -1, 0, "func.func @f(%x: tensor<3x10xf32>) -> tensor<3xELEM> {\n  %y = dm.argmax %x : (tensor<3x10xf32>) -> tensor<3xELEM>\n  return %y : tensor<3xELEM>\n}"},
		{"top_k positions", "top_k", -1, 1, "func.func @f(%x: tensor<3x10xf32>) -> tensor<3x2xELEM> {\n  %y, %i = dm.top_k %x, k = 2 : (tensor<3x10xf32>) -> (tensor<3x2xf32>, tensor<3x2xELEM>)\n  return %i : tensor<3x2xELEM>\n}"},
		{"sort positions", "sort", -1, 1, "func.func @f(%x: tensor<3x10xf32>) -> tensor<3x10xELEM> {\n  %y, %i = dm.sort %x : (tensor<3x10xf32>) -> (tensor<3x10xf32>, tensor<3x10xELEM>)\n  return %i : tensor<3x10xELEM>\n}"},
		{"positions", "segment_reduce", 1, 0, "func.func @f(%x: tensor<10x3xf32>, %p: tensor<4xELEM>) -> tensor<3x3xf32> {\n  %y = dm.segment_reduce min %x, %p : (tensor<10x3xf32>, tensor<4xELEM>) -> tensor<3x3xf32>\n  return %y : tensor<3x3xf32>\n}"},
		{"numbers of segments", "segment_ids", -1, 0, "func.func @f(%p: tensor<4xi32>) -> tensor<9xELEM> {\n  %y = dm.segment_ids %p : (tensor<4xi32>) -> tensor<9xELEM>\n  return %y : tensor<9xELEM>\n}"},
		{"places", "searchsorted", -1, 0, "func.func @f(%s: tensor<4xi32>, %x: tensor<9xi32>) -> tensor<9xELEM> {\n  %y = dm.searchsorted %s, %x : (tensor<4xi32>, tensor<9xi32>) -> tensor<9xELEM>\n  return %y : tensor<9xELEM>\n}"},
		{"dropout mask", "dropout", -1, 1, "func.func @f(%x: tensor<30xf32>) -> tensor<30xELEM> {\n  %y, %m = dm.dropout %x, rate = 0.5 : (tensor<30xf32>) -> (tensor<30xf32>, tensor<30xELEM>)\n  return %m : tensor<30xELEM>\n}"},
		{"iota", "iota", -1, 0, "func.func @f() -> tensor<2x3xELEM> {\n  %y = dm.iota dim = 1 : tensor<2x3xELEM>\n  return %y : tensor<2x3xELEM>\n}"},
		{"rng", "rng", -1, 0, "func.func @f() -> tensor<50xELEM> {\n  %y = dm.rng uniform, seed = 3, low = 1.0, high = 2.0 : tensor<50xELEM>\n  %z = dm.convert %y : (tensor<50xELEM>) -> tensor<50xi32>\n  %w = dm.convert %z : (tensor<50xi32>) -> tensor<50xELEM>\n  return %w : tensor<50xELEM>\n}"},
	} {
		d := op.Lookup("dm." + c.op)
		p := d.Results[c.result]
		if c.operand >= 0 {
			p = d.Operands[c.operand]
		}
		var first *tensor.Tensor
		for _, elem := range p.Elems {
			got := run(t, strings.ReplaceAll(c.text, "ELEM", elem.String()))[0]
			if first == nil {
				first = got
			} else if diff := tensor.MaxDiff(got, first); diff != 0 {
				t.Errorf("%s in %s: got %v, want %v", c.name, elem, got, first)
			}
		}
	}
}

// Parameters of a normalization in f32 beside half-precision data, and products
// of the two f8 types with a wider result.
func TestMixedElementTypes(t *testing.T) {
	out := run(t, `func.func @f(%x: tensor<2x4xbf16>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xbf16> {
  %y = dm.layer_norm %x, %s, %b : (tensor<2x4xbf16>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xbf16>
  return %y : tensor<2x4xbf16>
}`, tensor.FromFloats(types.BF16, []int{2, 4}, []float64{1, 1, 3, 3, 0, 0, 0, 4}), f32([]int{4}, 1, 1, 1, 1), f32([]int{4}, 0, 1, 0, 1))
	// Rows normalize to ±1, and to −1/√3 and √3: worked by hand.
	want := tensor.FromFloats(types.BF16, []int{2, 4}, []float64{-1, 0, 1, 2, -0.57735, 0.42265, -0.57735, 2.73205})
	if diff := tensor.MaxDiff(out[0], want); diff > 4e-3 {
		t.Errorf("got %v, want %v", out[0], want)
	}
	out = run(t, `func.func @f(%a: tensor<1x3xf8E4M3FN>, %b: tensor<3x1xf8E5M2>) -> tensor<1x1xf32> {
  %y = dm.matmul %a, %b : (tensor<1x3xf8E4M3FN>, tensor<3x1xf8E5M2>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}`, tensor.FromFloats(types.F8E4M3FN, []int{1, 3}, []float64{448, 1.125, -2}), tensor.FromFloats(types.F8E5M2, []int{3, 1}, []float64{2, 8, 0.5}))
	if got := out[0].F32[0]; got != 904 {
		t.Errorf("448·2 + 1.125·8 - 2·0.5 = %g, want 904", got)
	}
}
