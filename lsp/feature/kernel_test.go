package feature_test

import (
	"strings"
	"testing"
	"unicode/utf8"

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
		"measured":         {feature.KernelTime{Lines: []int{2, 3}, Ns: 12_300, PredictedNs: 11_000, RoofNs: 10_332}, "12.3 µs · predicted 11.0 µs | · 84 % of roofline", "lines 2–3"},
		"of another":       {feature.KernelTime{Lines: []int{2}, Ns: 12_300, PredictedNs: 11_000, RoofNs: 10_332, Foreign: true}, "12.3 µs · predicted 11.0 µs", "12.3 µs"},
		"long":             {feature.KernelTime{Lines: []int{2}, Ns: 123_456, PredictedNs: 123_456, RoofNs: 123_456}, "123 µs · predicted 123 µs | · 100 % of roofline", "line 2"},
		"counted":          {feature.KernelTime{Lines: []int{2}, Moved: 8192, Counted: true, CountedBytes: 8192}, "counted 8.19 kB | · as predicted", "8.19 kB"},
		"counted, differs": {feature.KernelTime{Lines: []int{2}, Moved: 4096, Counted: true, CountedBytes: 8192, Differs: "read twice"}, "counted 8.19 kB | · predicted 4.10 kB", "read twice"},
		"a fill":           {feature.KernelTime{Ns: 12_300}, "", ""},
		"nothing seen":     {feature.KernelTime{Lines: []int{2}}, "", ""},
		"no such line":     {feature.KernelTime{Lines: []int{99}, Ns: 1}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			without := feature.Hints(p, nil, source.Span{End: p.Src.Len()})
			with := feature.Hints(p, &feature.Times{Func: "f", Device: "NVIDIA H200", Kernels: []feature.KernelTime{c.kernel}}, source.Span{End: p.Src.Len()})
			var labels []string
			for _, h := range with[len(without):] {
				labels = append(labels, h.Label)
				if utf8.RuneCountInString(h.Label) >= 30 || p.Src.Pos(h.Offset).Line != 1 || !strings.Contains(h.Tooltip, c.tip) {
					t.Errorf("hint %+v", h)
				}
			}
			if got := strings.Join(labels, " | "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := feature.LineList([]int{3, 4, 5, 9}); got != "lines 3–5, 9" {
		t.Error(got)
	}
}
