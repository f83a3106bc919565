package cost_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// The table of functions that call each other one in another takes as many allocations
// for each of many as for each of few.
func TestLinearCalls(t *testing.T) {
	m, _ := machine.Lookup("h200")
	calls := func(n int) float64 {
		var b strings.Builder
		b.WriteString("func.func private @f0(%x: tensor<f32>) -> tensor<f32> {\n  %y = dm.exp %x : tensor<f32>\n  return %y : tensor<f32>\n}\n")
		for i := range n {
			fmt.Fprintf(&b, "func.func private @f%d(%%x: tensor<f32>) -> tensor<f32> {\n  %%y = func.call @f%d(%%x) : (tensor<f32>) -> tensor<f32>\n  return %%y : tensor<f32>\n}\n", i+1, i)
		}
		p := program.Load(source.New("f.dmir", b.String()), program.Options{})
		if p.HasErrors() {
			t.Fatal(p.Diags)
		}
		return testing.AllocsPerRun(1, func() {
			for _, f := range cost.Module(p.Modules[0], nil) {
				if got := f.Launches(m); got != "1 kernel in one graph, 600 ns each" {
					t.Fatal(got)
				}
			}
		}) / float64(n)
	}
	if small, large := calls(250), calls(2000); large > 1.2*small {
		t.Errorf("%.0f allocations for each of 2000 functions, %.0f of 250", large, small)
	}
}
