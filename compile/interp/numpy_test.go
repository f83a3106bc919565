package interp

import (
	"context"
	"fmt"
	"os"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Results against those that NumPy computes in float64: testdata/numpy_cases.py
// makes the functions, the inputs and the results.
func TestNumPy(t *testing.T) {
	text, err := os.ReadFile("testdata/numpy_cases.dmir")
	if err != nil {
		t.Fatal(err)
	}
	m := read(t, string(text))
	npz, err := tensor.OpenNPZ("testdata/numpy_cases.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer npz.Close()
	load := func(t *testing.T, name string, elem types.Elem) *tensor.Tensor {
		t.Helper()
		shape, _, err := npz.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := npz.Read(name, elem, shape)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, d := range verify.Module(m) {
		t.Errorf("line %d: %s", m.Src.Pos(d.Span.Start).Line+1, d.Message)
	}
	expanded := 0
	for _, fn := range m.Funcs {
		t.Run(fn.Name, func(t *testing.T) {
			var args []*tensor.Tensor
			for i, a := range fn.Args {
				args = append(args, load(t, fmt.Sprintf("%s.in%d", fn.Name, i), a.Tensor().Elem))
			}
			compare := func(how string) {
				r, err := Run(context.Background(), m, fn, args, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range r.Outputs {
					want := load(t, fmt.Sprintf("%s.out%d", fn.Name, i), got.Elem)
					allowed := map[types.Elem]float64{types.F64: 1e-12, types.F32: 2e-5, types.F16: 1e-3}[got.Elem]
					if diff := tensor.MaxDiff(got, want); !(diff <= allowed) {
						t.Errorf("%s, result %d is off by %g\n got %v\nwant %v", how, i, diff, got, want)
					}
				}
			}
			compare("as it is")
			if expandAll(t, fn.Body) > 0 {
				expanded++
				compare("expanded")
			}
		})
	}
	t.Logf("%d functions, %d of them expanded as well", len(m.Funcs), expanded)
}
