package interp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// TestSparseMerge compares two sparse tensors brought to one pattern, for each set of elements, with what they store, and the gradient of a
// function of both.
func TestSparseMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	keeps := map[string]func(a, b bool) bool{
		"union":        func(a, b bool) bool { return a || b },
		"intersection": func(a, b bool) bool { return a && b },
		"difference":   func(a, b bool) bool { return a && !b },
		"symmetric_difference": func(a, b bool) bool {
			return a != b
		},
		"first": func(a, _ bool) bool { return a },
	}
	for _, rank := range []int{1, 2, 3} {
		shape := []int{4, 6, 8}[:rank]
		formats := formatsOf(rank)
		for n, format := range formats {
			second := formats[(n+1)%len(formats)]
			dense, s, u := typeOf(shape, ""), typeOf(shape, format), typeOf(shape, second)
			if !strings.Contains(s, "nnz") || !strings.Contains(u, "nnz") { // they store every element
				continue
			}
			blocks := strings.Contains(s+u, "floordiv") || strings.Contains(s+u, "bsr") || strings.Contains(s+u, ": dense)")
			for _, p := range []float64{0, 0.2, 0.6, 1} {
				x, y := tensor.New(types.F64, shape...), tensor.New(types.F64, shape...)
				for i := range x.Len() {
					if rng.Float64() < p {
						x.SetFloat(i, rng.Float64()+0.5)
					}
					if rng.Float64() < 0.5 {
						y.SetFloat(i, rng.Float64()+0.5)
					}
				}
				for kind, keep := range keeps {
					if blocks && kind != "union" { // what is in a block is stored, 0 or not
						continue
					}
					text := strings.NewReplacer("KIND", kind, "DENSE", dense, " S", " "+s, "(S", "("+s, " U", " "+u, "(U", "("+u, "OF", strings.Replace(s, "f64", "i8", 1), "CODES", strings.Replace(dense, "f64", "i8", 1), "DIMS", numbered("%d", rank)).Replace(
						`func.func @f(%a: DENSE, %b: DENSE) -> (DENSE, DENSE, CODES, DENSE, DENSE) {
  %s = dm.convert_format %a : (DENSE) -> S
  %u = dm.convert_format %b : (DENSE) -> U
  %x, %y, %of = dm.merge KIND %s, %u : (S, U) -> (S, S, OF)
  %dx = dm.convert_format %x : (S) -> DENSE
  %dy = dm.convert_format %y : (S) -> DENSE
  %do = dm.convert_format %of : (OF) -> CODES
  %l, %ds, %du = dm.grad @loss %s, %u, wrt = [0, 1] : (S, U) -> (tensor<f64>, S, U)
  %ga = dm.convert_format %ds : (S) -> DENSE
  %gb = dm.convert_format %du : (U) -> DENSE
  return %dx, %dy, %do, %ga, %gb : DENSE, DENSE, CODES, DENSE, DENSE
}

func.func private @loss(%s: S, %u: U) -> tensor<f64> {
  %x, %y, %of = dm.merge KIND %s, %u : (S, U) -> (S, S, OF)
  %z = dm.mul %x, %y : S
  %d = dm.sub %z, %x : S
  %e = dm.sub %d, %y : S
  %l = dm.reduce add %e, dims = [DIMS] : (S) -> tensor<f64>
  return %l : tensor<f64>
}`)
					out := run(t, text, x, y)
					for i := range x.Len() {
						a, b := x.Float(i) != 0, y.Float(i) != 0
						var want [5]float64
						if keep(a, b) {
							want[0], want[1] = x.Float(i), y.Float(i)
							for k, is := range []bool{a, b} {
								if is {
									want[2] += float64(1 + k)
									want[3+k] = []float64{y.Float(i), x.Float(i)}[k] - 1
								}
							}
						}
						for k, w := range want {
							if blocks && k > 1 {
								continue
							}
							if g := out[k].Float(i); math.Abs(g-w) > 1e-12 {
								t.Fatalf("%s of %s and %s, %g stored: result %d at %d is %g, want %g\n%s", kind, format, second, p, k, i, g, w, text)
							}
						}
					}
				}
			}
		}
	}
}

// TestSparseFilter compares what a mask keeps, in the same format and another one, and reductions over what is stored, with dense ones.
func TestSparseFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, format := range formatsOf(2) {
		s := typeOf([]int{4, 6}, format)
		if !strings.Contains(s, "nnz") {
			continue
		}
		typ, err := sparse.ParseType(s)
		if err != nil {
			t.Fatal(err)
		}
		var names, ts []string
		for i, c := range typ.Components() {
			names, ts = append(names, fmt.Sprintf("%%p%d", i)), append(ts, c.Tensor.String())
		}
		x := tensor.New(types.F64, 4, 6)
		for i := range x.Len() {
			if rng.IntN(2) == 0 {
				x.SetFloat(i, -1-rng.Float64())
				if rng.IntN(2) == 0 {
					x.SetFloat(i, 1+rng.Float64())
				}
			}
		}
		text := strings.NewReplacer(" S", " "+s, "(S", "("+s, "PARTS", strings.Join(names, ", "), "TYPES", strings.Join(ts, ", "), "LAST", names[len(names)-1], "VALUES", typ.Values().String(), "CSR", "tensor<4x6xf64, #dm.coo<nnz = 27>>").Replace(
			`func.func @f(%a: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xf64>, tensor<4xf64>) {
  %s = dm.convert_format %a : (tensor<4x6xf64>) -> S
  PARTS = dm.unpack %s : (S) -> (TYPES)
  %c = dm.constant dense<0.5> : tensor<f64>
  %m = dm.compare gt LAST, %c : (tensor<VALUESxf64>, tensor<f64>) -> tensor<VALUESxi1>
  %k = dm.filter %s, %m : (S, tensor<VALUESxi1>) -> S
  %o = dm.filter %s, %m : (S, tensor<VALUESxi1>) -> CSR
  %y = dm.convert_format %k : (S) -> tensor<4x6xf64>
  %z = dm.convert_format %o : (CSR) -> tensor<4x6xf64>
  %r = dm.reduce min %k, dims = [1], over = stored : (S) -> tensor<4xf64>
  return %y, %z, %r : tensor<4x6xf64>, tensor<4x6xf64>, tensor<4xf64>
}`)
		out := run(t, text, x)
		blocks := strings.Contains(s, "floordiv") || strings.Contains(s, "bsr") || strings.Contains(s, ": dense)")
		for i := range 4 {
			least := math.Inf(1)
			for j := range 6 {
				w := max(x.Float(i*6+j), 0)
				if w > 0 {
					least = min(least, w)
				}
				for k := range 2 {
					if g := out[k].Float(i*6 + j); g != w {
						t.Fatalf("%s: result %d at %d, %d is %g, want %g\n%s", format, k, i, j, g, w, text)
					}
				}
			}
			if g := out[2].Float(i); !blocks && g != least {
				t.Fatalf("%s: the least element that is stored of row %d is %g, want %g\n%s", format, i, g, least, text)
			}
		}
	}
}
