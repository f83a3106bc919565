package driver

import "testing"

// Operands that are the same number everywhere, of ops that have a kernel of
// their own; and rows divided by what has no reciprocal.
func TestEdges(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	for name, text := range map[string]string{
		"a mask that is a number": `func.func @f(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %m = dm.constant dense<0.5> : tensor<6xf32>
  %y = dm.attention %q, %k, %v, %m : (tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<6xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}`,
		"rows of tiny numbers": `func.func @f(%x: tensor<3x64xf32>) -> (tensor<3x64xf32>, tensor<3x64xf32>) {
  %tiny = dm.constant dense<1.0e-40> : tensor<f32>
  %huge = dm.constant dense<3.0e37> : tensor<f32>
  %t = dm.mul %x, %tiny : (tensor<3x64xf32>, tensor<f32>) -> tensor<3x64xf32>
  %r = dm.reduce max %t, dims = [1], keep_dims = true : (tensor<3x64xf32>) -> tensor<3x1xf32>
  %y = dm.div %t, %r : (tensor<3x64xf32>, tensor<3x1xf32>) -> tensor<3x64xf32>
  %h = dm.mul %x, %huge : (tensor<3x64xf32>, tensor<f32>) -> tensor<3x64xf32>
  %s = dm.reduce max %h, dims = [1], keep_dims = true : (tensor<3x64xf32>) -> tensor<3x1xf32>
  %z = dm.div %h, %s : (tensor<3x64xf32>, tensor<3x1xf32>) -> tensor<3x64xf32>
  return %y, %z : tensor<3x64xf32>, tensor<3x64xf32>
}`,
	} {
		t.Run(name, func(t *testing.T) { agree(t, loaded(t, name+".dmir", text), "") })
	}
}
