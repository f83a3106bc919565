package interp

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

func matrices(m, n, k int) (a, b []float32) {
	return tensor.Random(types.F32, []int{m, k}, 1, 0).F32, tensor.Random(types.F32, []int{k, n}, 1, 1).F32
}

func rowMajor(a, b, c []float32, m, n, k int) *gemm[float32] {
	one := []int{0}
	return &gemm[float32]{
		a: a, b: b, c: c,
		aB: one, bB: one, cB: one,
		aM: offsets([]int{m}, []int{k}), aK: offsets([]int{k}, []int{1}),
		bK: offsets([]int{k}, []int{n}), bN: offsets([]int{n}, []int{1}),
		cM: offsets([]int{m}, []int{n}), cN: offsets([]int{n}, []int{1}),
	}
}

// Both kernels, the one in assembly and gonum's, against a plain sum in
// float64, over sizes around the edges of the tiles.
func TestGemm(t *testing.T) {
	had := haveFMA
	defer func() { haveFMA = had }()
	p, release := newPool(context.Background(), 0)
	defer release()
	for _, fma := range []bool{false, had} {
		haveFMA = fma
		for _, s := range [][3]int{{1, 1, 1}, {6, 16, 4}, {7, 17, 3}, {5, 15, 257}, {241, 513, 19}, {250, 40, 600}, {3, 4, 0}} {
			m, n, k := s[0], s[1], s[2]
			a, b := matrices(m, n, k)
			c := make([]float32, m*n)
			rowMajor(a, b, c, m, n, k).run(p)
			for i := range m {
				for j := range n {
					var want float64
					for x := range k {
						want += float64(a[i*k+x]) * float64(b[x*n+j])
					}
					if math.Abs(float64(c[i*n+j])-want) > 1e-4 {
						t.Fatalf("fma=%v %v: c[%d][%d] = %g, want %g", fma, s, i, j, c[i*n+j], want)
					}
				}
			}
		}
		inf := float32(math.Inf(1))
		c := []float32{0}
		rowMajor([]float32{0, 1}, []float32{inf, 1}, c, 1, 1, 2).run(p)
		if c[0] == c[0] {
			t.Errorf("fma=%v: 0·∞ + 1 = %g, want NaN", fma, c[0])
		}
	}
}

// BenchmarkGemm has our kernel and gonum's in one run: GFLOP/s on all cores.
func BenchmarkGemm(b *testing.B) {
	for _, n := range []int{256, 1024} {
		x, y := matrices(n, n, n)
		z := make([]float32, n*n)
		report := func(b *testing.B) {
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		}
		b.Run(fmt.Sprintf("dmir/%d", n), func(b *testing.B) {
			p, release := newPool(context.Background(), 0)
			defer release()
			g := rowMajor(x, y, z, n, n, n)
			for b.Loop() {
				g.run(p)
			}
			report(b)
		})
		b.Run(fmt.Sprintf("gonum/%d", n), func(b *testing.B) {
			mat := func(d []float32) blas32.General { return blas32.General{Rows: n, Cols: n, Stride: n, Data: d} }
			for b.Loop() {
				blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, mat(x), mat(y), 0, mat(z))
			}
			report(b)
		})
	}
}

// Offsets of letters in another order than the operand's dimensions may begin
// and end as contiguous ones do.
func TestContiguous(t *testing.T) {
	mixed := offsets([]int{7, 2, 20}, []int{40, 280, 1})[:256]
	if mixed[1] != 1 || mixed[255] != 255 {
		t.Fatalf("the offsets do not begin and end as contiguous ones: %v", mixed)
	}
	for _, c := range []struct {
		name string
		offs []int
		want bool
	}{
		{"none", nil, false},
		{"one", []int{7}, true},
		{"a row", offsets([]int{5}, []int{1}), true},
		{"rows of a matrix", offsets([]int{3, 4}, []int{4, 1}), true},
		{"a column", offsets([]int{3}, []int{4}), false},
		{"letters in another order", mixed, false},
	} {
		if got := contiguous(c.offs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
