// The first numbers of Threefry-2x32 and Philox-4x32 by Random123's known answers.
func.func @threefry() {
  %state = stablehlo.constant dense<0> : tensor<2xui64>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)
  %two = stablehlo.slice %bits [0:2] : (tensor<3xui32>) -> tensor<2xui32>
  check.expect_eq_const %two, dense<[1797259609, 2579123966]> : tensor<2xui32>
  check.expect_eq_const %next, dense<[0, 2]> : tensor<2xui64>
  func.return
}

// -----

func.func @philox() {
  %state = stablehlo.constant dense<0> : tensor<2xui64>
  %next, %bits = "stablehlo.rng_bit_generator"(%state) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui32>)
  check.expect_eq_const %bits, dense<[[1713891541, 3781805453], [3159862348, 2600524760]]> : tensor<2x2xui32>
  func.return
}

// -----

func.func @wide_random() {
  %state = stablehlo.constant dense<0> : tensor<2xui64>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1xui64>)
  check.expect_eq_const %bits, dense<16242730742183356629> : tensor<1xui64>
  func.return
}

// -----

// A comparator that is no list of keys: by the sum of two operands.
func.func @sort_by_sum() {
  %a = stablehlo.constant dense<[3, 1, 2, 0]> : tensor<4xi32>
  %b = stablehlo.constant dense<[0, 5, 1, 9]> : tensor<4xi32>
  %0:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<i32>, %s: tensor<i32>):
    %x = stablehlo.add %p, %r : tensor<i32>
    %y = stablehlo.add %q, %s : tensor<i32>
    %z = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  check.expect_eq_const %0#0, dense<[3, 2, 1, 0]> : tensor<4xi32>
  check.expect_eq_const %0#1, dense<[0, 1, 5, 9]> : tensor<4xi32>
  func.return
}

// -----

func.func @sort_columns() {
  %a = stablehlo.constant dense<[[3, 1], [2, 9], [7, 4]]> : tensor<3x2xi32>
  %b = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %0:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<i32>, %s: tensor<i32>):
    %z = stablehlo.compare GT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) : (tensor<3x2xi32>, tensor<3x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xi32>)
  check.expect_eq_const %0#0, dense<[[7, 9], [3, 4], [2, 1]]> : tensor<3x2xi32>
  check.expect_eq_const %0#1, dense<[[5, 4], [1, 6], [3, 2]]> : tensor<3x2xi32>
  func.return
}

// -----

// Updates of one element one after the other, by a function without a name.
func.func @scatter_function() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %i = stablehlo.constant dense<[[1], [1], [7], [0]]> : tensor<4x1xi32>
  %u = stablehlo.constant dense<[10, 20, 30, 40]> : tensor<4xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %two = stablehlo.constant dense<2> : tensor<i32>
    %d = stablehlo.multiply %a, %two : tensor<i32>
    %e = stablehlo.add %d, %b : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<3xi32>, tensor<4x1xi32>, tensor<4xi32>) -> tensor<3xi32>
  check.expect_eq_const %0, dense<[42, 48, 3]> : tensor<3xi32>
  func.return
}

// -----

// Windows beyond the end: the elements outside are dropped, the others written.
func.func @scatter_window() {
  %x = stablehlo.constant dense<0> : tensor<4x4xi32>
  %i = stablehlo.constant dense<[[3, 1], [-1, 0]]> : tensor<2x2xi64>
  %u = stablehlo.constant dense<[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]> : tensor<2x2x2xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<4x4xi32>, tensor<2x2xi64>, tensor<2x2x2xi32>) -> tensor<4x4xi32>
  check.expect_eq_const %0, dense<[[7, 8, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 2, 0]]> : tensor<4x4xi32>
  func.return
}

// -----

func.func @gather_window() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %i = stablehlo.constant dense<[[0, 0], [1, 2], [9, -4]]> : tensor<3x2xi32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 2>}> : (tensor<3x3xi32>, tensor<3x2xi32>) -> tensor<2x2x3xi32>
  check.expect_eq_const %0, dense<[[[1, 5, 4], [2, 6, 5]], [[4, 8, 7], [5, 9, 8]]]> : tensor<2x2x3xi32>
  func.return
}

// -----

func.func @case() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %i = stablehlo.constant dense<-3> : tensor<i32>
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<2xf32>
  }, {
    %1 = stablehlo.negate %x : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[-1.0, -2.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @if() {
  %x = mhlo.constant dense<[1, 2]> : tensor<2xi4>
  %p = mhlo.constant dense<false> : tensor<i1>
  %0 = "mhlo.if"(%p) ({
    "mhlo.return"(%x) : (tensor<2xi4>) -> ()
  }, {
    %1 = mhlo.add %x, %x : tensor<2xi4>
    "mhlo.return"(%1) : (tensor<2xi4>) -> ()
  }) : (tensor<i1>) -> tensor<2xi4>
  check.expect_eq_const %0, dense<[2, 4]> : tensor<2xi4>
  func.return
}

// -----

func.func @select_and_scatter() {
  %x = stablehlo.constant dense<[[1.0, 5.0], [2.0, 5.0], [3.0, 1.0], [4.0, 4.0]]> : tensor<4x2xf32>
  %s = stablehlo.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4x2xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  check.expect_eq_const %0, dense<[[0.0, 6.0], [5.0, 0.0], [0.0, 0.0], [7.0, 8.0]]> : tensor<4x2xf32>
  func.return
}

// -----

func.func @convolution_reversed() {
  %x = stablehlo.constant dense<[[[1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x4xf32>
  %w = stablehlo.constant dense<[[[1.0, 10.0]]]> : tensor<1x1x2xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[-1, 1]], lhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x4xf32>, tensor<1x1x2xf32>) -> tensor<1x1x6xf32>
  check.expect_eq_const %0, dense<[[[2.0, 20.0, 3.0, 30.0, 4.0, 40.0]]]> : tensor<1x1x6xf32>
  func.return
}

// -----

// In terms of names of dimensions, without spatial ones: a product of matrices.
func.func @convolution_of_points() {
  %x = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %w = stablehlo.constant dense<[[3.0], [4.0]]> : tensor<2x1xf32>
  %0 = "stablehlo.convolution"(%x, %w) {dimension_numbers = #stablehlo.conv<[b, f]x[i, o]->[b, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
  check.expect_eq_const %0, dense<[[11.0]]> : tensor<1x1xf32>
  func.return
}

// -----

func.func @bitcast_sizes() {
  %x = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2x4xui8>
  check.expect_eq_const %0, dense<[[0, 0, 128, 63], [0, 0, 0, 192]]> : tensor<2x4xui8>
  %1 = stablehlo.bitcast_convert %0 : (tensor<2x4xui8>) -> tensor<2xf32>
  check.expect_eq %1, %x : tensor<2xf32>
  func.return
}

// -----

func.func @total_order() {
  %a = stablehlo.constant dense<[-0.0, 0.0, 0x7FC00000, -1.0]> : tensor<4xf32>
  %b = stablehlo.constant dense<[0.0, -0.0, 0x7F800000, -2.0]> : tensor<4xf32>
  %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %0, dense<[true, false, false, false]> : tensor<4xi1>
  func.return
}

// -----

// To five bits of exponent and three of mantissa: halves to even, overflow to
// infinity, and what is below the least normal number to zero.
func.func @reduce_precision() {
  %x = stablehlo.constant dense<[1.0625, 1.1875, 70000.0, 1.0e-6, -1.3, 0x7FC00000]> : tensor<6xf32>
  %0 = stablehlo.reduce_precision %x, format = e5m3 : tensor<6xf32>
  check.expect_eq_const %0, dense<[1.0, 1.25, 0x7F800000, 0.0, -1.25, 0x7FC00000]> : tensor<6xf32>
  func.return
}

// -----

func.func @chlo() {
  %x = stablehlo.constant dense<[0.5, -0.25]> : tensor<2xf64>
  %two = stablehlo.constant dense<2.5> : tensor<f64>
  %0 = chlo.sinh %x : tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %0, dense<[0.521095305, -0.252612317]> : tensor<2xf64>
  %1 = chlo.acos %x : tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %1, dense<[1.047197551, 1.823476582]> : tensor<2xf64>
  %2 = chlo.lgamma %two : tensor<f64> -> tensor<f64>
  check.expect_almost_eq_const %2, dense<0.284682870> : tensor<f64>
  %3 = chlo.digamma %two : tensor<f64> -> tensor<f64>
  check.expect_almost_eq_const %3, dense<0.703156640> : tensor<f64>
  %4 = chlo.broadcast_add %x, %two : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
  check.expect_eq_const %4, dense<[3.0, 2.25]> : tensor<2xf64>
  %5:2 = chlo.top_k(%x, k = 1) : tensor<2xf64> -> (tensor<1xf64>, tensor<1xi32>)
  check.expect_eq_const %5#1, dense<0> : tensor<1xi32>
  func.return
}

// -----

func.func @reduce_function() {
  %x = stablehlo.constant dense<[[1, 2, 3], [6, 5, 4]]> : tensor<2x3xi32>
  %y = stablehlo.constant dense<[[6, 5, 4], [1, 2, 3]]> : tensor<2x3xi32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %one), (%y init: %zero) across dimensions = [1] : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>)
   reducer(%a: tensor<i32>, %c: tensor<i32>) (%b: tensor<i32>, %d: tensor<i32>) {
    %p = stablehlo.multiply %a, %c : tensor<i32>
    %q = stablehlo.add %b, %d : tensor<i32>
    stablehlo.return %p, %q : tensor<i32>, tensor<i32>
  }
  check.expect_eq_const %0#0, dense<[6, 120]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[15, 6]> : tensor<2xi32>
  func.return
}

// -----

func.func @reduce_window_function() {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %two = stablehlo.constant dense<2> : tensor<i32>
    %c = stablehlo.multiply %a, %two : tensor<i32>
    %d = stablehlo.add %c, %b : tensor<i32>
    stablehlo.return %d : tensor<i32>
  }) : (tensor<4xi32>, tensor<i32>) -> tensor<3xi32>
  check.expect_eq_const %0, dense<[1, 7, 8]> : tensor<3xi32>
  func.return
}

// -----

func.func @batch_norm_grad() {
  %x = stablehlo.constant dense<[[1.0], [3.0]]> : tensor<2x1xf32>
  %s = stablehlo.constant dense<2.0> : tensor<1xf32>
  %m = stablehlo.constant dense<2.0> : tensor<1xf32>
  %v = stablehlo.constant dense<1.0> : tensor<1xf32>
  %dy = stablehlo.constant dense<[[1.0], [0.0]]> : tensor<2x1xf32>
  %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %dy) {epsilon = 0.0 : f32, feature_index = 1 : i64} : (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)
  check.expect_almost_eq_const %0#0, dense<0.0> : tensor<2x1xf32>
  check.expect_almost_eq_const %0#1, dense<-1.0> : tensor<1xf32>
  check.expect_almost_eq_const %0#2, dense<1.0> : tensor<1xf32>
  func.return
}

// -----

func.func @mixed_product() {
  %a = stablehlo.constant dense<[[1, -2]]> : tensor<1x2xi8>
  %b = stablehlo.constant dense<[[100], [100]]> : tensor<2x1xi8>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x2xi8>, tensor<2x1xi8>) -> tensor<1x1xi32>
  check.expect_eq_const %0, dense<-100> : tensor<1x1xi32>
  func.return
}

// -----

func.func @pad_cuts() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %z = stablehlo.constant dense<9> : tensor<i32>
  %0 = stablehlo.pad %x, %z, low = [-1], high = [2], interior = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<6xi32>
  check.expect_eq_const %0, dense<[9, 2, 9, 3, 9, 9]> : tensor<6xi32>
  func.return
}
