package main

import "fmt"

// row is a function of a matrix.
type row struct {
	name  string
	width int // columns of the dense operands; 0: they are vectors
	text  string
}

// rows are the functions that are measured of m.
func rows(m *matrix) (all []row) {
	n, e := m.n, m.stored()
	stored, columns, positions := fmt.Sprintf("tensor<%dxf32>", e), fmt.Sprintf("tensor<%dxi32>", e), fmt.Sprintf("tensor<%dxi32>", n+1)
	vector := fmt.Sprintf("tensor<%dxf32>", n)
	all = append(all, row{name: "spmv", text: fmt.Sprintf(`func.func @main(%%p: %[1]s, %%c: %[2]s, %%a: %[3]s, %%x: %[4]s) -> %[4]s {
  %%g = dm.gather %%x, %%c : (%[4]s, %[2]s) -> %[3]s
  %%v = dm.mul %%g, %%a : %[3]s
  %%y = dm.segment_reduce add %%v, %%p : (%[3]s, %[1]s) -> %[4]s
  return %%y : %[4]s
}
`, positions, columns, stored, vector)})
	for _, w := range []int{16, 64, 256} {
		dense, each := fmt.Sprintf("tensor<%dx%dxf32>", n, w), fmt.Sprintf("tensor<%dx%dxf32>", e, w)
		all = append(all, row{name: fmt.Sprintf("spmm %d", w), width: w, text: fmt.Sprintf(`func.func @main(%%p: %[1]s, %%c: %[2]s, %%a: %[3]s, %%x: %[4]s) -> %[4]s {
  %%g = dm.gather %%x, %%c : (%[4]s, %[2]s) -> %[5]s
  %%w = dm.reshape %%a : (%[3]s) -> tensor<%[6]dx1xf32>
  %%v = dm.mul %%g, %%w : (%[5]s, tensor<%[6]dx1xf32>) -> %[5]s
  %%y = dm.segment_reduce add %%v, %%p : (%[5]s, %[1]s) -> %[4]s
  return %%y : %[4]s
}
`, positions, columns, stored, dense, each, e)})
	}
	const w = 64
	dense, each := fmt.Sprintf("tensor<%dx%dxf32>", n, w), fmt.Sprintf("tensor<%dx%dxf32>", e, w)
	all = append(all, attention(m, w)...)
	return append(all, row{name: "sddmm 64", width: w, text: fmt.Sprintf(`func.func @main(%%p: %[1]s, %%c: %[2]s, %%x: %[4]s, %%z: %[4]s) -> %[3]s {
  %%i = dm.segment_ids %%p : (%[1]s) -> %[2]s
  %%g = dm.gather %%x, %%i : (%[4]s, %[2]s) -> %[5]s
  %%h = dm.gather %%z, %%c : (%[4]s, %[2]s) -> %[5]s
  %%v = dm.mul %%g, %%h : %[5]s
  %%y = dm.reduce add %%v, dims = [1] : (%[5]s) -> %[3]s
  return %%y : %[3]s
}
`, positions, columns, stored, dense, each)})
}
