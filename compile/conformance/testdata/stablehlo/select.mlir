// Windows that select by any comparison and combine by any function: of integers, with padding, with NaN.
func.func @integers() {
  %x = stablehlo.constant dense<[[7, 2, 5, 3, 8, 8], [3, 8, 9, 3, 3, 3], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]]> : tensor<4x6xi32>
  %s = stablehlo.constant dense<[[2, 6, 3], [1, 4, 7]]> : tensor<2x3xi32>
  %z = stablehlo.constant dense<1> : tensor<i32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4x6xi32>, tensor<2x3xi32>, tensor<i32>) -> tensor<4x6xi32>
  check.expect_eq_const %r, dense<[[1, 1, 1, 1, 4, 1], [1, 3, 7, 1, 1, 1], [1, 1, 5, 1, 1, 1], [1, 2, 1, 1, 1, 8]]> : tensor<4x6xi32>
  return
}

// The first positive element, and products; windows overlap, and one lies in the padding but for one element.
func.func @functions() {
  %x = stablehlo.constant dense<[-1.0, 2.0, 3.0, -4.0]> : tensor<4xf32>
  %s = stablehlo.constant dense<[5.0, 7.0, 11.0, 13.0, 17.0]> : tensor<5xf32>
  %z = stablehlo.constant dense<2.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.compare GT, %a, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> tensor<4xf32>
  check.expect_eq_const %r, dense<[10.0, 154.0, 26.0, 34.0]> : tensor<4xf32>
  return
}
