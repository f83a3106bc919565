package machine

import (
	"math"
	"testing"

	"dmir/analysis/blocks"
	"dmir/dialect/types"
)

// runsOf are products of many shapes, a convolution among them, and how long m takes for each.
func runsOf(m *Machine) (runs []ProductRun) {
	products := []Product{{Batch: 8, Rows: 64, Cols: 16 * 28 * 28, Depth: 64 * 9, Window: Window{Taps: 9, Images: 16, Lines: 28, Outputs: 28, Reach: 2, Planes: 1}}}
	for _, s := range [][3]int64{{512, 512, 512}, {2048, 2048, 64}, {64, 4096, 1024}, {4096, 64, 1024}, {32, 2048, 2048}, {256, 256, 256}, {1000, 700, 130}} {
		products = append(products, Product{Batch: 4, Rows: s[0], Cols: s[1], Depth: s[2]})
	}
	for _, p := range products {
		p.Elem = types.F32
		t, _ := m.ProcessorProduct(p, 0)
		runs = append(runs, ProductRun{Product: p, Moved: 1 << 20, Seconds: t.Total() + m.Move(1<<20, 0, 0).Seconds})
	}
	return runs
}

// Rates that are fitted to the times of a machine are those of the machine.
func TestFitProducts(t *testing.T) {
	m := parsed(t, calibrated)
	m.Arch = "x86-64-v4"
	want := m.Products[types.F32]
	got := m.FitProducts(runsOf(m))
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"sums", got.Sums, want.Sums}, {"rows", got.Rows, want.Rows}, {"cols", got.Cols, want.Cols}, {"results", got.Results, want.Results}, {"line", got.Line, want.Line}} {
		if math.Abs(c.got/c.want-1) > 0.01 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
	if got := m.FitProducts(nil); got != (ProductRates{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// A product takes longer with more of anything, no less than its FLOP at the best rate, and as long for threads as its tasks
// leave some of them waiting.
func TestProcessorProduct(t *testing.T) {
	m := parsed(t, calibrated)
	m.Arch = "x86-64-v4"
	product := func(rows, cols, depth int64, threads int) float64 {
		x, ok := m.ProcessorProduct(Product{Batch: 1, Rows: rows, Cols: cols, Depth: depth, Elem: types.F16}, threads)
		if !ok || x.Streams != (rows <= 12) {
			t.Fatalf("%d × %d × %d: %+v", rows, cols, depth, x)
		}
		return x.Total()
	}
	for _, n := range []int64{16, 100, 1000} {
		one := product(n, n, n, 0)
		for _, more := range []float64{product(4*n, n, n, 0), product(n, 4*n, n, 0), product(n, n, 4*n, 0)} {
			if more <= one {
				t.Errorf("%d: %g s, and %g for four times as much", n, one, more)
			}
		}
		if least := 2 * float64(n*n*n) / m.Products[types.F32].Sums; one < least {
			t.Errorf("%d: %g s, less than %g", n, one, least)
		}
	}
	if few := product(1, 4096, 4096, 0); few >= product(16, 4096, 4096, 0) {
		t.Errorf("one row takes %g s", few)
	}
	if _, ok := m.ProcessorProduct(Product{Batch: 1, Rows: 64, Cols: 64, Depth: 64, Elem: types.F64}, 0); ok {
		t.Error("products of f64 were not measured")
	}
	if a, b := m.waits(5, 4), m.waits(8, 4); a != 8.0/5 || b != 1 {
		t.Errorf("waits: %g, %g", a, b)
	}
}

// The window of a convolution moves over an image that is read where it is, unless too few outputs lie in a line.
func TestPlanOf(t *testing.T) {
	p := Product{Batch: 1, Rows: 64, Cols: 28 * 28, Depth: 64 * 9, Elem: types.F32, Window: Window{Taps: 9, Images: 1, Lines: 28, Outputs: 28, Reach: 2, Planes: 1}}
	if got := PlanOf(p, "x86-64-v4"); got.Shape.Window == nil || got.Shape.Cols != 27*30+28 {
		t.Errorf("%+v", got.Shape)
	}
	p.Rows, p.Cols, p.Window.Outputs = 1024, 28*2, 2
	if got := PlanOf(p, "x86-64-v4"); got.Shape.Window != nil || got.Shape.Cols != 56 {
		t.Errorf("%+v", got.Shape)
	}
	if w := PlanOf(p, "x86-64-v4").Work(); w.Cols < 56*64*9 || w.FLOP < p.FLOP() || w == (blocks.Work{}) {
		t.Errorf("%+v", w)
	}
}
