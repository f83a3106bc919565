package feature_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// Over the examples of all composites: the program at another level is a program
// with the same functions, and, expanded, has no composite left.
func TestViews(t *testing.T) {
	var examples []string
	for _, d := range op.All() {
		if d.Expand != nil {
			examples = append(examples, d.Example+"\n")
		}
	}
	p := program.Load(source.New("all.dmir", strings.Join(examples, "// -----\n")), program.Options{})
	if p.HasErrors() || len(p.Funcs) < 10 {
		t.Fatal(len(p.Funcs), p.Diags)
	}
	before := p.Src.Text()
	for name, view := range map[string]string{"generic": feature.Generic(p), "expanded": feature.Expanded(p)} {
		q := program.Load(source.New(name, view), program.Options{})
		if q.HasErrors() || len(q.Funcs) != len(p.Funcs) {
			t.Errorf("%s: %d functions of %d, %v\n%s", name, len(q.Funcs), len(p.Funcs), q.Diags, view)
		}
		left := 0
		for _, m := range q.Modules {
			ir.Walk(m.Ops, func(o *ir.Op) bool {
				if d := op.Of(o); d != nil && d.Expand != nil {
					left++
				}
				return true
			})
		}
		if (left == 0) != (name == "expanded") {
			t.Errorf("%s: %d composites", name, left)
		}
	}
	if q := program.Load(source.New("again.dmir", before), program.Options{}); feature.Generic(q) != feature.Generic(p) {
		t.Error("looking at a program changes it")
	}
}

// Values keep their names, also in a kernel, and what is no composite stays.
func TestExpanded(t *testing.T) {
	p := program.Load(source.New("f.dmir", `func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %act = dm.kernel -> tensor<2x4xf32> {
    %inner = dm.silu %x : tensor<2x4xf32>
    dm.yield %inner : tensor<2x4xf32>
  }
  return %act : tensor<2x4xf32>
}
`), program.Options{})
	const want = `func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %act = dm.kernel -> tensor<2x4xf32> {
    %0 = dm.neg %x : tensor<2x4xf32>
    %1 = dm.exp %0 : tensor<2x4xf32>
    %2 = dm.constant dense<1.0> : tensor<f32>
    %3 = dm.constant dense<1.0> : tensor<f32>
    %4 = dm.add %1, %3 : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %5 = dm.div %2, %4 : (tensor<f32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %inner = dm.mul %x, %5 : tensor<2x4xf32>
    dm.yield %inner : tensor<2x4xf32>
  }
  return %act : tensor<2x4xf32>
}
`
	if got := feature.Expanded(p); got != want {
		t.Errorf("expanded:\n%s\nwant:\n%s", got, want)
	}
}

// The view of a program with errors, or of one that cannot be shown, is a comment
// that reports where.
func TestBrokenView(t *testing.T) {
	p := program.Load(source.New("f.dmir", "func.func @f(%x: tensor<4xf32>) {\n  %y = dm.exp %z : tensor<4xf32>\n  return\n}\n"), program.Options{})
	for _, view := range []string{feature.Generic(p), feature.Expanded(p)} {
		if !strings.HasPrefix(view, "// This program has errors") || !strings.Contains(view, "// 2:15: ") {
			t.Errorf("%s", view)
		}
	}
}
