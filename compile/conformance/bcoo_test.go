package conformance

import (
	"math"
	"os"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// What JAX makes of BCOO matrices computes what they are: products, sums, dense ones, sampled products and gradients. Entries are in no
// order, one is there twice, and the last one, of no element, is padding.
func TestBCOO(t *testing.T) {
	text, err := os.ReadFile("testdata/bcoo.mlir")
	need.OK(t, err)
	numbers := func(elem types.Elem, shape []int, f func(i int) float64) *tensor.Tensor {
		x := tensor.New(elem, shape...)
		for i := range x.Len() {
			x.SetFloat(i, f(i))
		}
		return x
	}
	wave := func(i int) float64 { return float64(i*7%11)/4 - 1 }
	matrix := func(k int) (values, at, dense *tensor.Tensor) {
		values = numbers(types.F32, []int{16}, func(i int) float64 { return wave(i + k) })
		at = numbers(types.I32, []int{16, 2}, func(i int) float64 {
			switch e := i / 2; {
			case e == 15:
				return []float64{8, 6}[i%2]
			case e == 14: // as entry 0
				return []float64{float64(k), 0}[i%2]
			default:
				return []float64{float64((e*5 + k) % 8), float64(e * 11 % 6)}[i%2]
			}
		})
		dense = tensor.New(types.F32, 8, 6)
		for e := range 15 {
			i := int(at.Float(2*e))*6 + int(at.Float(2*e+1))
			dense.SetFloat(i, dense.Float(i)+values.Float(e))
		}
		return values, at, dense
	}
	v, at, a := matrix(0)
	u, to, b := matrix(1)
	x, q, k := numbers(types.F32, []int{6, 4}, wave), numbers(types.F32, []int{8, 5}, wave), numbers(types.F32, []int{6, 5}, wave)
	sum := func(n int, f func(i int) float64) (s float64) {
		for i := range n {
			s += f(i)
		}
		return s
	}
	product := func(r, c int) float64 { return sum(6, func(j int) float64 { return a.Float(r*6+j) * x.Float(j*4+c) }) }
	place := func(e int) (r, c int) { return int(at.Float(2 * e)), int(at.Float(2*e + 1)) }
	want := map[string][]func(i int) float64{
		"matmul":  {func(i int) float64 { return product(i/4, i%4) }},
		"add":     {func(i int) float64 { return a.Float(i) + b.Float(i) }},
		"todense": {a.Float},
		"sample": {func(e int) float64 {
			r, c := place(e)
			return sum(5, func(l int) float64 { return q.Float(r*5+l) * k.Float(c*5+l) })
		}},
		"grad": {
			func(e int) float64 {
				r, c := place(e)
				return sum(4, func(l int) float64 { return 2 * product(r, l) * x.Float(c*4+l) })
			},
			func(i int) float64 {
				return sum(8, func(r int) float64 { return 2 * product(r, i%4) * a.Float(r*6+i/4) })
			},
		},
	}
	args := map[string][]*tensor.Tensor{"matmul": {v, at, x}, "add": {v, at, u, to}, "todense": {v, at}, "sample": {at, q, k}, "grad": {v, at, x}}
	modules := stablehlo.Import(parse.File(source.New("bcoo.mlir", string(text))))
	if len(modules) != len(want) {
		t.Fatalf("%d programs", len(modules))
	}
	for n, name := range []string{"matmul", "add", "todense", "sample", "grad"} {
		m := modules[n]
		if len(m.Funcs) == 0 {
			t.Errorf("%s: %v", name, m.Diags)
			continue
		}
		res, err := interp.Run(t.Context(), m, m.Func("main"), args[name], interp.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for r, y := range res.Outputs {
			for i := range y.Len() {
				if y.Shape[0] == 16 && i == 15 { // of padding
					continue
				}
				if w := want[name][r](i); math.Abs(y.Float(i)-w) > 1e-4*max(1, math.Abs(w)) {
					t.Errorf("%s: element %d of result %d is %g, want %g", name, i, r, y.Float(i), w)
				}
			}
		}
	}
}
