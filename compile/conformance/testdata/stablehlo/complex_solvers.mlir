// Factorizations of complex matrices, as LAPACK computes them.
func.func @hermitian() {
  %h = stablehlo.constant dense<[[(4.0, 0.0), (1.0, -1.0), (0.0, 0.5)], [(1.0, 1.0), (3.0, 0.0), (1.0, 0.0)], [(-0.0, -0.5), (1.0, 0.0), (5.0, 0.0)]]> : tensor<3x3xcomplex<f64>>
  %b = stablehlo.constant dense<[[(1.0, 1.0), (2.0, 0.0)], [(0.5, 0.0), (0.0, 1.0)], [(2.0, -1.0), (1.0, 0.0)]]> : tensor<3x2xcomplex<f64>>
  %l = stablehlo.cholesky %h, lower = true : tensor<3x3xcomplex<f64>>
  check.expect_almost_eq_const %l, dense<[[(2.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(0.5, 0.5), (1.5811388300841898, 0.0), (0.0, 0.0)], [(-0.0, -0.25), (0.7115124735378854, 0.07905694150420949), (2.103568396796263, 0.0)]]> : tensor<3x3xcomplex<f64>>
  %x = "stablehlo.triangular_solve"(%l, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<3x3xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<3x2xcomplex<f64>>
  check.expect_almost_eq_const %x, dense<[[(0.3971739240687141, 0.2938273283792925), (0.8894243858457338, -0.2769595551438011)], [(-0.08784751924346118, 0.26146047869784056), (-0.21392220984368776, 0.6562246664607524)], [(0.9507653770830566, -0.4753826885415283), (0.4753826885415283, 0.0)]]> : tensor<3x2xcomplex<f64>>
  return
}

func.func @general() {
  %a = stablehlo.constant dense<[[(1.0, 2.0), (2.0, -1.0)], [(0.0, 3.0), (1.0, 0.0)], [(-1.0, 1.0), (2.0, 2.0)]]> : tensor<3x2xcomplex<f64>>
  %lu, %pivots, %good = stablehlo.custom_call @lapack_zgetrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<3x2xcomplex<f64>>) -> (tensor<3x2xcomplex<f64>>, tensor<2xi32>, tensor<i32>)
  check.expect_almost_eq_const %lu, dense<[[(1.0, 2.0), (2.0, -1.0)], [(1.2000000000000002, 0.6000000000000001), (-2.0000000000000004, 0.0)], [(0.2, 0.6000000000000001), (-0.4999999999999999, -0.4999999999999998)]]> : tensor<3x2xcomplex<f64>>
  check.expect_eq_const %pivots, dense<[1, 2]> : tensor<2xi32>
  %qr, %tau = stablehlo.custom_call @lapack_zgeqrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<3x2xcomplex<f64>>) -> (tensor<3x2xcomplex<f64>>, tensor<2xcomplex<f64>>)
  check.expect_almost_eq_const %qr, dense<[[(-4.0, 0.0), (0.0, 3.0)], [(0.20689655172413796, 0.5172413793103449), (2.23606797749979, 0.0)], [(-0.10344827586206896, 0.24137931034482762), (-0.3492363969100414, -0.2772897424437233)]]> : tensor<3x2xcomplex<f64>>
  check.expect_almost_eq_const %tau, dense<[(1.25, 0.5), (1.663109814017179, 0.09252695079309473)]> : tensor<2xcomplex<f64>>
  %q = stablehlo.custom_call @lapack_zungqr_ffi(%qr, %tau) {mhlo.backend_config = {}} : (tensor<3x2xcomplex<f64>>, tensor<2xcomplex<f64>>) -> tensor<3x2xcomplex<f64>>
  check.expect_almost_eq_const %q, dense<[[(-0.25, -0.5), (0.22360679774997894, -0.11180339887498951)], [(0.0, -0.75), (-0.5590169943749473, 0.0)], [(0.25, -0.25000000000000006), (0.5590169943749472, 0.5590169943749473)]]> : tensor<3x2xcomplex<f64>>
  return
}
