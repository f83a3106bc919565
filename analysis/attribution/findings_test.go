package attribution

import (
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// A finding stands at the person's line: of a constant, which JAX places at the call of the compiled function, where it is used. Where the
// remedy is called already, in the line or around it, there is none.
func TestFindings(t *testing.T) {
	const model = "C = table()\ndef f(x):\n    y = x * C\n    z = jax.nn.dot_product_attention(y, y, y); w = y + 1\n    return z\nmain(f)\n"
	const text = `func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c = dm.constant dense<2.0> : tensor<4x4xf32> loc("jit(f)"("<module>"("model.py":6:0 to :7)))
  %y = dm.mul %x, %c : tensor<4x4xf32> loc("jit(f)/mul"("f"("model.py":3:8 to :13)))
  %z = dm.attention %y, %y, %y : tensor<4x4xf32> loc("jit(f)/dot_general"("f"("model.py":4:8 to :45)))
  %w = dm.add %z, %y : tensor<4x4xf32> loc("jit(f)/add"("f"("model.py":4:51 to :56)))
  %v = dm.exp %w : tensor<4x4xf32> loc("net/scaled_dot_product_attention: aten"("f"("model.py":5:0)))
  %u = dm.tanh %v : tensor<4x4xf32>
  %s = dm.transpose %u, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("net/up: torch.nn.modules.linear.Linear/linear: aten.linear.default"("f"("model.py":3:0)))
  %t = dm.neg %u : tensor<4x4xf32> loc("jit(f)/neg"("f"("model.py":5:4 to 2147483647:9)))
  return %u : tensor<4x4xf32>
}
`
	p := program.Load(source.New("f.dmir", text), program.Options{})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	s := &Sources{Root: t.TempDir(), Trace: &Trace{Files: []TracedFile{{Path: "model.py", Name: "model.py", Text: model}}}}
	for _, c := range []struct{ code, op, want string }{
		{"DM221", "%c", "x * C"},
		{"DM210", "%y", "x * C"},
		{"DM210", "%z", ""},
		{"DM207", "%z", "jax.nn.dot_product_attention(y, y, y)"},
		{"DM210", "%w", "y + 1"},
		{"DM210", "%v", ""},
		{"DM207", "%u", ""},
		{"DM204", "%s", ""},
		{"DM210", "%s", "y = x * C"},
		{"DM210", "%t", "return z"},
	} {
		at := strings.Index(text, c.op+" = ") + len(c.op+" = ")
		d := diag.Diagnostic{Code: c.code, Span: source.Span{Start: at, End: at + 3}}
		got := ""
		for _, f := range s.Findings(p, []diag.Diagnostic{d}) {
			got = f.Src.Slice(f.Span)
			if f.Help != lint.Lookup(c.code).Python {
				t.Errorf("the help of %s is %q", c.code, f.Help)
			}
		}
		if got != c.want {
			t.Errorf("%s at %s stands at %q, not %q", c.code, c.op, got, c.want)
		}
	}
}
