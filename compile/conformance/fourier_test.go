package conformance

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// dft is the transform of x by its definition.
func dft(x []complex128, sign float64) []complex128 {
	n := len(x)
	out := make([]complex128, n)
	for k := range out {
		for j, v := range x {
			out[k] += v * cmplx.Exp(complex(0, sign*2*math.Pi*float64(j*k%n)/float64(n)))
		}
	}
	return out
}

// transforms is a program with a function for the transform of each kind of 2 × n numbers.
func transforms(n int) string {
	half := n/2 + 1
	text := ""
	for _, k := range []struct{ kind, from, to string }{
		{"FFT", fmt.Sprintf("2x%dxcomplex<f64>", n), fmt.Sprintf("2x%dxcomplex<f64>", n)},
		{"IFFT", fmt.Sprintf("2x%dxcomplex<f64>", n), fmt.Sprintf("2x%dxcomplex<f64>", n)},
		{"RFFT", fmt.Sprintf("2x%dxf64", n), fmt.Sprintf("2x%dxcomplex<f64>", half)},
		{"IRFFT", fmt.Sprintf("2x%dxcomplex<f64>", half), fmt.Sprintf("2x%dxf64", n)},
	} {
		text += fmt.Sprintf("func.func @%s(%%x: tensor<%s>) -> tensor<%s> {\n  %%y = stablehlo.fft %%x, type = %s, length = [%d] : (tensor<%s>) -> tensor<%s>\n  return %%y : tensor<%s>\n}\n",
			k.kind, k.from, k.to, k.kind, n, k.from, k.to, k.to)
	}
	return text
}

// Transforms of smooth, prime and mixed lengths are those of the definition.
func TestFourier(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 30, 31, 33, 64, 97, 131, 262, 1000} {
		p := program.Load(source.New("fft.mlir", transforms(n)), program.Options{})
		noErrors(t, p)
		x := make([]complex128, 2*n)
		for i := range x {
			x[i] = complex(math.Sin(float64(i*i+1)), math.Cos(float64(3*i*i)))
		}
		half := n/2 + 1
		reals := make([]complex128, 2*n)
		for i, v := range x {
			reals[i] = complex(real(v), 0)
		}
		var spectrum, symmetric []complex128 // half of it, and all with the other half
		for b := range 2 {
			row := dft(reals[b*n:(b+1)*n], -1)
			spectrum, symmetric = append(spectrum, row[:half]...), append(symmetric, row...)
		}
		for _, c := range []struct {
			kind     string
			in, want []complex128
			rows     int // of the result
			scale    float64
		}{
			{"FFT", x, append(dft(x[:n], -1), dft(x[n:], -1)...), n, 1},
			{"IFFT", x, append(dft(x[:n], 1), dft(x[n:], 1)...), n, 1 / float64(n)},
			{"RFFT", reals, spectrum, half, 1},
			{"IRFFT", spectrum, append(dft(symmetric[:n], 1), dft(symmetric[n:], 1)...), n, 1 / float64(n)},
		} {
			m, fn, err := driver.Pick(p, c.kind)
			if err != nil {
				t.Fatal(err)
			}
			parts := []*tensor.Tensor{tensor.New(types.F64, 2, len(c.in)/2), tensor.New(types.F64, 2, len(c.in)/2)}
			for i, v := range c.in {
				parts[0].F64[i], parts[1].F64[i] = real(v), imag(v)
			}
			r, err := interp.Run(t.Context(), m, fn, parts[:len(fn.Args)], interp.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range c.want {
				got := complex(r.Outputs[0].F64[i], imag(w)*c.scale)
				if len(r.Outputs) > 1 {
					got = complex(r.Outputs[0].F64[i], r.Outputs[1].F64[i])
				}
				if d := cmplx.Abs(got - w*complex(c.scale, 0)); d > 1e-10*math.Sqrt(float64(n)) {
					t.Fatalf("%s of %d: element %d is %v, not %v", c.kind, n, i, got, w*complex(c.scale, 0))
				}
			}
		}
	}
}

// A transform of n elements takes n log n operations, of a prime number too.
func TestFourierWork(t *testing.T) {
	for _, n := range []int{1 << 10, 3 * 5 * 7 * 11, 4099, 1 << 17, 1 << 20} {
		p := program.Load(source.New("fft.mlir", transforms(n)), program.Options{})
		noErrors(t, p)
		for _, fn := range p.Modules[0].Funcs {
			work, bytes := int64(0), 0
			ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
				flop, _ := op.FLOP(o).Int()
				work += flop
				if d, ok := o.Attr("value").(*types.Dense); ok {
					bytes += len(d.Bytes())
				}
				return true
			})
			most := 1000 * float64(n) * math.Log2(float64(n))
			if float64(work) > most {
				t.Errorf("@%s of %d elements takes %d operations, more than %.0f", fn.Name, n, work, most)
			}
			if bytes > 400*n {
				t.Errorf("@%s of %d elements reads %d bytes of constants", fn.Name, n, bytes)
			}
		}
	}
}
