// Factorizations and triangular systems; the routines that JAX calls, with the forms of their calls.
func.func @cholesky() {
  %a = stablehlo.constant dense<[[[4.0, 99.0], [2.0, 5.0]], [[9.0, 99.0], [3.0, 17.0]]]> : tensor<2x2x2xf32>
  %l = stablehlo.cholesky %a, lower = true : tensor<2x2x2xf32>
  check.expect_almost_eq_const %l, dense<[[[2.0, 0.0], [1.0, 2.0]], [[3.0, 0.0], [1.0, 4.0]]]> : tensor<2x2x2xf32>
  %t = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %u = "stablehlo.cholesky"(%t) <{lower = false}> : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  check.expect_almost_eq_const %u, dense<[[[2.0, 1.0], [0.0, 2.0]], [[3.0, 1.0], [0.0, 4.0]]]> : tensor<2x2x2xf32>
  %bad = stablehlo.constant dense<[[1.0, 2.0], [2.0, 1.0]]> : tensor<2x2xf64>
  %f:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%bad) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>)
  check.expect_eq_const %f#1, dense<1> : tensor<i32>
  return
}

func.func @triangular() {
  %a = stablehlo.constant dense<[[2.0, 99.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[2.0, 4.0, 6.0], [7.0, 10.0, 5.0]]> : tensor<2x3xf32>
  %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  check.expect_almost_eq_const %x, dense<[[1.0, 2.0, 3.0], [1.0, 1.0, -1.0]]> : tensor<2x3xf32>
  %y = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  check.expect_almost_eq_const %y, dense<[[-19.0, -26.0, -9.0], [7.0, 10.0, 5.0]]> : tensor<2x3xf32>
  %c = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %z = stablehlo.custom_call @lapack_strsm_ffi(%a, %c) {mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}} : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  check.expect_almost_eq_const %z, dense<[[1.0, 1.0], [2.0, 1.0], [3.0, -1.0]]> : tensor<3x2xf32>
  return
}

func.func @lu() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 0.0], [2.0, 2.0, 4.0], [4.0, 0.0, 8.0]]> : tensor<3x3xf64>
  %f:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>, tensor<i32>)
  check.expect_almost_eq_const %f#0, dense<[[4.0, 0.0, 8.0], [0.5, 2.0, 0.0], [0.25, 1.0, -2.0]]> : tensor<3x3xf64>
  check.expect_eq_const %f#1, dense<[3, 2, 3]> : tensor<3xi32>
  check.expect_eq_const %f#2, dense<0> : tensor<i32>
  return
}

// Q R is the matrix, and the columns of Q are orthogonal; the second column is a multiple of the first.
func.func @qr() {
  %a = stablehlo.constant dense<[[3.0, 6.0], [4.0, 8.0], [0.0, 0.0]]> : tensor<3x2xf64>
  %f:2 = stablehlo.custom_call @lapack_dgeqrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>)
  %q = stablehlo.custom_call @lapack_dorgqr_ffi(%f#0, %f#1) {mhlo.backend_config = {}} : (tensor<3x2xf64>, tensor<2xf64>) -> tensor<3x2xf64>
  check.expect_almost_eq_const %q, dense<[[-0.6, -0.8], [-0.8, 0.6], [0.0, 0.0]]> : tensor<3x2xf64>
  %r = stablehlo.slice %f#0 [0:1, 0:2] : (tensor<3x2xf64>) -> tensor<1x2xf64>
  check.expect_almost_eq_const %r, dense<[[-5.0, -10.0]]> : tensor<1x2xf64>
  return
}
