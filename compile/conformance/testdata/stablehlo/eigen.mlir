// Eigenvalues and singular values, as JAX calls them on each platform: the values, and what the vectors make
// of them, since their signs are open.
func.func @eigh() {
  %a = stablehlo.constant dense<[[[2.0, 9.0, 9.0], [1.0, 2.0, 9.0], [0.0, 0.0, -4.0]], [[5.0, 9.0, 9.0], [0.0, 5.0, 9.0], [0.0, 0.0, 5.0]]]> : tensor<2x3x3xf32>
  %f:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}} : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xf32>, tensor<2xi32>)
  check.expect_almost_eq_const %f#1, dense<[[-4.0, 1.0, 3.0], [5.0, 5.0, 5.0]]> : tensor<2x3xf32>
  %w = stablehlo.broadcast_in_dim %f#1, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
  %v = stablehlo.multiply %f#0, %w : tensor<2x3x3xf32>
  %b = stablehlo.dot_general %v, %f#0, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  check.expect_almost_eq_const %b, dense<[[[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, -4.0]], [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]]]> : tensor<2x3x3xf32>
  check.expect_eq_const %f#2, dense<0> : tensor<2xi32>
  return
}

func.func @eigh_upper() {
  %a = stablehlo.constant dense<[[3.0e30, 4.0e30], [7.0, -3.0e30]]> : tensor<2x2xf32>
  %f:3 = stablehlo.custom_call @cusolver_syevd_ffi(%a) {mhlo.backend_config = {algorithm = 0 : ui8, lower = false}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<i32>)
  check.expect_close_const %f#1, dense<[-5.0e30, 5.0e30]> {max_ulp_difference = 8 : i64} : tensor<2xf32>
  %g:2 = stablehlo.custom_call @Eigh(%a) {backend_config = "1,1,100,1e-6"} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
  check.expect_close_const %g#1, dense<[-3.0e30, 3.0e30]> {max_ulp_difference = 8 : i64} : tensor<2xf32>
  return
}

// More rows than columns, of which one is a multiple of another, with all of U: its columns are orthogonal.
func.func @svd() {
  %a = stablehlo.constant dense<[[3.0, 6.0], [4.0, 8.0], [0.0, 0.0]]> : tensor<3x2xf64>
  %f:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%a) {mhlo.backend_config = {mode = 65 : ui8}} : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>, tensor<3x3xf64>, tensor<2x2xf64>, tensor<i32>)
  check.expect_almost_eq_const %f#1, dense<[11.180339887498949, 0.0]> : tensor<2xf64>
  %s = stablehlo.broadcast_in_dim %f#1, dims = [0] : (tensor<2xf64>) -> tensor<2x2xf64>
  %v = stablehlo.multiply %s, %f#3 : tensor<2x2xf64>
  %u = stablehlo.slice %f#2 [0:3, 0:2] : (tensor<3x3xf64>) -> tensor<3x2xf64>
  %b = stablehlo.dot_general %u, %v, contracting_dims = [1] x [0] : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
  check.expect_almost_eq %b, %a : tensor<3x2xf64>
  %o = stablehlo.dot_general %f#2, %f#2, contracting_dims = [0] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  check.expect_almost_eq_const %o, dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf64>
  return
}

// More columns than rows: as many vectors as rows, and V itself in place of its transpose.
func.func @svd_wide() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 2.0], [0.0, -3.0, 0.0]]> : tensor<2x3xf32>
  %f:5 = stablehlo.custom_call @cusolver_gesvdj_ffi(%a) {mhlo.backend_config = {compute_uv = true, full_matrices = false}} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<3x2xf32>, tensor<i32>)
  check.expect_almost_eq_const %f#1, dense<[3.0, 2.23606801]> : tensor<2xf32>
  %s = stablehlo.broadcast_in_dim %f#1, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %u = stablehlo.multiply %s, %f#2 : tensor<2x2xf32>
  %b = stablehlo.dot_general %u, %f#3, contracting_dims = [1] x [1] : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  check.expect_almost_eq %b, %a : tensor<2x3xf32>
  return
}

func.func @lu() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 0.0], [2.0, 2.0, 4.0], [4.0, 0.0, 8.0]]> : tensor<3x3xf32>
  %f:3 = stablehlo.custom_call @LuDecomposition(%a) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xi32>, tensor<3xi32>)
  check.expect_eq_const %f#1, dense<[2, 1, 2]> : tensor<3xi32>
  check.expect_eq_const %f#2, dense<[2, 1, 0]> : tensor<3xi32>
  %p = stablehlo.constant dense<[[3, 2], [1, 1]]> : tensor<2x2xi32>
  %q = stablehlo.custom_call @cu_lu_pivots_to_permutation(%p) {mhlo.backend_config = {}} : (tensor<2x2xi32>) -> tensor<2x4xi32>
  check.expect_eq_const %q, dense<[[3, 2, 1, 0], [1, 0, 2, 3]]> : tensor<2x4xi32>
  return
}

// The numbers that Random123 states for Threefry-2x32 with 20 rounds.
func.func @threefry() {
  %k0 = stablehlo.constant dense<[0, 4294967295, 320440878]> : tensor<3xui32>
  %k1 = stablehlo.constant dense<[0, 4294967295, 57701188]> : tensor<3xui32>
  %x0 = stablehlo.constant dense<[0, 4294967295, 608135816]> : tensor<3xui32>
  %x1 = stablehlo.constant dense<[0, 4294967295, 2242054355]> : tensor<3xui32>
  %y:2 = stablehlo.custom_call @cu_threefry2x32_ffi(%k0, %k1, %x0, %x1) : (tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  check.expect_eq_const %y#0, dense<[1797259609, 481924860, 3297917596]> : tensor<3xui32>
  check.expect_eq_const %y#1, dense<[2579123966, 3137350631, 1212020640]> : tensor<3xui32>
  return
}

func.func @ragged() {
  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0x7F800000, 8.0]]> : tensor<4x2xf32>
  %b = stablehlo.constant dense<[[[1.0], [1.0]], [[10.0], [100.0]]]> : tensor<2x2x1xf32>
  %g = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %free = "chlo.ragged_dot"(%a, %b, %g) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2x1xf32>, tensor<2xi32>) -> tensor<4x1xf32>
  check.expect_eq_const %free, dense<[[3.0], [430.0], [650.0], [0.0]]> : tensor<4x1xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<4x1xf32>
  %sum = "chlo.ragged_dot"(%a, %ones, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<4x1xf32>, tensor<2xi32>) -> tensor<2x2x1xf32>
  check.expect_eq_const %sum, dense<[[[1.0], [2.0]], [[8.0], [10.0]]]> : tensor<2x2x1xf32>
  %c = stablehlo.constant dense<[[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [0.0, 1.0]]> : tensor<4x2xf32>
  %batch = "chlo.ragged_dot"(%c, %c, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<2xi32>) -> tensor<4xf32>
  check.expect_eq_const %batch, dense<[2.0, 5.0, 5.0, 1.0]> : tensor<4xf32>
  return
}

func.func @approximate() {
  %x = stablehlo.constant dense<[[1.0, 4.0, 3.0], [6.0, 5.0, 2.0]]> : tensor<2x3xf32>
  %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %y:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %low, %none) {called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  check.expect_eq_const %y#0, dense<[[4.0, 3.0], [6.0, 5.0]]> : tensor<2x2xf32>
  check.expect_eq_const %y#1, dense<[[1, 2], [0, 1]]> : tensor<2x2xi32>
  return
}

func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}

// Rows are exchanged where the diagonal is 0.
func.func @tridiagonal() {
  %low = stablehlo.constant dense<[[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]> : tensor<2x3xf64>
  %diagonal = stablehlo.constant dense<[[0.0, 1.0, 2.0], [1.0, 2.0, 4.0]]> : tensor<2x3xf64>
  %high = stablehlo.constant dense<[[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]> : tensor<2x3xf64>
  %b = stablehlo.constant dense<[[[4.0, 2.0], [6.0, 3.0], [12.0, 5.0]], [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]]> : tensor<2x3x2xf64>
  %f:5 = stablehlo.custom_call @lapack_dgtsv_ffi(%low, %diagonal, %high, %b) {mhlo.backend_config = {}} : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3x2xf64>) -> (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3x2xf64>, tensor<2xi32>)
  check.expect_almost_eq_const %f#3, dense<[[[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]], [[1.0, 2.0], [0.5, 1.0], [0.25, 0.5]]]> : tensor<2x3x2xf64>
  check.expect_eq_const %f#4, dense<0> : tensor<2xi32>
  return
}
