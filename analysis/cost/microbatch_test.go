package cost_test

import (
	"os"
	"strings"
	"testing"

	"dmir/analysis/program"
)

// The cost of a step in micro-batches is that of all of them: as many FLOP, the weights read for each, and a peak that
// falls with their number.
func TestMicrobatches(t *testing.T) {
	text, err := os.ReadFile("../../examples/mlp_accumulate.dmir")
	if err != nil {
		t.Fatal(err)
	}
	large := strings.ReplaceAll(string(text), "tensor<256", "tensor<4096")
	opts := program.Options{Target: lookup(t, "h200")}
	var flop, peak, moved int64
	for i, n := range []string{"1", "2", "4", "16"} {
		p := load(t, "step.dmir", strings.ReplaceAll(large, "dm.microbatches = 4", "dm.microbatches = "+n), opts)
		f := p.Funcs[0].PerDevice()
		if cut := n != "1"; f.IsDivided() != cut {
			t.Fatalf("%s micro-batches: divided is %v", n, f.IsDivided())
		}
		work, _ := f.FLOP.Int()
		most, _ := f.Peak().Int()
		bytes, _ := f.Moved().Int()
		if i > 0 {
			if float64(work) < 0.99*float64(flop) || float64(work) > 1.05*float64(flop) {
				t.Errorf("%s micro-batches: %d FLOP, and %d before", n, work, flop)
			}
			if most >= peak {
				t.Errorf("%s micro-batches: a peak of %d bytes, and %d before", n, most, peak)
			}
			if i > 1 && bytes <= moved {
				t.Errorf("%s micro-batches: %d bytes moved, and %d before", n, bytes, moved)
			}
		}
		flop, peak, moved = work, most, bytes
		var lines int64
		for _, e := range f.Entries {
			own, _ := e.FLOP.Int()
			lines += own
		}
		if lines != work {
			t.Errorf("%s micro-batches: the lines have %d FLOP, the step %d", n, lines, work)
		}
	}
}

// A step that cannot be cut is costed as it is written, with the reason.
func TestUncutMicrobatches(t *testing.T) {
	p := load(t, "step.dmir", `func.func @f(%x: tensor<6x3xf32>, %w: tensor<3x3xf32> {dm.init = 1}) -> tensor<6x3xf32> attributes {dm.microbatches = 4} {
  %p = dm.matmul %x, %w : (tensor<6x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
  return %p : tensor<6x3xf32>
}
`, program.Options{Target: lookup(t, "h200")})
	d, problem := p.Funcs[0].Divide()
	if d != nil || problem == nil || !strings.Contains(problem.Msg, "of 4 micro-batches, with 2 each but for the last, some would have none") || !strings.Contains(problem.Help, "1, 2, 3 or 6") {
		t.Errorf("divided %v, problem %+v", d != nil, problem)
	}
}
