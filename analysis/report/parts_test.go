package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"dmir/analysis/report"
)

// Pages of what devices divide call the components of sparse tensors by the tensor that they are of and what they store, never as the compiler does.
func TestComponentNames(t *testing.T) {
	for _, c := range []struct {
		format string
		want   []string
	}{
		{"csr", []string{"%a's positions", "%a's coordinates", "%a's values"}},
		{"coo", []string{"%a's positions", "%a's coordinates of level 0", "%a's coordinates of level 1", "%a's values"}},
	} {
		p := load("divided.dmir", `dm.mesh @pod {data = 4}
func.func @f(%a: tensor<32x16xf32, #dm.`+c.format+`<nnz = 64>> {dm.sharding = #dm.at<split = @pod[{data}, {}]>}, %x: tensor<16x8xf32>) -> tensor<32x8xf32> {
  %y = dm.matmul %a, %x : (tensor<32x16xf32, #dm.`+c.format+`<nnz = 64>>, tensor<16x8xf32>) -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}
`)
		for _, kind := range []string{report.KindGraph, report.KindMemory, report.KindRoofline, report.KindTimeline} {
			d, err := report.Build(p, kind, "f", report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			page := string(text)
			if strings.Contains(page, `"%a.`) {
				t.Errorf("%s, %s: a component has the compiler's name: %s", c.format, kind, page[strings.Index(page, `"%a.`):][:40])
			}
			for _, name := range c.want {
				if (kind == report.KindGraph || kind == report.KindMemory) && !strings.Contains(page, `"`+name+`"`) {
					t.Errorf("%s, %s: nothing is called %s", c.format, kind, name)
				}
			}
		}
	}
}
