package program_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// TestLiteralOperands: a number in place of an operand is one finding that names
// dm.constant; its fix, applied, leaves no finding.
func TestLiteralOperands(t *testing.T) {
	for _, c := range []struct{ line, constant, op string }{
		{"dm.mul %x, 2.0 : tensor<4x8xf32>", "dense<2.0> : tensor<f32>", "dm.mul %x, %c0 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>"},
		{"dm.mul 2.0, %x : tensor<4x8xf32>", "dense<2.0> : tensor<f32>", "dm.mul %c0, %x : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>"},
		{"dm.mul %x, 2 : tensor<4x8xf32>", "dense<2.0> : tensor<f32>", "dm.mul %x, %c0 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>"},
		{"dm.sub %x, -1e-3 : (tensor<4x8xf32>, f32) -> tensor<4x8xf32>", "dense<-1e-3> : tensor<f32>", "dm.sub %x, %c0 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>"},
		{"dm.max %x, 0.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>", "dense<0.0> : tensor<f32>", "dm.max %x, %c0 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>"},
		{`"dm.mul"(%x, -2.0) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>`, "dense<-2.0> : tensor<8xf32>", `"dm.mul"(%x, %c0) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>`},
		{"dm.add %i, 3 : tensor<4xi32>", "dense<3> : tensor<i32>", "dm.add %i, %c0 : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>"},
		{"dm.select %p, %x, 0.0 : (tensor<4x8xi1>, tensor<4x8xf32>) -> tensor<4x8xf32>", "dense<0.0> : tensor<f32>", "dm.select %p, %x, %c0 : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>"},
		{"dm.exp 2.0 : tensor<4x8xf32>", "dense<2.0> : tensor<4x8xf32>", "dm.exp %c0 : tensor<4x8xf32>"},
		{"dm.add %i, 3.5 : tensor<4xi32>", "", ""},
		{"dm.add %i, 3", "", ""},
		{"dm.add %x, \"2.0\" : tensor<4x8xf32>", "", ""},
	} {
		text := "func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi32>, %p: tensor<4x8xi1>) {\n  %y = " + c.line + "\n  return\n}\n"
		d := finding(t, text)
		if c.constant == "" {
			if len(d.Fixes) > 0 {
				t.Errorf("%s: %s is offered", c.line, d.Fixes[0].Title)
			}
			continue
		}
		if len(d.Fixes) != 1 || !strings.Contains(d.Help, "dm.constant") {
			t.Errorf("%s: help %q, %d fixes", c.line, d.Help, len(d.Fixes))
			continue
		}
		after := edited(text, d.Fixes[0].Edits)
		if want := "  %c0 = dm.constant " + c.constant + "\n  %y = " + c.op + "\n"; !strings.Contains(after, want) {
			t.Errorf("%s: the fix gives\n%swant\n%s", c.line, after, want)
		}
		if p := program.Load(source.New("in.dmir", after), program.Options{}); len(p.Diags) > 0 {
			t.Errorf("%s: after the fix: %s", c.line, p.Diags[0].Message)
		}
	}
}

// TestFormOfOp: an op that is not written as its form has it is one finding, which shows the op written.
func TestFormOfOp(t *testing.T) {
	for line, want := range map[string]string{
		`dm.matmul %x, %x "ij,jk->ik" : tensor<4x4xf32>`: "%y = dm.matmul %x, %w, ",
		"dm.softmax %x dim = 1 : tensor<4x4xf32>":        "%y = dm.softmax %x, dim = 1 : ",
		"dm.exp(%x) : tensor<4x4xf32>":                   "%y = dm.exp %x : ",
		"dm.exp %x, : tensor<4x4xf32>":                   "%y = dm.exp %x : ",
		"test.op %x dim = 1 : tensor<4x4xf32>":           "",
	} {
		p := program.Load(source.New("in.dmir", "func.func @f(%x: tensor<4x4xf32>) {\n  %0 = "+line+"\n  return\n}\n"), program.Options{})
		shown := len(p.Diags) == 1 && strings.HasPrefix(p.Diags[0].Help, "an example is `"+want)
		if want != "" && !shown || want == "" && slices.ContainsFunc(p.Diags, func(d diag.Diagnostic) bool { return strings.Contains(d.Help, "example") }) {
			t.Errorf("%s: %+v, want the example %s", line, p.Diags, want)
		}
	}
}

// Names of constants are new, and differ for findings that are mended together.
func TestLiteralOperandNames(t *testing.T) {
	text := `func.func @f(%c: tensor<4xf32>, %c7: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dm.map %c : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = dm.mul %a, 0.5 : f32
    dm.yield %b : f32
  }
  %1 = dm.clamp -1.0, %0, 1.0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
`
	for range 3 {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		var edits []diag.Edit
		for _, d := range p.Diags {
			for _, f := range d.Fixes {
				edits = append(edits, f.Edits...)
			}
		}
		text = edited(text, edits)
	}
	if p := program.Load(source.New("in.dmir", text), program.Options{}); len(p.Diags) > 0 {
		t.Errorf("%s\n%s", p.Diags[0].Message, text)
	}
	for _, line := range []string{"    %c8 = dm.constant 0.5 : f32\n", "  %c9 = dm.constant dense<1.0> : tensor<f32>\n", "  %c10 = dm.constant dense<-1.0> : tensor<f32>\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// A name without a dialect, which the parser knows nothing about, names the op.
func TestBareNames(t *testing.T) {
	for name, want := range map[string]string{"add": "dm.add", "sigmoid": "dm.logistic", "sum": "dm.reduce add", "nothing": "write the op's full name"} {
		d := finding(t, "func.func @f(%x: tensor<4xf32>) {\n  %y = "+name+" %x : tensor<4xf32>\n  return\n}\n")
		if d.Code != "DM027" || !strings.Contains(d.Help, want) {
			t.Errorf("%s: %s, help %q, want %q", name, d.Code, d.Help, want)
		}
	}
}

func finding(t *testing.T, text string) diag.Diagnostic {
	t.Helper()
	p := program.Load(source.New("in.dmir", text), program.Options{})
	if len(p.Diags) != 1 {
		t.Fatalf("%d findings in\n%s", len(p.Diags), text)
	}
	return p.Diags[0]
}

// edited is text after edits, which do not overlap.
func edited(text string, edits []diag.Edit) string {
	slices.SortStableFunc(edits, func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start })
	for _, e := range slices.Backward(edits) {
		text = fmt.Sprint(text[:e.Span.Start], e.Text, text[e.Span.End:])
	}
	return text
}
