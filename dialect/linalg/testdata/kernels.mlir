#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#CSC = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed) }>
#CSF = #sparse_tensor.encoding<{ map = (d0, d1, d2) -> (d0 : compressed, d1 : compressed, d2 : compressed), posWidth = 32, crdWidth = 32 }>
#matvec = {
  indexing_maps = [
    affine_map<(i,j) -> (i,j)>, // A
    affine_map<(i,j) -> (j)>,   // b
    affine_map<(i,j) -> (i)>    // x (out)
  ],
  iterator_types = ["parallel", "reduction"],
  doc = "x(i) += A(i,j) * b(j)"
}
#sampled = {
  indexing_maps = [affine_map<(i,j,k) -> (i,j)>, affine_map<(i,j,k) -> (i,k)>, affine_map<(i,j,k) -> (k,j)>, affine_map<(i,j,k) -> (i,j)>],
  iterator_types = ["parallel", "parallel", "reduction"]
}
module {
  func.func @matvec(%A: tensor<?x?xf64, #CSR>, %b: tensor<?xf64>, %x: tensor<?xf64>) -> tensor<?xf64> {
    %0 = linalg.generic #matvec ins(%A, %b: tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%x: tensor<?xf64>) {
      ^bb(%a: f64, %v: f64, %o: f64):
        %1 = arith.mulf %a, %v : f64
        %2 = arith.addf %o, %1 : f64
        linalg.yield %2 : f64
    } -> tensor<?xf64>
    return %0 : tensor<?xf64>
  }
  func.func @matmul(%a: tensor<4x6xf32>, %b: tensor<6x3xf32>) -> tensor<4x3xf32> {
    %s = sparse_tensor.convert %a : tensor<4x6xf32> to tensor<4x6xf32, #CSR>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x3xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
    %y = linalg.matmul ins(%s, %b : tensor<4x6xf32, #CSR>, tensor<6x3xf32>) outs(%z : tensor<4x3xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
  func.func @sampled(%a: tensor<4x6xf32>, %q: tensor<4x5xf32>, %k: tensor<5x6xf32>) -> tensor<4x6xf32> {
    %s = sparse_tensor.convert %a : tensor<4x6xf32> to tensor<4x6xf32, #CSR>
    %e = tensor.empty() : tensor<4x6xf32, #CSR>
    %p = linalg.generic #sampled ins(%s, %q, %k : tensor<4x6xf32, #CSR>, tensor<4x5xf32>, tensor<5x6xf32>) outs(%e : tensor<4x6xf32, #CSR>) {
      ^bb0(%x: f32, %u: f32, %v: f32, %o: f32):
        %0 = arith.mulf %u, %v : f32
        %1 = arith.mulf %x, %0 : f32
        %2 = arith.addf %o, %1 : f32
        linalg.yield %2 : f32
    } -> tensor<4x6xf32, #CSR>
    %y = sparse_tensor.convert %p : tensor<4x6xf32, #CSR> to tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
  func.func @dense_sampled(%a: tensor<4x6xf32>, %q: tensor<4x5xf32>, %k: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %s = sparse_tensor.convert %a : tensor<4x6xf32> to tensor<4x6xf32, #CSR>
    %z = arith.constant dense<0.0> : tensor<4x6xf32>
    %y = linalg.generic #sampled ins(%s, %q, %k : tensor<4x6xf32, #CSR>, tensor<4x5xf32>, tensor<5x6xf32>) outs(%z : tensor<4x6xf32>) {
      ^bb0(%x: f32, %u: f32, %v: f32, %o: f32):
        %0 = arith.mulf %x, %u : f32
        %1 = arith.mulf %0, %v : f32
        %2 = arith.addf %o, %1 : f32
        linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    %w = linalg.generic #sampled ins(%s, %q, %k : tensor<4x6xf32, #CSR>, tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) {
      ^bb0(%x: f32, %u: f32, %v: f32, %o: f32):
        %0 = arith.mulf %x, %u : f32
        %1 = arith.mulf %0, %v : f32
        %2 = arith.addf %o, %1 : f32
        linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    bufferization.dealloc_tensor %s : tensor<4x6xf32, #CSR>
    return %y, %w : tensor<4x6xf32>, tensor<4x6xf32>
  }
  func.func @mttkrp(%a: tensor<2x3x4xf32>, %b: tensor<3x5xf32>, %c: tensor<4x5xf32>, %init: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %s = sparse_tensor.convert %a : tensor<2x3x4xf32> to tensor<2x3x4xf32, #CSF>
    %y = linalg.generic {
      indexing_maps = [affine_map<(i,j,k,l) -> (i,k,l)>, affine_map<(i,j,k,l) -> (k,j)>, affine_map<(i,j,k,l) -> (l,j)>, affine_map<(i,j,k,l) -> (i,j)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]
    } ins(%s, %b, %c : tensor<2x3x4xf32, #CSF>, tensor<3x5xf32>, tensor<4x5xf32>) outs(%init : tensor<2x5xf32>) {
      ^bb0(%x: f32, %u: f32, %v: f32, %o: f32):
        %0 = arith.mulf %x, %u : f32
        %1 = arith.mulf %v, %0 : f32
        %2 = arith.addf %1, %o : f32
        linalg.yield %2 : f32
    } -> tensor<2x5xf32>
    return %y : tensor<2x5xf32>
  }
  func.func @each(%a: tensor<4x6xf32>, %a1: tensor<4x6xf32>, %d: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>) {
    %s = sparse_tensor.convert %a : tensor<4x6xf32> to tensor<4x6xf32, #CSR>
    %t = sparse_tensor.convert %a1 : tensor<4x6xf32> to tensor<4x6xf32, #CSR>
    %e = tensor.empty() : tensor<4x6xf32, #CSR>
    %two = arith.constant 2.0 : f32
    %u = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%s, %t, %d : tensor<4x6xf32, #CSR>, tensor<4x6xf32, #CSR>, tensor<6xf32>) outs(%e : tensor<4x6xf32, #CSR>) {
      ^bb0(%x: f32, %y: f32, %v: f32, %o: f32):
        %0 = sparse_tensor.unary %x : f32 to f32 present={
          ^bb0(%r: f32):
            %n = arith.negf %r : f32
            sparse_tensor.yield %n : f32
        } absent={}
        %1 = arith.addf %0, %y : f32
        %2 = arith.mulf %1, %two : f32
        %3 = arith.mulf %2, %v : f32
        linalg.yield %3 : f32
    } -> tensor<4x6xf32, #CSR>
    %1 = sparse_tensor.convert %u : tensor<4x6xf32, #CSR> to tensor<4x6xf32>
    %et = tensor.empty() : tensor<6x4xf32, #CSR>
    %tr = linalg.transpose ins(%u : tensor<4x6xf32, #CSR>) outs(%et : tensor<6x4xf32, #CSR>) permutation = [1, 0]
    %2 = sparse_tensor.convert %tr : tensor<6x4xf32, #CSR> to tensor<6x4xf32>
    return %1, %2 : tensor<4x6xf32>, tensor<6x4xf32>
  }
  func.func @reduced(%a: tensor<4x6xf32>) -> (tensor<f32>, tensor<6xf32>) {
    %s = sparse_tensor.convert %a : tensor<4x6xf32> to tensor<4x6xf32, #CSC>
    %c = arith.constant dense<0.0> : tensor<f32>
    %y = linalg.generic {
      indexing_maps = [affine_map<(i,j) -> (i,j)>, affine_map<(i,j) -> ()>], iterator_types = ["reduction", "reduction"]
    } ins(%s : tensor<4x6xf32, #CSC>) outs(%c : tensor<f32>) {
      ^bb0(%x: f32, %o: f32):
        %0 = arith.addf %o, %x : f32
        linalg.yield %0 : f32
    } -> tensor<f32>
    %low = arith.constant dense<-10.0> : tensor<6xf32>
    %z = linalg.generic {
      indexing_maps = [affine_map<(i,j) -> (j,i)>, affine_map<(i,j) -> (i)>], iterator_types = ["parallel", "reduction"]
    } ins(%a : tensor<4x6xf32>) outs(%low : tensor<6xf32>) {
      ^bb0(%x: f32, %o: f32):
        %0 = arith.maximumf %o, %x : f32
        linalg.yield %0 : f32
    } -> tensor<6xf32>
    return %y, %z : tensor<f32>, tensor<6xf32>
  }
  func.func @print(%a: tensor<4x6xf32, #CSR>) {
    sparse_tensor.print %a : tensor<4x6xf32, #CSR>
    return
  }
}
