package main

import (
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// Every row that is no model is a valid program, and its name is its own.
func TestRows(t *testing.T) {
	rows, err := predictedRows(".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"transpose_021", "transpose_3210", "example_bert_encoder", "add_2^27"} {
		if !slices.ContainsFunc(rows, func(w workload) bool { return w.name == name }) {
			t.Errorf("there is no row %s", name)
		}
	}
	seen := map[string]bool{}
	for _, w := range rows {
		if seen[w.name] {
			t.Errorf("two rows are called %s", w.name)
		}
		seen[w.name] = true
		p := program.Load(source.New(w.name, w.text), program.Options{Bind: w.bind})
		if p.HasErrors() {
			t.Errorf("%s: %s\n%s", w.name, p.Diags[0].Message, w.text)
		} else if _, _, err := driver.Pick(p, w.fn); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// Results agree if they differ by little of their root mean square.
func TestAgree(t *testing.T) {
	x := func(values ...float64) []*tensor.Tensor {
		return []*tensor.Tensor{tensor.FromFloats(types.F32, []int{len(values)}, values)}
	}
	b := &built{}
	for _, c := range []struct {
		got, want []*tensor.Tensor
		agree     bool
	}{
		{x(1, 2), x(1, 2), true},
		{x(1, 2.0001), x(1, 2), true},
		{x(1, 2.001), x(1, 2), false},
		{x(1), x(1, 2), false},
		{nil, x(1), true},
	} {
		if err := b.agree(c.got, c.want); (err == nil) != c.agree {
			t.Errorf("%v and %v: %v", c.got, c.want, err)
		}
	}
}

// A summary counts kernels and rows apart, and a step without a cost is part of the kernel that it finishes.
func TestSummary(t *testing.T) {
	kernels := finished([]compared{{Kernel: "y", Predicted: 10e3, Measured: 6e3}, {Kernel: "y_columns", Measured: 4e3}, {Kernel: "z", Predicted: 5e3, Measured: 10e3}})
	if len(kernels) != 2 || kernels[0].Measured != 10e3 {
		t.Fatalf("%+v", kernels)
	}
	all := []compared{{Row: "sum_1", Predicted: 15e3, Measured: 20e3, Kernels: 2}}
	for _, k := range kernels {
		k.Row = "sum_1"
		all = append(all, k)
	}
	for i := range all {
		all[i].Threads = 1
	}
	got := summaryOf(all)
	for _, want := range []string{"| sum | 1 | 2 | 50 % | 50 % | 50 % | 1 | 25 % | 25 % | 0 % |\n", "| all |  | 2 | 50 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q:\n%s", want, got)
		}
	}
	if got := detailsOf(all); !strings.Contains(got, "| sum_1 | **all 2** | 1 | 15.0 µs | 20.0 µs | -25 % |\n") || strings.Index(got, "| z |") > strings.Index(got, "| y |") {
		t.Errorf("got %s", got)
	}
}
