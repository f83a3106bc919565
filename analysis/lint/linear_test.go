package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// What lint does for each op, counted in allocations, does not grow with the length of a
// chain of ops that all have findings.
func TestLinear(t *testing.T) {
	chain := func(n int) float64 {
		var b strings.Builder
		b.WriteString("func.func @f(%v0: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {\n")
		for i := range n {
			fmt.Fprintf(&b, "  %%v%d = dm.add %%v%d, %%y : tensor<1024xf32>\n", i+1, i)
		}
		fmt.Fprintf(&b, "  return %%v%d : tensor<1024xf32>\n}\n", n)
		p := program.Load(source.New("f.dmir", b.String()), program.Options{})
		if p.HasErrors() {
			t.Fatal(p.Diags)
		}
		return testing.AllocsPerRun(1, func() {
			if got := len(lint.Run(t.Context(), p, lint.Options{})); got < n-1 {
				t.Errorf("%d findings of %d ops", got, n)
			}
		}) / float64(n)
	}
	if small, large := chain(250), chain(2000); large > 1.2*small {
		t.Errorf("%.0f allocations for each of 2000 ops, %.0f of 250", large, small)
	}
}
