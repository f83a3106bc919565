package cost_test

import (
	"path/filepath"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/program"
)

// Machines are comparable: no op of an example takes longer on the newer one of two that hardware has in this order.
func TestOrderOfMachines(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	pairs := [][2]string{{"h200", "h100"}, {"b200", "h200"}, {"a100-80", "a100-40"}, {"h100", "a100-80"}, {"hgx-h200", "dgx-h100"}, {"dgx-b200", "hgx-h200"}}
	compared := 0
	for _, file := range files {
		for _, f := range loadFile(t, file).Funcs {
			f.Walk(func(e *cost.Entry) {
				for _, pair := range pairs {
					a, b := e.Time(lookup(t, pair[0])), e.Time(lookup(t, pair[1]))
					if a.Known && b.Known {
						compared++
						if a.Ns > b.Ns*(1+1e-9) {
							t.Errorf("%s: %s takes %.0f ns on %s (%s), %.0f on %s (%s)", filepath.Base(file), e.Op.Name, a.Ns, pair[0], a.Bound, b.Ns, pair[1], b.Bound)
						}
					}
				}
			})
		}
	}
	if compared < 1000 {
		t.Errorf("only %d times compared", compared)
	}
}

// No kernel of a GPU takes less than a launch and the way to memory and back, and the bound is the largest term.
func TestLeastTime(t *testing.T) {
	f := only(t, load(t, "in.dmir", `func.func @main(%q: tensor<1x4x32x16xf32>, %k: tensor<1x4x32x16xf32>, %v: tensor<1x4x32x16xf32>, %slopes: tensor<4x1x32xf32>) -> tensor<1x4x32x16xf32> {
  %s2 = dm.mul %slopes, %slopes : tensor<4x1x32xf32>
  %b = dm.broadcast %s2, dims = [1, 2, 3] : (tensor<4x1x32xf32>) -> tensor<1x4x32x32xf32>
  %o = dm.attention %q, %k, %v, %b, causal = true : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x32xf32>) -> tensor<1x4x32x16xf32>
  return %o : tensor<1x4x32x16xf32>
}
`, program.Options{}))
	for _, name := range []string{"h100", "h200", "b200", "a100-80"} {
		m := lookup(t, name)
		for _, e := range f.Entries {
			got := e.Time(m)
			if got.Ns < m.Start()*1e9 || got.Ns < 1000 {
				t.Errorf("%s on %s takes %v", e.Op.Name, name, got)
			}
			terms, ok := e.TimeTerms(m)
			if !ok || terms.Ns() != got.Ns {
				t.Errorf("%s on %s: the terms %+v make %v ns, the time is %v", e.Op.Name, name, terms, terms.Ns(), got.Ns)
			}
		}
	}
}
