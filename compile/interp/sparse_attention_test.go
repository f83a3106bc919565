package interp

import (
	"fmt"
	"testing"

	"dmir/compile/tensor"
)

// An attention with a sparse mask is the softmax of the scores that the mask stores, with its values added, times the values.
func TestSparseMask(t *testing.T) {
	for _, c := range []struct {
		name, mask, q, k, v, y string
		scores, weighed        string // equations
		dim                    int
	}{
		{"rows", "12x16xf32, #dm.csr<nnz = 40>", "12x4xf32", "16x4xf32", "16x6xf32", "12x6xf32", "id,jd->ij", "ij,je->ie", 1},
		{"blocks", "12x16xf32, #dm.bsr<4x2, nnz = 9>", "12x4xf32", "16x4xf32", "16x6xf32", "12x6xf32", "id,jd->ij", "ij,je->ie", 1},
		{"own heads", "3x12x16xf32, #dm.sparse<map = (h, i, j) -> (h : dense, i : dense, j : compressed), nnz = 90>", "3x12x4xf32", "3x16x4xf32", "3x16x6xf32", "3x12x6xf32", "hid,hjd->hij", "hij,hje->hie", 2},
		{"heads within", "3x12x16xf32, #dm.sparse<map = (h, i, j) -> (i : dense, j : compressed, h : dense), nnz = 40>", "3x12x4xf32", "3x16x4xf32", "3x16x6xf32", "3x12x6xf32", "hid,hjd->hij", "hij,hje->hie", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(`func.func @f(%%m: tensor<%[1]s>, %%q: tensor<%[2]s>, %%k: tensor<%[3]s>, %%v: tensor<%[4]s>) -> (tensor<%[5]s>, tensor<%[5]s>) {
  %%y = dm.attention %%q, %%k, %%v, %%m, scale = 0.5 : (tensor<%[2]s>, tensor<%[3]s>, tensor<%[4]s>, tensor<%[1]s>) -> tensor<%[5]s>
  %%s = dm.sample "%[6]s" %%m, %%q, %%k : (tensor<%[1]s>, tensor<%[2]s>, tensor<%[3]s>) -> tensor<%[1]s>
  %%half = dm.constant dense<0.5> : tensor<f32>
  %%h = dm.mul %%s, %%half : (tensor<%[1]s>, tensor<f32>) -> tensor<%[1]s>
  %%b = dm.add %%h, %%m : tensor<%[1]s>
  %%p = dm.softmax %%b, dim = %[8]d : tensor<%[1]s>
  %%z = dm.einsum "%[7]s" %%p, %%v : (tensor<%[1]s>, tensor<%[4]s>) -> tensor<%[5]s>
  return %%y, %%z : tensor<%[5]s>, tensor<%[5]s>
}
`, c.mask, c.q, c.k, c.v, c.y, c.scores, c.weighed, c.dim)
			out := run(t, text)
			if diff := tensor.MaxDiff(out[0], out[1]); diff > 1e-5 {
				t.Errorf("off by %g:\n got %v\nwant %v", diff, out[0], out[1])
			}
		})
	}
	// Heads that share a mask, and keys, are as each alone.
	text := `func.func @f(%m: tensor<12x16xf32, #dm.bsr<4x2, nnz = 9>>, %q: tensor<2x4x12x4xf32>, %k: tensor<2x2x16x4xf32>, %v: tensor<2x2x16x6xf32>) -> (tensor<12x6xf32>, tensor<12x6xf32>) {
  %y, %lse = dm.attention %q, %k, %v, %m : (tensor<2x4x12x4xf32>, tensor<2x2x16x4xf32>, tensor<2x2x16x6xf32>, tensor<12x16xf32, #dm.bsr<4x2, nnz = 9>>) -> (tensor<2x4x12x6xf32>, tensor<2x4x12xf32>)
  %a = dm.slice %y, dims = [0, 1], start_indices = [1, 3], limit_indices = [2, 4] : (tensor<2x4x12x6xf32>) -> tensor<1x1x12x6xf32>
  %b = dm.reshape %a : (tensor<1x1x12x6xf32>) -> tensor<12x6xf32>
  %q1 = dm.slice %q, dims = [0, 1], start_indices = [1, 3], limit_indices = [2, 4] : (tensor<2x4x12x4xf32>) -> tensor<1x1x12x4xf32>
  %k1 = dm.slice %k, dims = [0, 1], start_indices = [1, 1], limit_indices = [2, 2] : (tensor<2x2x16x4xf32>) -> tensor<1x1x16x4xf32>
  %v1 = dm.slice %v, dims = [0, 1], start_indices = [1, 1], limit_indices = [2, 2] : (tensor<2x2x16x6xf32>) -> tensor<1x1x16x6xf32>
  %q2 = dm.reshape %q1 : (tensor<1x1x12x4xf32>) -> tensor<12x4xf32>
  %k2 = dm.reshape %k1 : (tensor<1x1x16x4xf32>) -> tensor<16x4xf32>
  %v2 = dm.reshape %v1 : (tensor<1x1x16x6xf32>) -> tensor<16x6xf32>
  %z = dm.attention %q2, %k2, %v2, %m : (tensor<12x4xf32>, tensor<16x4xf32>, tensor<16x6xf32>, tensor<12x16xf32, #dm.bsr<4x2, nnz = 9>>) -> tensor<12x6xf32>
  return %b, %z : tensor<12x6xf32>, tensor<12x6xf32>
}
`
	out := run(t, text)
	if diff := tensor.MaxDiff(out[0], out[1]); diff > 1e-5 {
		t.Errorf("shared: off by %g:\n got %v\nwant %v", diff, out[0], out[1])
	}
}
