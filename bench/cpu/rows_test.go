package main

import (
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// Every row that is no model is a valid program, and its name is its own.
func TestRows(t *testing.T) {
	rows, err := table(".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range rows {
		if seen[w.name] {
			t.Errorf("two rows are called %s", w.name)
		}
		seen[w.name] = true
		p := program.Load(source.New(w.name, w.text), program.Options{})
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
