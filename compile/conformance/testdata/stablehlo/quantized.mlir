// Quantized numbers: ops compute with the real ones and round.
func.func @quantized() {
  %0 = stablehlo.constant dense<[1.0, 2.5, -3.0, 100.0]> : tensor<4xf32>
  %q = stablehlo.uniform_quantize %0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  %r = stablehlo.add %q, %q : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  %d = stablehlo.uniform_dequantize %r : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4xf32>
  check.expect_almost_eq_const %d, dense<[2.0, 5.0, -6.0, 62.0]> : tensor<4xf32>
  %b = stablehlo.bitcast_convert %q : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4xi8>
  check.expect_eq_const %b, dense<[5, 8, -3, 127]> : tensor<4xi8>
  func.return
}
func.func @per_axis() {
  %0 = stablehlo.constant dense<[[1.0, 2.5], [-3.0, 1.0]]> : tensor<2x2xf32>
  %q = stablehlo.uniform_quantize %0 : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.01:-1}>>
  check.expect_eq_const %q, dense<[[5, 127], [-3, 99]]> : tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.01:-1}>>
  %x = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %qx = stablehlo.uniform_quantize %x : (tensor<1x2xf32>) -> tensor<1x2x!quant.uniform<i8:f32, 0.5>>
  %y = stablehlo.dot_general %qx, %q, contracting_dims = [1] x [0] : (tensor<1x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.01:-1}>>) -> tensor<1x2x!quant.uniform<i32:f32, 0.125>>
  %d = stablehlo.uniform_dequantize %y : (tensor<1x2x!quant.uniform<i32:f32, 0.125>>) -> tensor<1x2xf32>
  check.expect_almost_eq_const %d, dense<[[-5.0, 3.25]]> : tensor<1x2xf32>
  %z = stablehlo.constant dense<3> : tensor<!quant.uniform<i8:f32, 0.5:3>>
  %p = stablehlo.uniform_quantize %0 : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5:3>>
  %red = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x2x!quant.uniform<i8:f32, 0.5:3>>, tensor<!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x!quant.uniform<i8:f32, 0.5:3>>
  check.expect_eq_const %red, dense<[10, -1]> : tensor<2x!quant.uniform<i8:f32, 0.5:3>>
  %w = "stablehlo.reduce_window"(%p, %z) ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5:3>>, %b: tensor<!quant.uniform<i8:f32, 0.5:3>>):
    %s = stablehlo.maximum %a, %b : tensor<!quant.uniform<i8:f32, 0.5:3>>
    stablehlo.return %s : tensor<!quant.uniform<i8:f32, 0.5:3>>
  }) {window_dimensions = array<i64: 1, 2>} : (tensor<2x2x!quant.uniform<i8:f32, 0.5:3>>, tensor<!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x1x!quant.uniform<i8:f32, 0.5:3>>
  check.expect_eq_const %w, dense<[[8], [5]]> : tensor<2x1x!quant.uniform<i8:f32, 0.5:3>>
  func.return
}

// The requantized numbers of another scale, and integers of four bits.
func.func @requantized() {
  %q = stablehlo.constant dense<[-8, -1, 0, 7]> : tensor<4x!quant.uniform<i4:f32, 0.5>>
  %r = stablehlo.uniform_quantize %q : (tensor<4x!quant.uniform<i4:f32, 0.5>>) -> tensor<4x!quant.uniform<u8:f32, 0.25:128>>
  check.expect_eq_const %r, dense<[112, 126, 128, 142]> : tensor<4x!quant.uniform<u8:f32, 0.25:128>>
  %t = stablehlo.reshape %r : (tensor<4x!quant.uniform<u8:f32, 0.25:128>>) -> tensor<2x2x!quant.uniform<u8:f32, 0.25:128>>
  %m = stablehlo.maximum %t, %t : tensor<2x2x!quant.uniform<u8:f32, 0.25:128>>
  %p = stablehlo.compare GT, %m, %t : (tensor<2x2x!quant.uniform<u8:f32, 0.25:128>>, tensor<2x2x!quant.uniform<u8:f32, 0.25:128>>) -> tensor<2x2xi1>
  check.expect_eq_const %p, dense<false> : tensor<2x2xi1>
  return
}

// Numbers of two bits wrap around; small formats round to the nearest, and beyond the
// greatest to infinity, to the greatest, or to what is no number.
func.func @narrow() {
  %i = stablehlo.constant dense<[1, -2, -1]> : tensor<3xi2>
  %j = stablehlo.multiply %i, %i : tensor<3xi2>
  check.expect_eq_const %j, dense<[1, 0, 1]> : tensor<3xi2>
  %x = stablehlo.constant dense<[0.3, -1.7, 1.0e9, 3.0e-3, -0.0]> : tensor<5xf32>
  %e3m4 = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xf8E3M4>
  %f = stablehlo.convert %e3m4 : (tensor<5xf8E3M4>) -> tensor<5xf32>
  check.expect_eq_const %f, dense<[0.296875, -1.6875, 0x7F800000, 0.0, -0.0]> : tensor<5xf32>
  %e2m1 = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xf4E2M1FN>
  %g = stablehlo.convert %e2m1 : (tensor<5xf4E2M1FN>) -> tensor<5xf32>
  check.expect_eq_const %g, dense<[0.5, -1.5, 6.0, 0.0, -0.0]> : tensor<5xf32>
  %fnuz = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xf8E4M3FNUZ>
  %h = stablehlo.convert %fnuz : (tensor<5xf8E4M3FNUZ>) -> tensor<5xf32>
  check.expect_eq_const %h, dense<[0.3125, -1.75, 0x7FC00000, 0.0029296875, 0.0]> : tensor<5xf32>
  %scale = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xf8E8M0FNU>
  %k = stablehlo.slice %scale [0:1] : (tensor<5xf8E8M0FNU>) -> tensor<1xf8E8M0FNU>
  check.expect_eq_const %k, dense<0.25> : tensor<1xf8E8M0FNU>
  return
}
