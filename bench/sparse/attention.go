package main

import "fmt"

// attention is graph attention with rows of w elements, as text with sparse tensors is compiled, and its ops apart: scores, their
// softmax over the stored elements of each row, and sums of rows that these weigh.
func attention(m *matrix, w int) []row {
	n, e := m.n, m.stored()
	positions, columns, stored := fmt.Sprintf("tensor<%dxi32>", n+1), fmt.Sprintf("tensor<%dxi32>", e), fmt.Sprintf("tensor<%dxf32>", e)
	csr := fmt.Sprintf("tensor<%[1]dx%[1]dxf32, #dm.csr<nnz = %[2]d>>", n, e)
	dense, rows, vector := fmt.Sprintf("tensor<%dx%dxf32>", n, w), fmt.Sprintf("tensor<%dx%dxf32>", e, w), fmt.Sprintf("tensor<%dxf32>", n)
	head := fmt.Sprintf("func.func @main(%%a: %s, %%x: %s, %%z: %s) -> %s {\n  %%p, %%c, %%v = dm.unpack %%a : (%[1]s) -> (%[5]s, %[6]s, %[7]s)\n", csr, dense, dense, dense, positions, columns, stored)
	one := fmt.Sprintf("tensor<1x%dx%dxf32>", n, w)
	return []row{
		{name: fmt.Sprintf("attention %d", w), format: "csr", text: head + fmt.Sprintf(`  %%q = dm.reshape %%x : (%[1]s) -> %[2]s
  %%k = dm.reshape %%z : (%[1]s) -> %[2]s
  %%b = dm.segment_attention %%q, %%k, %%k, %%p, %%c, scale = 0.125 : (%[2]s, %[2]s, %[2]s, %[3]s, %[4]s) -> %[2]s
  %%y = dm.reshape %%b : (%[2]s) -> %[1]s
  return %%y : %[1]s
}
`, dense, one, positions, columns)},
		{name: fmt.Sprintf("attention %d, ops apart", w), format: "csr", text: head + fmt.Sprintf(`  %%i = dm.segment_ids %%p : (%[3]s) -> %[4]s
  %%g = dm.gather %%x, %%i : (%[1]s, %[4]s) -> %[2]s
  %%h = dm.gather %%z, %%c : (%[1]s, %[4]s) -> %[2]s
  %%m = dm.mul %%g, %%h : %[2]s
  %%r = dm.reduce add %%m, dims = [1] : (%[2]s) -> %[5]s
  %%scale = dm.constant dense<0.125> : tensor<f32>
  %%s = dm.mul %%r, %%scale : (%[5]s, tensor<f32>) -> %[5]s
  %%t = dm.segment_reduce max %%s, %%p : (%[5]s, %[3]s) -> %[6]s
  %%n = dm.gather %%t, %%i : (%[6]s, %[4]s) -> %[5]s
  %%d = dm.sub %%s, %%n : %[5]s
  %%e = dm.exp %%d : %[5]s
  %%f = dm.segment_reduce add %%e, %%p : (%[5]s, %[3]s) -> %[6]s
  %%u = dm.gather %%f, %%i : (%[6]s, %[4]s) -> %[5]s
  %%o = dm.div %%e, %%u : %[5]s
  %%l = dm.reshape %%o : (%[5]s) -> tensor<%[7]dx1xf32>
  %%w = dm.mul %%h, %%l : (%[2]s, tensor<%[7]dx1xf32>) -> %[2]s
  %%y = dm.segment_reduce add %%w, %%p : (%[2]s, %[3]s) -> %[1]s
  return %%y : %[1]s
}
`, dense, rows, positions, columns, stored, vector, e)},
	}
}
