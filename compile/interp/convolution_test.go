package interp

import (
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// A convolution with lhs_dilation is one of the image with zeros written between
// its elements.
func TestTransposedConvolution(t *testing.T) {
	x := tensor.Random(types.F64, []int{2, 4, 3, 5}, 1, 1)
	w := tensor.Random(types.F64, []int{6, 2, 2, 3}, 1, 2)
	const attributes = "window_strides = [1, 2], padding = [[1, 1], [2, 0]], rhs_dilation = [2, 1], feature_group_count = 2"
	got := run(t, `func.func @f(%x: tensor<2x4x3x5xf64>, %w: tensor<6x2x2x3xf64>) -> tensor<2x6x7x7xf64> {
  %y = dm.convolution %x, %w, lhs_dilation = [3, 3], `+attributes+` : (tensor<2x4x3x5xf64>, tensor<6x2x2x3xf64>) -> tensor<2x6x7x7xf64>
  return %y : tensor<2x6x7x7xf64>
}`, x, w)[0]
	want := run(t, `func.func @f(%x: tensor<2x4x3x5xf64>, %w: tensor<6x2x2x3xf64>) -> tensor<2x6x7x7xf64> {
  %zero = dm.constant dense<0.0> : tensor<f64>
  %p = dm.pad %x, %zero, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 2, 2] : (tensor<2x4x3x5xf64>, tensor<f64>) -> tensor<2x4x7x13xf64>
  %y = dm.convolution %p, %w, `+attributes+` : (tensor<2x4x7x13xf64>, tensor<6x2x2x3xf64>) -> tensor<2x6x7x7xf64>
  return %y : tensor<2x6x7x7xf64>
}`, x, w)[0]
	if diff := tensor.MaxDiff(got, want); diff > 1e-12 {
		t.Errorf("off by %g", diff)
	}
}
