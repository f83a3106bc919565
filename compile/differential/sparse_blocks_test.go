package differential

import (
	"fmt"
	"testing"

	"dmir/testkit/need"
)

// blockProducts are products with blocks as large as tiles: summed over a row of them and over a column, sampled, and their gradients, with rows of blocks
// without any and with padding.
func blockProducts(elem, precision string, rows, columns, stored int) string {
	const m, n, depth, cols = 3, 4, 24, 40
	a := fmt.Sprintf("tensor<%dx%dx%s, #dm.bsr<%dx%d, nnz = %d>>", m*rows, n*columns, elem, rows, columns, stored)
	x, q, k, y := fmt.Sprintf("tensor<%dx%dx%s>", n*columns, cols, elem), fmt.Sprintf("tensor<%dx%dx%s>", m*rows, depth, elem), fmt.Sprintf("tensor<%dx%dx%s>", n*columns, depth, elem), fmt.Sprintf("tensor<%dx%dx%s>", m*rows, cols, elem)
	values := fmt.Sprintf("tensor<%dx%s>", stored*rows*columns, elem)
	return fmt.Sprintf(`!a = %s
!v = %s
!x = %s
!q = %s
!k = %s
!y = %s
func.func @f(%%v: !v, %%x: !x, %%q: !q, %%k: !k, %%z: !y) -> (!y, !x, !v, !v, !x) {
  %%p = dm.constant dense<[0, 3, 3, 5]> : tensor<4xi32>
  %%c = dm.constant dense<[0, 1, 3, 1, 2, 2]> : tensor<%dxi32>
  %%a = dm.pack %%p, %%c, %%v : (tensor<4xi32>, tensor<%[7]dxi32>, !v) -> !a
  %%y = dm.matmul %%a, %%x%[8]s : (!a, !x) -> !y
  %%t = dm.matmul %%a, %%z, transpose_a = true%[8]s : (!a, !y) -> !x
  %%s = dm.sample "id,jd->ij" %%a, %%q, %%k : (!a, !q, !k) -> !a
  %%l, %%da, %%dx = dm.grad @loss %%a, %%x, wrt = [0, 1] : (!a, !x) -> (tensor<f32>, !a, !x)
  %%sp, %%sc, %%sv = dm.unpack %%s : (!a) -> (tensor<4xi32>, tensor<%[7]dxi32>, !v)
  %%dp, %%dc, %%dv = dm.unpack %%da : (!a) -> (tensor<4xi32>, tensor<%[7]dxi32>, !v)
  return %%y, %%t, %%sv, %%dv, %%dx : !y, !x, !v, !v, !x
}
func.func private @loss(%%a: !a, %%x: !x) -> tensor<f32> {
  %%y = dm.matmul %%a, %%x%[8]s : (!a, !x) -> !y
  %%w = dm.convert %%y : (!y) -> tensor<%[9]dx%[10]dxf64>
  %%q = dm.mul %%w, %%w : tensor<%[9]dx%[10]dxf64>
  %%h = dm.constant dense<0.03125> : tensor<f64>
  %%s = dm.reduce add %%q : (tensor<%[9]dx%[10]dxf64>) -> tensor<f64>
  %%m = dm.mul %%s, %%h : tensor<f64>
  %%l = dm.convert %%m : (tensor<f64>) -> tensor<f32>
  return %%l : tensor<f32>
}
`, a, values, x, q, k, y, stored, precision, m*rows, cols)
}

// Products with blocks agree with the reference on every device, in the types and at the sizes of tiles that tensor cores multiply, and at others.
func TestBlockProducts(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for i, c := range []struct {
		elem, precision string
		rows, columns   int
	}{
		{"f16", "", 16, 16},
		{"bf16", "", 32, 16},
		{"f32", ", precision = tf32", 32, 32},
		{"f16", "", 20, 24},
	} {
		for _, k := range kinds(t, Case{Name: fmt.Sprintf("%s in blocks of %d × %d", c.elem, c.rows, c.columns), Text: blockProducts(c.elem, c.precision, c.rows, c.columns, 6), Seed: 5}, i) {
			if c.precision == "" || k.Device != "cpu" { // whose products are more precise
				cases = append(cases, k)
			}
		}
	}
	agree(t, cases)
}
