package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/testkit/need"
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
	{productCase{name: "softmax_of_columns", args: "%x: tensor<COLSxROWSxELEM>", out: "%y : tensor<COLSxROWSxELEM>", body: `
%y = dm.softmax %x, dim = 0 : (tensor<COLSxROWSxELEM>) -> tensor<COLSxROWSxELEM>`}, 2},
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
%o = dm.reduce add %dn, dims = [1], keep_dims = true : (WIDE) -> tensor<ROWSx1xf32>
%k = dm.mul %o, %by : (tensor<ROWSx1xf32>, tensor<f32>) -> tensor<ROWSx1xf32>
%ek = dm.sub %e, %k : (WIDE, tensor<ROWSx1xf32>) -> WIDE
%dx = dm.mul %ek, %i : (WIDE, tensor<ROWSx1xf32>) -> WIDE
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
		"COLS", fmt.Sprint(cols), "ELEM", elem, "LOW", map[string]string{"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80", "f64": "0xFFF0000000000000"}[elem], "PART", fmt.Sprintf("%.9e", 1/float64(cols)))
	p.args, p.body, p.out = to.Replace(p.args), to.Replace(p.body), to.Replace(p.out)
	p.name += fmt.Sprintf("_%s_%dx%d", elem, rows, cols)
	p.rows, p.close = true, true
	return p
}

// Few long rows, half of the cases in turn, are shared by blocks in every form on architectures without kernels in clusters, whatever divides them, and the
// results are close to the reference's.
func TestLongRows(t *testing.T) {
	t.Parallel()
	c := newCollection(targetOf(t, "sm_100"))
	sizes := []struct{ rows, cols int }{{2, 81920}, {3, 70001}, {5, 65544}}
	elems := []string{"f32", "f16", "bf16"}
	for i, r := range longRows {
		for k := range elems {
			if every := r.name == "softmax" || r.name == "cross_entropy" || r.name == "norm_gradient"; k > 0 && !every {
				break
			}
			if !Turn(t, i+k, 2) {
				continue
			}
			size, elem := sizes[(i+k)%len(sizes)], elems[(i/len(sizes)+k)%len(elems)]
			c.launches(t, r.of(elem, size.rows, size.cols), r.launches)
		}
	}
	c.emulate(t)
}

// launches adds a case of a row kernel that takes so many launches.
func (c *collection) launches(t *testing.T, p productCase, n int) {
	t.Helper()
	before := len(c.out.Steps)
	c.add(t, p, true)
	if got := len(c.out.Steps) - before; got != n {
		t.Errorf("%s: %d launches, not %d", p.name, got, n)
	}
}

func rowForm(t *testing.T, name string) longRow {
	t.Helper()
	i := slices.IndexFunc(longRows, func(r longRow) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("no form %s", name)
	}
	return longRows[i]
}

// Rows for many multiprocessors, which share none, and other types.
func TestManyLongRows(t *testing.T) {
	t.Parallel()
	c := newCollection(targetOf(t, "sm_90a"))
	for _, s := range []struct {
		name, elem string
		rows, cols int
		launches   int
	}{
		{"losses", "bf16", 66, 26000, 1},
		{"losses", "f64", 66, 8001, 1},
		{"layer_norm", "f32", 66, 13001, 1},
		{"norm_gradient", "f16", 66, 8192, 2},
		{"softmax", "f64", 2, 400000, 2},
		{"greatest_and_sum", "i32", 1, 1 << 20, 2},
	} {
		c.launches(t, rowForm(t, s.name).of(s.elem, s.rows, s.cols), s.launches)
	}
	c.emulate(t)
}

// How rows of a million and of 64 to 256 thousand elements are read: by how many
// launches, how often, and how many bytes a multiprocessor of an H200 has in flight
// while a row is reduced, with the blocks that its registers allow.
func TestBytesInFlight(t *testing.T) {
	for i, s := range []struct {
		name, elem string
		rows, cols int
		launches   int
		sweeps     int
		flight     int // KiB
		µs         string
	}{
		{"softmax", "f16", 4, 1 << 20, 2, 2, 64, "8.65"}, // all that there is
		{"layer_norm", "f16", 4, 1 << 20, 2, 2, 64, "9.63"},
		{"softmax", "f16", 1024, 1 << 16, 1, 1, 64, "63.8"}, // a copy takes 63.8
		{"softmax", "f16", 256, 1 << 18, 1, 1, 64, "63.8"},
		{"softmax", "f32", 256, 1 << 18, 1, 1, 64, "132"}, // 126
		{"softmax", "bf16", 128, 50257, 1, 1, 48, "7.38"},
		{"softmax_gradient", "bf16", 512, 1 << 17, 1, 1, 64, "95"},
		{"losses", "bf16", 512, 1 << 17, 1, 1, 64, "32.6"},
		{"losses", "bf16", 16, 1 << 16, 1, 1, 16, "1.89"},
		{"layer_norm", "f32", 300, 1<<16 + 4, 1, 1, 64, "38.1"},
		{"norm_gradient", "bf16", 1024, 1 << 16, 4, 3, 64, "201"},
	} {
		target := targetOf(t, "sm_90a")
		p := rowForm(t, s.name).of(s.elem, s.rows, s.cols)
		plan := target.rows(formed(t, p))
		sweeps := 0
		for _, x := range plan.sweeps {
			if len(x.reads) > 0 && (sweeps == 0 || !plan.resident) {
				sweeps++
			}
		}
		if n := plan.count(); n != s.launches || sweeps != s.sweeps {
			t.Errorf("%s: %d launches and %d sweeps, not %d and %d", p.name, n, sweeps, s.launches, s.sweeps)
		}
		if µs := fmt.Sprintf("%.3g", plan.seconds(target.Machine)*1e6); µs != s.µs {
			t.Errorf("%s: predicted %s µs, not %s", p.name, µs, s.µs)
		}
		if !need.Turn(t, i, 3) {
			continue
		}
		c := newCollection(target)
		c.add(t, p, false)
		registers := c.compile(t, "sm_90a")[c.out.Kernels[0].Name]
		first := plan.sweeps[0]
		blocks := min(65536/(registers*plan.threads), 2048/plan.threads, int(ceil(int64(s.rows)*first.splits, int64(target.multiprocessors()))))
		steps := first.unroll
		if steps == 0 {
			steps = first.steps
		}
		flight := blocks * plan.threads * int(steps*plan.v*bytesOf(plan.f.Streams(first.reads, plan.v)))
		t.Logf("%s: %d blocks of %d threads, %d registers, %d KiB in flight", p.name, blocks, plan.threads, registers, flight>>10)
		if flight>>10 < s.flight {
			t.Errorf("%s: %d KiB in flight, less than %d", p.name, flight>>10, s.flight)
		}
	}
}
