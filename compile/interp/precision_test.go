package interp

import (
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// Operands are rounded to TF32 to nearest with ties away from zero, those of each product of an einsum, and sums are not; an operand alone
// is not multiplied.
func TestTF32(t *testing.T) {
	const half = 0x1p-11 // of the last bit that 1 has in TF32
	for _, c := range []struct {
		name, text string
		args       [][]float64
		want       float64
	}{
		{"a tie", "%0 = dm.einsum \"a,a->\" %x, %y, precision = tf32 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1 + half, -1 - half}, {1, 0}}, 1 + 2*half},
		{"a negative one", "%0 = dm.einsum \"a,a->\" %x, %y, precision = tf32 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1 + half, -1 - half}, {0, 1}}, -1 - 2*half},
		{"below a tie", "%0 = dm.einsum \"a,a->\" %x, %y, precision = tf32 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1 + half/2, 0}, {1, 0}}, 1},
		{"sums keep more", "%0 = dm.einsum \"a,a->\" %x, %y, precision = tf32 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1, half}, {1, 0.5}}, 1 + half/2},
		{"three operands", "%0 = dm.einsum \"a,a,a->\" %x, %y, %y, precision = tf32 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1 + 2*half, 0}, {1 + 2*half, 0}}, (1 + 4*half) * (1 + 2*half)},
		{"one operand", "%0 = dm.einsum \"a->\" %x, precision = tf32 : (tensor<2xf32>) -> tensor<f32>\n  %1 = dm.neg %y : tensor<2xf32>", [][]float64{{1 + half, 0}, {0, 0}}, 1 + half},
		{"f32", "%0 = dm.einsum \"a,a->\" %x, %y, precision = f32 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>", [][]float64{{1 + half, 0}, {1, 0}}, 1 + half},
	} {
		var args []*tensor.Tensor
		for _, x := range c.args {
			a := tensor.New(types.F32, 2)
			for i, v := range x {
				a.SetFloat(i, v)
			}
			args = append(args, a)
		}
		got := run(t, "func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<f32> {\n  "+c.text+"\n  return %0 : tensor<f32>\n}", args...)
		if v := got[0].Float(0); v != c.want {
			t.Errorf("%s: %v, want %v", c.name, v, c.want)
		}
	}
}
