#SV = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
#DCSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed, d1 : compressed) }>
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#v1 = { indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"] }
#v2 = { indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"] }
#m1 = { indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"] }
#m2 = { indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"] }
#m3 = { indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"] }
#rows = { indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"] }
module {
  func.func @least(%a: tensor<12xi32, #SV>, %b: tensor<12xi32, #SV>) -> tensor<12xi32, #SV> {
    %e = tensor.empty() : tensor<12xi32, #SV>
    %0 = linalg.generic #v2 ins(%a, %b : tensor<12xi32, #SV>, tensor<12xi32, #SV>) outs(%e : tensor<12xi32, #SV>) {
      ^bb(%x: i32, %y: i32, %o: i32):
        %1 = sparse_tensor.binary %x, %y : i32, i32 to i32
          overlap={
            ^bb0(%u: i32, %v: i32):
              %2 = arith.minsi %u, %v : i32
              sparse_tensor.yield %2 : i32
          }
          left=identity
          right=identity
        linalg.yield %1 : i32
    } -> tensor<12xi32, #SV>
    return %0 : tensor<12xi32, #SV>
  }
  func.func @without(%a: tensor<12xf64, #SV>, %b: tensor<12xf64, #SV>) -> tensor<12xf64, #SV> {
    %e = tensor.empty() : tensor<12xf64, #SV>
    %0 = linalg.generic #v2 ins(%a, %b : tensor<12xf64, #SV>, tensor<12xf64, #SV>) outs(%e : tensor<12xf64, #SV>) {
      ^bb(%x: f64, %y: f64, %o: f64):
        %1 = sparse_tensor.binary %x, %y : f64, f64 to f64
          overlap={}
          left=identity
          right={}
        linalg.yield %1 : f64
    } -> tensor<12xf64, #SV>
    return %0 : tensor<12xf64, #SV>
  }
  func.func @places(%a: tensor<12xf64, #SV>) -> tensor<12xi32, #SV> {
    %e = tensor.empty() : tensor<12xi32, #SV>
    %0 = linalg.generic #v1 ins(%a : tensor<12xf64, #SV>) outs(%e : tensor<12xi32, #SV>) {
      ^bb(%x: f64, %o: i32):
        %i = linalg.index 0 : index
        %1 = sparse_tensor.binary %x, %i : f64, index to i32
          overlap={
            ^bb0(%u: f64, %v: index):
              %2 = arith.index_cast %v : index to i32
              sparse_tensor.yield %2 : i32
          }
          left={}
          right={}
        linalg.yield %1 : i32
    } -> tensor<12xi32, #SV>
    return %0 : tensor<12xi32, #SV>
  }
  func.func @complement(%a: tensor<12xf64, #SV>) -> tensor<12xf64> {
    %two = arith.constant 2.0 : f64
    %e = tensor.empty() : tensor<12xf64>
    %0 = linalg.generic #v1 ins(%a : tensor<12xf64, #SV>) outs(%e : tensor<12xf64>) {
      ^bb(%x: f64, %o: f64):
        %1 = sparse_tensor.unary %x : f64 to f64
          present={
            ^bb0(%u: f64):
              %2 = math.exp %u : f64
              sparse_tensor.yield %2 : f64
          }
          absent={
            sparse_tensor.yield %two : f64
          }
        linalg.yield %1 : f64
    } -> tensor<12xf64>
    return %0 : tensor<12xf64>
  }
  func.func @negated(%a: tensor<4x6xf64, #DCSR>, %b: tensor<4x6xf64, #DCSR>) -> tensor<4x6xf64, #DCSR> {
    %e = tensor.empty() : tensor<4x6xf64, #DCSR>
    %0 = linalg.generic #m2 ins(%a, %b : tensor<4x6xf64, #DCSR>, tensor<4x6xf64, #DCSR>) outs(%e : tensor<4x6xf64, #DCSR>) {
      ^bb(%x: f64, %y: f64, %o: f64):
        %1 = sparse_tensor.binary %x, %y : f64, f64 to f64
          overlap={
            ^bb0(%u: f64, %v: f64):
              %2 = arith.divf %u, %v : f64
              sparse_tensor.yield %2 : f64
          }
          left={}
          right={
            ^bb0(%v: f64):
              %2 = arith.negf %v : f64
              sparse_tensor.yield %2 : f64
          }
        linalg.yield %1 : f64
    } -> tensor<4x6xf64, #DCSR>
    return %0 : tensor<4x6xf64, #DCSR>
  }
  func.func @triangles(%a: tensor<4x6xf64, #CSR>, %b: tensor<4x6xf64, #DCSR>) -> tensor<4x6xf64, #CSR> {
    %e = tensor.empty() : tensor<4x6xf64, #CSR>
    %0 = linalg.generic #m2 ins(%a, %b : tensor<4x6xf64, #CSR>, tensor<4x6xf64, #DCSR>) outs(%e : tensor<4x6xf64, #CSR>) {
      ^bb(%x: f64, %y: f64, %o: f64):
        %row = linalg.index 0 : index
        %col = linalg.index 1 : index
        %1 = sparse_tensor.binary %x, %y : f64, f64 to f64
          overlap={
            ^bb0(%u: f64, %v: f64):
              %upper = arith.cmpi "uge", %col, %row : index
              %2 = arith.addf %u, %v : f64
              %3 = arith.subf %u, %v : f64
              %4 = arith.select %upper, %2, %3 : f64
              sparse_tensor.yield %4 : f64
          }
          left=identity
          right=identity
        linalg.yield %1 : f64
    } -> tensor<4x6xf64, #CSR>
    return %0 : tensor<4x6xf64, #CSR>
  }
  func.func @scaled(%a: tensor<4x6xf64, #CSR>, %d: tensor<4x6xf64>) -> tensor<4x6xf64, #CSR> {
    %e = tensor.empty() : tensor<4x6xf64, #CSR>
    %0 = linalg.generic #m2 ins(%a, %d : tensor<4x6xf64, #CSR>, tensor<4x6xf64>) outs(%e : tensor<4x6xf64, #CSR>) {
      ^bb(%x: f64, %y: f64, %o: f64):
        %1 = sparse_tensor.binary %x, %y : f64, f64 to f64
          overlap={
            ^bb0(%u: f64, %v: f64):
              %2 = arith.addf %u, %v : f64
              sparse_tensor.yield %2 : f64
          }
          left={}
          right={}
        linalg.yield %1 : f64
    } -> tensor<4x6xf64, #CSR>
    return %0 : tensor<4x6xf64, #CSR>
  }
  func.func @upper(%a: tensor<4x6xf64, #CSR>) -> tensor<4x6xf64, #CSR> {
    %e = tensor.empty() : tensor<4x6xf64, #CSR>
    %0 = linalg.generic #m1 ins(%a : tensor<4x6xf64, #CSR>) outs(%e : tensor<4x6xf64, #CSR>) {
      ^bb(%x: f64, %o: f64):
        %row = linalg.index 0 : index
        %col = linalg.index 1 : index
        %1 = sparse_tensor.select %x : f64 {
          ^bb0(%u: f64):
            %keep = arith.cmpi "ugt", %col, %row : index
            sparse_tensor.yield %keep : i1
        }
        linalg.yield %1 : f64
    } -> tensor<4x6xf64, #CSR>
    return %0 : tensor<4x6xf64, #CSR>
  }
  func.func @products(%a: tensor<4x6xf64, #CSR>) -> tensor<4xf64> {
    %one = arith.constant 1.0 : f64
    %e = tensor.empty() : tensor<4xf64>
    %z = linalg.fill ins(%one : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
    %0 = linalg.generic #rows ins(%a : tensor<4x6xf64, #CSR>) outs(%z : tensor<4xf64>) {
      ^bb(%x: f64, %o: f64):
        %1 = sparse_tensor.reduce %x, %o, %one : f64 {
          ^bb0(%u: f64, %v: f64):
            %2 = arith.mulf %u, %v : f64
            sparse_tensor.yield %2 : f64
        }
        linalg.yield %1 : f64
    } -> tensor<4xf64>
    return %0 : tensor<4xf64>
  }
  func.func @chosen(%a: tensor<4x6xf64, #CSR>, %b: tensor<4x6xf64, #CSR>, %c: tensor<4x6xi1>) -> tensor<4x6xf64, #CSR> {
    %e = tensor.empty() : tensor<4x6xf64, #CSR>
    %0 = linalg.generic #m3 ins(%a, %b, %c : tensor<4x6xf64, #CSR>, tensor<4x6xf64, #CSR>, tensor<4x6xi1>) outs(%e : tensor<4x6xf64, #CSR>) {
      ^bb(%x: f64, %y: f64, %is: i1, %o: f64):
        %1 = arith.select %is, %x, %y : f64
        linalg.yield %1 : f64
    } -> tensor<4x6xf64, #CSR>
    return %0 : tensor<4x6xf64, #CSR>
  }
}
