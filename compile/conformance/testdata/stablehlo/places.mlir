// Programs that compare to the last place: sums are rounded after each number, in order. 2048 + 1 is 2048 in f16.
func.func @scatter() {
  %x = stablehlo.constant dense<[0.0, 5.0]> : tensor<2xf16>
  %i = stablehlo.constant dense<0> : tensor<3x1xi32>
  %u = stablehlo.constant dense<[2048.0, 1.0, 1.0]> : tensor<3xf16>
  %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    %0 = stablehlo.add %a, %b : tensor<f16>
    stablehlo.return %0 : tensor<f16>
  }) : (tensor<2xf16>, tensor<3x1xi32>, tensor<3xf16>) -> tensor<2xf16>
  check.expect_close_const %y, dense<[2048.0, 5.0]> {max_ulp_difference = 0 : i64} : tensor<2xf16>
  return
}

// The channels of the first layout come first, the positions of the second.
func.func @convolution() {
  %x = stablehlo.constant dense<[[[2048.0, 1.0], [1.0, -2048.0]]]> : tensor<1x2x2xf16>
  %w = stablehlo.constant dense<1.0> : tensor<1x2x2xf16>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2xf16>, tensor<1x2x2xf16>) -> tensor<1x1x1xf16>
  check.expect_close_const %y, dense<0.0> {max_ulp_difference = 0 : i64} : tensor<1x1x1xf16>
  %v = stablehlo.constant dense<1.0> : tensor<2x2x1xf16>
  %z = stablehlo.constant dense<[[[2048.0, -2048.0], [1.0, 1.0]]]> : tensor<1x2x2xf16>
  %a = stablehlo.convolution(%z, %v) dim_numbers = [b, f, 0]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2xf16>, tensor<2x2x1xf16>) -> tensor<1x1x1xf16>
  check.expect_close_const %a, dense<2.0> {max_ulp_difference = 0 : i64} : tensor<1x1x1xf16>
  %b = stablehlo.convolution(%z, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2xf16>, tensor<2x2x1xf16>) -> tensor<1x1x1xf16>
  check.expect_close_const %b, dense<2.0> {max_ulp_difference = 0 : i64} : tensor<1x1x1xf16>
  return
}

// Dilated, padded and strided, with two groups of channels.
func.func @convolution_forms() {
  %x = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %w = stablehlo.constant dense<[[[1.0, 10.0]], [[100.0, 1000.0]]]> : tensor<2x1x2xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[1, 0]], lhs_dilate = [2], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  check.expect_close_const %y, dense<0.0> : tensor<1x2x2xf32>
  %z = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[2, -1]], lhs_dilate = [2], rhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  check.expect_close_const %z, dense<[[[1.0, 12.0], [400.0, 4500.0]]]> : tensor<1x2x2xf32>
  return
}

func.func @select_and_scatter() {
  %x = stablehlo.constant dense<[1.0, 9.0, 1.0]> : tensor<3xf32>
  %s = stablehlo.constant dense<[1.0e8, 1.0]> : tensor<2xf32>
  %zero = stablehlo.constant dense<1.0> : tensor<f32>
  %y = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<3xf32>, tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
  check.expect_close_const %y, dense<[1.0, 1.0e8, 1.0]> {max_ulp_difference = 0 : i64} : tensor<3xf32>
  return
}

func.func @tuples() {
  %a = stablehlo.constant dense<3> : tensor<i64>
  %b = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %inner = stablehlo.tuple %a : tuple<tensor<i64>>
  %t = stablehlo.tuple %b, %inner : tuple<tensor<2xf32>, tuple<tensor<i64>>>
  %x = stablehlo.get_tuple_element %t[0] : (tuple<tensor<2xf32>, tuple<tensor<i64>>>) -> tensor<2xf32>
  %u = "stablehlo.get_tuple_element"(%t) <{index = 1 : i32}> : (tuple<tensor<2xf32>, tuple<tensor<i64>>>) -> tuple<tensor<i64>>
  %y = stablehlo.get_tuple_element %u[0] : (tuple<tensor<i64>>) -> tensor<i64>
  check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_eq_const %y, dense<3> : tensor<i64>
  return
}

func.func @bits() {
  %a = stablehlo.constant dense<[[true, false, true, true, false, false, false, true]]> : tensor<1x8xi1>
  %b = stablehlo.bitcast_convert %a : (tensor<1x8xi1>) -> tensor<1xui8>
  check.expect_eq_const %b, dense<141> : tensor<1xui8>
  %c = stablehlo.bitcast_convert %b : (tensor<1xui8>) -> tensor<1x8xi1>
  check.expect_eq %c, %a : tensor<1x8xi1>
  %p = stablehlo.constant dense<[-3, 9223372036854775807, -9223372036854775808]> : tensor<3xi64>
  %q = stablehlo.constant dense<[5, 9223372036854775807, -1]> : tensor<3xi64>
  %h = "chlo.mulhi"(%p, %q) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %h, dense<[-1, 4611686018427387903, 0]> : tensor<3xi64>
  %r = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %i = "chlo.mulhi"(%r, %r) : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
  check.expect_eq_const %i, dense<[18446744073709551614, 1]> : tensor<2xui64>
  %s = stablehlo.constant dense<[-128, 64]> : tensor<2xi8>
  %j = "chlo.mulhi"(%s, %s) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  check.expect_eq_const %j, dense<[64, 16]> : tensor<2xi8>
  %t = stablehlo.constant dense<[false, true, true]> : tensor<3xi1>
  %k:2 = chlo.top_k(%t, k = 2) : tensor<3xi1> -> (tensor<2xi1>, tensor<2xi32>)
  check.expect_eq_const %k#0, dense<true> : tensor<2xi1>
  check.expect_eq_const %k#1, dense<[1, 2]> : tensor<2xi32>
  return
}

// A running sum of each row from its end, and the last sums; the second one counts.
func.func @scan() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %y:3 = chlo.scan(%x) inits(%zero, %zero) dimension=1 attributes {is_reverse = true} {
  ^bb0(%v: tensor<2xi32>, %sum: tensor<2xi32>, %n: tensor<2xi32>):
    %one = stablehlo.constant dense<1> : tensor<2xi32>
    %0 = stablehlo.add %v, %sum : tensor<2xi32>
    %1 = stablehlo.add %n, %one : tensor<2xi32>
    stablehlo.return %0, %0, %1 : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  } : (tensor<2x3xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %y#0, dense<[[6, 5, 3], [15, 11, 6]]> : tensor<2x3xi32>
  check.expect_eq_const %y#1, dense<[6, 15]> : tensor<2xi32>
  check.expect_eq_const %y#2, dense<3> : tensor<2xi32>
  return
}
