module @matmul {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<16x2xi32>, %arg2: tensor<6x4xf32>) -> (tensor<8x4xf32>) {
    %c = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.add %c, %2 : tensor<2xi32>
    %4 = stablehlo.select %1, %3, %c : tensor<2xi1>, tensor<2xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %6 = "stablehlo.gather"(%arg1, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 16, 1>}> : (tensor<16x2xi32>, tensor<2x1xi32>) -> tensor<16x2xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %8 = stablehlo.slice %6 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %9 = stablehlo.reshape %8 : (tensor<16x1xi32>) -> tensor<16xi32>
    %10 = stablehlo.slice %6 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %11 = stablehlo.reshape %10 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %13 = stablehlo.compare LT, %9, %12, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_3 = stablehlo.constant dense<6> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %15 = stablehlo.add %9, %14 : tensor<16xi32>
    %16 = stablehlo.select %13, %15, %9 : tensor<16xi1>, tensor<16xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_4 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %18 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %19 = stablehlo.compare GE, %17, %18, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %20 = stablehlo.broadcast_in_dim %c_4, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %22 = stablehlo.compare LE, %17, %21, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %23 = stablehlo.and %19, %22 : tensor<16x1xi1>
    %c_6 = stablehlo.constant dense<true> : tensor<i1>
    %24 = stablehlo.reduce(%23 init: %c_6) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %25 = "stablehlo.gather"(%arg2, %17) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
    %26 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<16xi1>) -> tensor<16x4xi1>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %28 = stablehlo.select %26, %25, %27 : tensor<16x4xi1>, tensor<16x4xf32>
    %29 = stablehlo.dot_general %arg0, %28, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %31 = stablehlo.compare LT, %11, %30, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_9 = stablehlo.constant dense<8> : tensor<i32>
    %32 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %33 = stablehlo.add %11, %32 : tensor<16xi32>
    %34 = stablehlo.select %31, %33, %11 : tensor<16xi1>, tensor<16xi32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %36 = "stablehlo.scatter"(%7, %35, %29) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %37 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %37 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    return %36 : tensor<8x4xf32>
  }
}
// -----
module @add {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<16x2xi32>, %arg2: tensor<16xf32>, %arg3: tensor<16x2xi32>) -> (tensor<8x6xf32>) {
    %0 = stablehlo.concatenate %arg1, %arg3, dim = 0 : (tensor<16x2xi32>, tensor<16x2xi32>) -> tensor<32x2xi32>
    %1 = stablehlo.concatenate %arg0, %arg2, dim = 0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
    %2 = stablehlo.slice %0 [0:32, 0:1] : (tensor<32x2xi32>) -> tensor<32x1xi32>
    %3 = stablehlo.reshape %2 : (tensor<32x1xi32>) -> tensor<32xi32>
    %4 = stablehlo.slice %0 [0:32, 1:2] : (tensor<32x2xi32>) -> tensor<32x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<32x1xi32>) -> tensor<32xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %8 = stablehlo.compare LT, %3, %7, SIGNED : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %c_0 = stablehlo.constant dense<8> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %10 = stablehlo.add %3, %9 : tensor<32xi32>
    %11 = stablehlo.select %8, %10, %3 : tensor<32xi1>, tensor<32xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %13 = stablehlo.compare LT, %5, %12, SIGNED : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %c_2 = stablehlo.constant dense<6> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %15 = stablehlo.add %5, %14 : tensor<32xi32>
    %16 = stablehlo.select %13, %15, %5 : tensor<32xi1>, tensor<32xi32>
    %17 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
    %19 = stablehlo.concatenate %17, %18, dim = 1 : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x2xi32>
    %20 = "stablehlo.scatter"(%6, %19, %1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %21 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %21 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<32x2xi32>, tensor<32xf32>) -> tensor<8x6xf32>
    return %20 : tensor<8x6xf32>
  }
}
// -----
module @todense {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<16x2xi32>) -> (tensor<8x6xf32>) {
    %0 = stablehlo.slice %arg1 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %1 = stablehlo.reshape %0 : (tensor<16x1xi32>) -> tensor<16xi32>
    %2 = stablehlo.slice %arg1 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %3 = stablehlo.reshape %2 : (tensor<16x1xi32>) -> tensor<16xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %6 = stablehlo.compare LT, %1, %5, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_0 = stablehlo.constant dense<8> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %8 = stablehlo.add %1, %7 : tensor<16xi32>
    %9 = stablehlo.select %6, %8, %1 : tensor<16xi1>, tensor<16xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %11 = stablehlo.compare LT, %3, %10, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_2 = stablehlo.constant dense<6> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %13 = stablehlo.add %3, %12 : tensor<16xi32>
    %14 = stablehlo.select %11, %13, %3 : tensor<16xi1>, tensor<16xi32>
    %15 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %16 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %17 = stablehlo.concatenate %15, %16, dim = 1 : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x2xi32>
    %18 = "stablehlo.scatter"(%4, %17, %arg0) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %19 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %19 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<16x2xi32>, tensor<16xf32>) -> tensor<8x6xf32>
    return %18 : tensor<8x6xf32>
  }
}
// -----
module @sample {
  func.func public @main(%arg0: tensor<16x2xi32>, %arg1: tensor<8x5xf32>, %arg2: tensor<6x5xf32>) -> (tensor<16xf32>) {
    %0 = stablehlo.slice %arg0 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %1 = stablehlo.reshape %0 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %3 = stablehlo.compare LT, %1, %2, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_0 = stablehlo.constant dense<8> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %5 = stablehlo.add %1, %4 : tensor<16xi32>
    %6 = stablehlo.select %3, %5, %1 : tensor<16xi1>, tensor<16xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_1 = stablehlo.constant dense<7> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %9 = stablehlo.compare GE, %7, %8, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %10 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %12 = stablehlo.compare LE, %7, %11, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %13 = stablehlo.and %9, %12 : tensor<16x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %14 = stablehlo.reduce(%13 init: %c_3) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %15 = "stablehlo.gather"(%arg1, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<8x5xf32>, tensor<16x1xi32>) -> tensor<16x5xf32>
    %16 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<16xi1>) -> tensor<16x5xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x5xf32>
    %18 = stablehlo.select %16, %15, %17 : tensor<16x5xi1>, tensor<16x5xf32>
    %19 = stablehlo.slice %arg0 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %20 = stablehlo.reshape %19 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %22 = stablehlo.compare LT, %20, %21, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_5 = stablehlo.constant dense<6> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %24 = stablehlo.add %20, %23 : tensor<16xi32>
    %25 = stablehlo.select %22, %24, %20 : tensor<16xi1>, tensor<16xi32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_6 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %28 = stablehlo.compare GE, %26, %27, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %29 = stablehlo.broadcast_in_dim %c_6, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %31 = stablehlo.compare LE, %26, %30, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %32 = stablehlo.and %28, %31 : tensor<16x1xi1>
    %c_8 = stablehlo.constant dense<true> : tensor<i1>
    %33 = stablehlo.reduce(%32 init: %c_8) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %34 = "stablehlo.gather"(%arg2, %26) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<6x5xf32>, tensor<16x1xi32>) -> tensor<16x5xf32>
    %35 = stablehlo.broadcast_in_dim %33, dims = [0] : (tensor<16xi1>) -> tensor<16x5xi1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x5xf32>
    %37 = stablehlo.select %35, %34, %36 : tensor<16x5xi1>, tensor<16x5xf32>
    %38 = stablehlo.dot_general %18, %37, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x5xf32>, tensor<16x5xf32>) -> tensor<16xf32>
    return %38 : tensor<16xf32>
  }
}
// -----
module @grad {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<16x2xi32>, %arg2: tensor<6x4xf32>) -> (tensor<16xf32>, tensor<6x4xf32>) {
    %c = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.add %c, %2 : tensor<2xi32>
    %4 = stablehlo.select %1, %3, %c : tensor<2xi1>, tensor<2xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %6 = "stablehlo.gather"(%arg1, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 16, 1>}> : (tensor<16x2xi32>, tensor<2x1xi32>) -> tensor<16x2xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %8 = stablehlo.slice %6 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %9 = stablehlo.reshape %8 : (tensor<16x1xi32>) -> tensor<16xi32>
    %10 = stablehlo.slice %6 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %11 = stablehlo.reshape %10 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %13 = stablehlo.compare LT, %9, %12, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_3 = stablehlo.constant dense<6> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %15 = stablehlo.add %9, %14 : tensor<16xi32>
    %16 = stablehlo.select %13, %15, %9 : tensor<16xi1>, tensor<16xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_4 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %18 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %19 = stablehlo.compare GE, %17, %18, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %20 = stablehlo.broadcast_in_dim %c_4, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %22 = stablehlo.compare LE, %17, %21, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %23 = stablehlo.and %19, %22 : tensor<16x1xi1>
    %c_6 = stablehlo.constant dense<true> : tensor<i1>
    %24 = stablehlo.reduce(%23 init: %c_6) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %25 = "stablehlo.gather"(%arg2, %17) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
    %26 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<16xi1>) -> tensor<16x4xi1>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %28 = stablehlo.select %26, %25, %27 : tensor<16x4xi1>, tensor<16x4xf32>
    %29 = stablehlo.dot_general %arg0, %28, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %31 = stablehlo.compare LT, %11, %30, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_9 = stablehlo.constant dense<8> : tensor<i32>
    %32 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %33 = stablehlo.add %11, %32 : tensor<16xi32>
    %34 = stablehlo.select %31, %33, %11 : tensor<16xi1>, tensor<16xi32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %36 = "stablehlo.scatter"(%7, %35, %29) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %117 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %117 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %cst_10 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %38 = stablehlo.multiply %37, %36 : tensor<8x4xf32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %40 = stablehlo.multiply %39, %38 : tensor<8x4xf32>
    %c_12 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %41 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %42 = stablehlo.compare LT, %c_12, %41, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_14 = stablehlo.constant dense<2> : tensor<i32>
    %43 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %44 = stablehlo.add %c_12, %43 : tensor<2xi32>
    %45 = stablehlo.select %42, %44, %c_12 : tensor<2xi1>, tensor<2xi32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %47 = "stablehlo.gather"(%arg1, %46) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 16, 1>}> : (tensor<16x2xi32>, tensor<2x1xi32>) -> tensor<16x2xi32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %49 = stablehlo.slice %47 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %50 = stablehlo.reshape %49 : (tensor<16x1xi32>) -> tensor<16xi32>
    %51 = stablehlo.slice %47 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %52 = stablehlo.reshape %51 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %53 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %54 = stablehlo.compare LT, %50, %53, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_17 = stablehlo.constant dense<8> : tensor<i32>
    %55 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %56 = stablehlo.add %50, %55 : tensor<16xi32>
    %57 = stablehlo.select %54, %56, %50 : tensor<16xi1>, tensor<16xi32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_18 = stablehlo.constant dense<7> : tensor<1xi32>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %59 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %60 = stablehlo.compare GE, %58, %59, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %61 = stablehlo.broadcast_in_dim %c_18, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %63 = stablehlo.compare LE, %58, %62, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %64 = stablehlo.and %60, %63 : tensor<16x1xi1>
    %c_20 = stablehlo.constant dense<true> : tensor<i1>
    %65 = stablehlo.reduce(%64 init: %c_20) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %66 = "stablehlo.gather"(%40, %58) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
    %67 = stablehlo.broadcast_in_dim %65, dims = [0] : (tensor<16xi1>) -> tensor<16x4xi1>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %69 = stablehlo.select %67, %66, %68 : tensor<16x4xi1>, tensor<16x4xf32>
    %70 = stablehlo.dot_general %arg0, %69, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %71 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %72 = stablehlo.compare LT, %52, %71, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_23 = stablehlo.constant dense<6> : tensor<i32>
    %73 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %74 = stablehlo.add %52, %73 : tensor<16xi32>
    %75 = stablehlo.select %72, %74, %52 : tensor<16xi1>, tensor<16xi32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %77 = "stablehlo.scatter"(%48, %76, %70) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %117 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %117 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<6x4xf32>
    %78 = stablehlo.slice %arg1 [0:16, 0:1] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %79 = stablehlo.reshape %78 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %80 = stablehlo.broadcast_in_dim %c_24, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %81 = stablehlo.compare LT, %79, %80, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_25 = stablehlo.constant dense<8> : tensor<i32>
    %82 = stablehlo.broadcast_in_dim %c_25, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %83 = stablehlo.add %79, %82 : tensor<16xi32>
    %84 = stablehlo.select %81, %83, %79 : tensor<16xi1>, tensor<16xi32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_26 = stablehlo.constant dense<7> : tensor<1xi32>
    %c_27 = stablehlo.constant dense<0> : tensor<i32>
    %86 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %87 = stablehlo.compare GE, %85, %86, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %88 = stablehlo.broadcast_in_dim %c_26, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %90 = stablehlo.compare LE, %85, %89, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %91 = stablehlo.and %87, %90 : tensor<16x1xi1>
    %c_28 = stablehlo.constant dense<true> : tensor<i1>
    %92 = stablehlo.reduce(%91 init: %c_28) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %93 = "stablehlo.gather"(%40, %85) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
    %94 = stablehlo.broadcast_in_dim %92, dims = [0] : (tensor<16xi1>) -> tensor<16x4xi1>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %96 = stablehlo.select %94, %93, %95 : tensor<16x4xi1>, tensor<16x4xf32>
    %97 = stablehlo.slice %arg1 [0:16, 1:2] : (tensor<16x2xi32>) -> tensor<16x1xi32>
    %98 = stablehlo.reshape %97 : (tensor<16x1xi32>) -> tensor<16xi32>
    %c_30 = stablehlo.constant dense<0> : tensor<i32>
    %99 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %100 = stablehlo.compare LT, %98, %99, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_31 = stablehlo.constant dense<6> : tensor<i32>
    %101 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %102 = stablehlo.add %98, %101 : tensor<16xi32>
    %103 = stablehlo.select %100, %102, %98 : tensor<16xi1>, tensor<16xi32>
    %104 = stablehlo.broadcast_in_dim %103, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %c_32 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_33 = stablehlo.constant dense<0> : tensor<i32>
    %105 = stablehlo.broadcast_in_dim %c_33, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %106 = stablehlo.compare GE, %104, %105, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %107 = stablehlo.broadcast_in_dim %c_32, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %108 = stablehlo.broadcast_in_dim %107, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<16x1xi32>
    %109 = stablehlo.compare LE, %104, %108, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %110 = stablehlo.and %106, %109 : tensor<16x1xi1>
    %c_34 = stablehlo.constant dense<true> : tensor<i1>
    %111 = stablehlo.reduce(%110 init: %c_34) applies stablehlo.and across dimensions = [1] : (tensor<16x1xi1>, tensor<i1>) -> tensor<16xi1>
    %112 = "stablehlo.gather"(%arg2, %104) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
    %113 = stablehlo.broadcast_in_dim %111, dims = [0] : (tensor<16xi1>) -> tensor<16x4xi1>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %114 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %115 = stablehlo.select %113, %112, %114 : tensor<16x4xi1>, tensor<16x4xf32>
    %116 = stablehlo.dot_general %96, %115, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16xf32>
    return %116, %77 : tensor<16xf32>, tensor<6x4xf32>
  }
}
