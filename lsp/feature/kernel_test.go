package feature_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// What was measured of kernels stands behind the first of the lines that they
// came from, beside what was predicted.
func TestKernelHints(t *testing.T) {
	p := program.Load(source.New("f.dmir", `func.func @f(%a: tensor<1024xf32>) -> tensor<1024xf32> {
  %e = dm.exp %a : tensor<1024xf32>
  %r = dm.relu %e : tensor<1024xf32>
  return %r : tensor<1024xf32>
}
`), program.Options{})
	for name, c := range map[string]struct {
		kernel feature.KernelTime
		want   string
		tip    string
	}{
		"measured":         {feature.KernelTime{Lines: []int{2, 3}, Ns: 12_300, PredictedNs: 11_000, RoofNs: 10_332}, "12.3µs•0B", "84 %"},
		"of another":       {feature.KernelTime{Lines: []int{2}, Ns: 12_300, PredictedNs: 11_000, RoofNs: 10_332, Foreign: true}, "12.3µs•0B", "12.3 µs"},
		"long":             {feature.KernelTime{Lines: []int{2}, Ns: 123_456, PredictedNs: 123_456, RoofNs: 123_456}, "123µs•0B", "100 %"},
		"counted":          {feature.KernelTime{Lines: []int{2}, PredictedNs: 5000, Moved: 8192, Counted: true, CountedBytes: 8192}, "5.00µs=8.2kB", "8.19 kB"},
		"counted, differs": {feature.KernelTime{Lines: []int{2}, PredictedNs: 5000, Moved: 4096, Counted: true, CountedBytes: 8192, Differs: "read twice"}, "5.00µs≠8.2kB", "read twice"},
		"a fill":           {feature.KernelTime{Ns: 12_300}, "1.40µs 8.2kB", "elementwise"},
		"nothing seen":     {feature.KernelTime{Lines: []int{2}}, "1.40µs 8.2kB", "elementwise"},
		"no such line":     {feature.KernelTime{Lines: []int{99}, Ns: 1}, "1.40µs 8.2kB", "elementwise"},
	} {
		t.Run(name, func(t *testing.T) {
			hints := feature.Hints(p, &feature.Times{Func: "f", Device: "NVIDIA H200", Kernels: []feature.KernelTime{c.kernel}}, nil, source.Span{End: p.Src.Len()})
			if len(hints) != 3 {
				t.Fatalf("%d hints", len(hints))
			}
			h := hints[1]
			if h.Label.String() != c.want || p.Src.Pos(h.Offset).Line != 1 || !strings.Contains(h.Tooltip, c.tip) {
				t.Errorf("hint %+v, want %s", h, c.want)
			}
		})
	}
	if got := feature.LineList([]int{3, 4, 5, 9}); got != "lines 3–5, 9" {
		t.Error(got)
	}
}
