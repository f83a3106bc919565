package cuda

import (
	"fmt"
	"strings"
	"testing"
)

// longRow is a row kernel over ROWS rows of COLS elements, and the launches that
// it takes where blocks share the rows.
type longRow struct {
	productCase
	launches int
}

// longRows are forms of row kernels: results for each row, each element, each
// column and all together; sums that are computed with what they are relative to,
// and such that wait for it.
var longRows = []longRow{
	{productCase{name: "all", args: "%x: TENSOR", out: "%y : tensor<ELEM>", body: `
%y = dm.reduce add %x, dims = [0, 1] : (TENSOR) -> tensor<ELEM>`}, 2},
	{productCase{name: "mean_of_squares", args: "%x: TENSOR, %w: TENSOR", out: "%y : tensor<f32>", body: `
%d = dm.sub %x, %w : TENSOR
%f = dm.convert %d : (TENSOR) -> tensor<ROWSxCOLSxf32>
%s = dm.mul %f, %f : tensor<ROWSxCOLSxf32>
%y = dm.reduce add %s, dims = [0, 1] : (tensor<ROWSxCOLSxf32>) -> tensor<f32>`}, 2},
	{productCase{name: "greatest_and_sum", args: "%x: TENSOR, %b: ROW", out: "%y, %z : ROW, ROW", body: `
%m = dm.reduce max %x, dims = [1] : (TENSOR) -> ROW
%y = dm.add %m, %b : ROW
%z = dm.reduce add %x, dims = [1] : (TENSOR) -> ROW`}, 2},
	{productCase{name: "softmax", args: "%x: TENSOR", out: "%y : TENSOR", body: `
%y = dm.softmax %x, dim = 1 : (TENSOR) -> TENSOR`}, 2},
	{productCase{name: "masked_softmax", args: "%x: TENSOR", out: "%y : TENSOR", body: `
%low = dm.constant dense<LOW> : TENSOR
%i = dm.iota dim = 1 : () -> tensor<ROWSxCOLSxi32>
%to = dm.constant dense<60000> : tensor<ROWSxCOLSxi32>
%m = dm.compare %i, %to, direction = lt : (tensor<ROWSxCOLSxi32>, tensor<ROWSxCOLSxi32>) -> tensor<ROWSxCOLSxi1>
%s = dm.select %m, %low, %x : (tensor<ROWSxCOLSxi1>, TENSOR, TENSOR) -> TENSOR
%y = dm.softmax %s, dim = 1 : (TENSOR) -> TENSOR`}, 2},
	{productCase{name: "softmax_of_nothing", args: "%x: TENSOR", out: "%y : TENSOR", body: `
%low = dm.constant dense<LOW> : TENSOR
%s = dm.add %x, %low : TENSOR
%y = dm.softmax %s, dim = 1 : (TENSOR) -> TENSOR`}, 2},
	{productCase{name: "dropped_softmax", args: "%x: TENSOR", out: "%y : TENSOR", body: `
%s = dm.softmax %x, dim = 1 : (TENSOR) -> TENSOR
%y = dm.dropout %s, rate = 0.25, seed = 7 : (TENSOR) -> TENSOR`}, 2},
	{productCase{name: "softmax_gradient", args: "%x: TENSOR, %g: TENSOR", out: "%y : TENSOR", body: `
%s = dm.softmax %x, dim = 1 : (TENSOR) -> TENSOR
%p = dm.mul %s, %g : TENSOR
%d = dm.reduce add %p, dims = [1], keep_dims = true : (TENSOR) -> tensor<ROWSx1xELEM>
%c = dm.sub %g, %d : (TENSOR, tensor<ROWSx1xELEM>) -> TENSOR
%y = dm.mul %s, %c : TENSOR`}, 3},
	{productCase{name: "log_sum", args: "%x: TENSOR", out: "%y : ROW", body: `
%m = dm.reduce max %x, dims = [1], keep_dims = true : (TENSOR) -> tensor<ROWSx1xELEM>
%d = dm.sub %x, %m : (TENSOR, tensor<ROWSx1xELEM>) -> TENSOR
%e = dm.exp %d : TENSOR
%s = dm.reduce add %e, dims = [1] : (TENSOR) -> ROW
%l = dm.log %s : ROW
%n = dm.reshape %m : (tensor<ROWSx1xELEM>) -> ROW
%y = dm.add %l, %n : ROW`}, 2},
	{productCase{name: "cross_entropy", args: "%x: TENSOR, %l: tensor<ROWSxi32>", out: "%y : tensor<ELEM>", body: `
%y = dm.cross_entropy %x, %l, dim = 1, label_smoothing = 0.1 : (TENSOR, tensor<ROWSxi32>) -> tensor<ELEM>`}, 4},
	{productCase{name: "losses", args: "%x: TENSOR, %l: tensor<ROWSxi32>", out: "%y : ROW", body: `
%y = dm.cross_entropy %x, %l, dim = 1, reduction = "none" : (TENSOR, tensor<ROWSxi32>) -> ROW`}, 2},
	{productCase{name: "layer_norm", args: "%x: TENSOR, %s: tensor<COLSxELEM>, %b: tensor<COLSxELEM>", out: "%y : TENSOR", body: `
%y = dm.layer_norm %x, %s, %b : (TENSOR, tensor<COLSxELEM>, tensor<COLSxELEM>) -> TENSOR`}, 2},
	{productCase{name: "variance", args: "%x: TENSOR", out: "%m, %v : tensor<ROWSx1xf32>, tensor<ROWSxf32>", body: `
%by = dm.constant dense<PART> : tensor<f32>
%far = dm.constant dense<64.0> : tensor<f32>
%w = dm.convert %x : (TENSOR) -> WIDE
%z = dm.add %w, %far : (WIDE, tensor<f32>) -> WIDE
%s = dm.reduce add %z, dims = [1], keep_dims = true : (WIDE) -> tensor<ROWSx1xf32>
%m = dm.mul %s, %by : (tensor<ROWSx1xf32>, tensor<f32>) -> tensor<ROWSx1xf32>
%d = dm.sub %z, %m : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%q = dm.mul %d, %d : WIDE
%a = dm.reduce add %q, dims = [1] : (WIDE) -> tensor<ROWSxf32>
%v = dm.mul %a, %by : (tensor<ROWSxf32>, tensor<f32>) -> tensor<ROWSxf32>`}, 2},
	{productCase{name: "norm_gradient", args: "%x: TENSOR, %g: TENSOR, %w: tensor<COLSxf32>", out: "%y, %dw, %db : TENSOR, tensor<COLSxf32>, tensor<COLSxf32>", body: `
%by = dm.constant dense<PART> : tensor<f32>
%f = dm.convert %x : (TENSOR) -> WIDE
%h = dm.convert %g : (TENSOR) -> WIDE
%s = dm.reduce add %f, dims = [1], keep_dims = true : (WIDE) -> tensor<ROWSx1xf32>
%m = dm.mul %s, %by : (tensor<ROWSx1xf32>, tensor<f32>) -> tensor<ROWSx1xf32>
%d = dm.sub %f, %m : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%q = dm.mul %d, %d : WIDE
%a = dm.reduce add %q, dims = [1], keep_dims = true : (WIDE) -> tensor<ROWSx1xf32>
%v = dm.mul %a, %by : (tensor<ROWSx1xf32>, tensor<f32>) -> tensor<ROWSx1xf32>
%i = dm.rsqrt %v : tensor<ROWSx1xf32>
%n = dm.mul %d, %i : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%dn = dm.mul %h, %w : (WIDE, tensor<COLSxf32>) -> WIDE
%p = dm.mul %dn, %n : WIDE
%t = dm.reduce add %p, dims = [1], keep_dims = true : (WIDE) -> tensor<ROWSx1xf32>
%u = dm.mul %t, %by : (tensor<ROWSx1xf32>, tensor<f32>) -> tensor<ROWSx1xf32>
%nu = dm.mul %n, %u : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%e = dm.sub %dn, %nu : WIDE
%dx = dm.mul %e, %i : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%y = dm.convert %dx : (WIDE) -> TENSOR
%hn = dm.mul %h, %n : WIDE
%dw = dm.reduce add %hn, dims = [0] : (WIDE) -> tensor<COLSxf32>
%db = dm.reduce add %h, dims = [0] : (WIDE) -> tensor<COLSxf32>`}, 4},
	{productCase{name: "loss_of_norms", args: "%x: TENSOR", out: "%r, %y : ROW, tensor<ELEM>", body: `
%q = dm.mul %x, %x : TENSOR
%s = dm.reduce add %q, dims = [1] : (TENSOR) -> ROW
%r = dm.sqrt %s : ROW
%y = dm.reduce add %r, dims = [0] : (ROW) -> tensor<ELEM>`}, 3},
}

// of is the case with those rows of elements of a type.
func (r longRow) of(elem string, rows, cols int) productCase {
	p := r.productCase
	to := strings.NewReplacer("WIDE", fmt.Sprintf("tensor<%dx%dxf32>", rows, cols), "TENSOR", fmt.Sprintf("tensor<%dx%dx%s>", rows, cols, elem), "ROWS", fmt.Sprint(rows), "ROW", fmt.Sprintf("tensor<%dx%s>", rows, elem),
		"COLS", fmt.Sprint(cols), "ELEM", elem, "LOW", map[string]string{"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}[elem], "PART", fmt.Sprintf("%.9e", 1/float64(cols)))
	p.args, p.body, p.out = to.Replace(p.args), to.Replace(p.body), to.Replace(p.out)
	p.name += fmt.Sprintf("_%s_%dx%d", elem, rows, cols)
	p.rows, p.close = true, true
	return p
}

// Few long rows are shared by blocks in every form, whatever divides them, and the
// results are close to the reference's.
func TestLongRows(t *testing.T) {
	t.Parallel()
	c := newCollection(targetOf(t, "sm_90a"))
	sizes := []struct{ rows, cols int }{{2, 81920}, {3, 70001}, {5, 65544}}
	for i, r := range longRows {
		for k, elem := range []string{"f32", "f16", "bf16"} {
			size := sizes[(i+k)%len(sizes)]
			p := r.of(elem, size.rows, size.cols)
			before := len(c.out.Steps)
			c.add(t, p, true)
			if n := len(c.out.Steps) - before; n != r.launches {
				t.Errorf("%s: %d launches, not %d", p.name, n, r.launches)
			}
		}
	}
	c.emulate(t)
	c.compile(t, "sm_80", "sm_90a", "sm_100")
}
