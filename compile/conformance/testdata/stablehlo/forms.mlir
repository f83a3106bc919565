// Forms of ops and literals that other versions of the tools print.
func.func @slices() {
  %x = stablehlo.constant dense<[[[0, 1], [2, 3], [4, 5], [6, 7]], [[8, 9], [10, 11], [12, 13], [14, 15]], [[16, 17], [18, 19], [20, 21], [22, 23]]]> : tensor<3x4x2xi64>
  %i = stablehlo.constant dense<[[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 2]]]> : tensor<2x3x2xi64>
  %n = stablehlo.constant dense<[1, 2, 2]> : tensor<3xi64>
  %r = "stablehlo.dynamic_gather"(%x, %i, %n) {dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 2>, indices_are_sorted = false} : (tensor<3x4x2xi64>, tensor<2x3x2xi64>, tensor<3xi64>) -> tensor<2x3x2x2xi64>
  check.expect_eq_const %r, dense<[[[[0, 1], [2, 3]], [[2, 3], [4, 5]], [[12, 13], [14, 15]]], [[[8, 9], [10, 11]], [[10, 11], [12, 13]], [[16, 17], [18, 19]]]]> : tensor<2x3x2x2xi64>
  return
}

// Without a bit of mantissa there is no NaN.
func.func @precision() {
  %x = stablehlo.constant dense<[0x7FFFFFFFFFFFFFFF, 0x3FF8000000000000, 0xFFF0000000000000]> : tensor<3xf64>
  %y = stablehlo.reduce_precision %x, format = e11m0 : tensor<3xf64>
  check.expect_eq_const %y, dense<[0x7FF0000000000000, 2.0, 0xFFF0000000000000]> : tensor<3xf64>
  return
}

func.func @tolerance() {
  %x = stablehlo.constant dense<5.0> : tensor<f64>
  check.expect_almost_eq_const %x, dense<5.1> : tensor<f64> {tolerance = 0.1 : f64}
  check.expect_almost_eq %x, %x {tolerance = 0.0 : f64} : tensor<f64>
  return
}

// A byte for each truth value, and eight in a byte.
func.func @truth() {
  %x = stablehlo.constant dense<"0x00010001010001000100"> : tensor<10xi1>
  %y = stablehlo.constant dense<"0x5A01"> : tensor<10xi1>
  check.expect_eq_const %x, dense<[false, true, false, true, true, false, true, false, true, false]> : tensor<10xi1>
  check.expect_eq_const %y, dense<[false, true, false, true, true, false, true, false, true, false]> : tensor<10xi1>
  return
}
