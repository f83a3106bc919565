package microbatch_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/tensor"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// Random programs are cut wherever they can be, whatever they compute, and refused with a diagnostic otherwise.
func TestRandomPrograms(t *testing.T) {
	need.Long(t)
	cut, refused := 0, 0
	for seed := range uint64(600) {
		text := randprog.Program(seed, randprog.Options{Gradient: seed%2 == 1})
		tolerance := 2e-3
		if strings.Contains(text, "f16") { // parts of sums are rounded
			tolerance = 1
		}
		name := passtest.Unit(t, text, "", nil).Func.Name
		whole, err := passed(t, text, 0)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, n := range []int{2, 3} {
			u, err := passed(t, text, n)
			var e *pass.Error
			if errors.As(err, &e) && e.Code == "DM834" && e.Msg != "" && e.Help != "" {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("@%s in %d: %v\n%s", name, n, err, text)
			}
			cut++
			args, err := interp.Inputs(t.Context(), whole.Func, nil, seed, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, got := run(t, whole, args, 1)[0], run(t, u, args, 1)[0]
			for i := range want {
				if far := apart(want[i], got[i]); far > tolerance {
					t.Fatalf("@%s in %d: result %d differs by %g\n%s\n%s", name, n, i, far, text, passtest.Text(t, u))
				}
			}
		}
	}
	if cut < 100 || refused < 50 {
		t.Errorf("%d programs were cut, and %d refused", cut, refused)
	}
}

// apart is the largest difference of two elements, relative to 1 and the element.
func apart(want, got *tensor.Tensor) float64 {
	if want.Type() != got.Type() {
		return math.Inf(1)
	}
	most := 0.0
	for i := range want.Len() {
		a, b := want.Float(i), got.Float(i)
		if math.IsNaN(a) != math.IsNaN(b) {
			return math.Inf(1)
		}
		if a != b && !math.IsNaN(a) {
			most = max(most, math.Abs(a-b)/(1+math.Abs(a)))
		}
	}
	return most
}
