package program_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

const trained = `func.func private @loss(%x: tensor<4xf32>) -> tensor<f32> {
  %y = dm.exp %x : tensor<4xf32>
  %l = dm.reduce add %y : (tensor<4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %l, %dx = dm.grad @loss %x : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}
func.func @apart(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dm.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
`

// A function without a gradient is an error at the op that takes it, which points at
// the op in the way; it follows edits of both functions, and of others before them.
func TestNoGradient(t *testing.T) {
	p := program.Load(source.New("in.dmir", trained), program.Options{})
	expect := func(step, want string) {
		t.Helper()
		var got []string
		for _, d := range p.Diags {
			if d.Severity != diag.Error {
				continue
			}
			line, _ := p.Src.Human(d.Span.Start)
			text := fmt.Sprintf("%d %s", line, d.Code)
			for _, r := range d.Related {
				line, _ := p.Src.Human(r.Span.Start)
				text += fmt.Sprintf(" %d %s", line, strings.Fields(p.Src.Slice(r.Span))[2])
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	edit := func(old, fresh string) {
		t.Helper()
		at := strings.Index(p.Src.Text(), old)
		if at < 0 {
			t.Fatalf("no %q", old)
		}
		src := p.Src.Edit(at, at+len(old), fresh)
		if !p.Splice(src, parse.Change{Start: at, End: at + len(old), Length: len(fresh)}) {
			p = program.Load(src, program.Options{})
		}
	}
	expect("as it is", "")
	edit("dm.exp", "other.op")
	expect("an op that dmir does not know", "7 DM811 2 other.op")
	edit("func.func private", "// A comment.\nfunc.func private")
	expect("a line before", "8 DM811 3 other.op")
	edit("%l, %dx = dm.grad", "\n  %l, %dx = dm.grad")
	expect("a line before the op", "9 DM811 3 other.op")
	edit("other.op", "dm.exp")
	expect("mended", "")
	edit("dm.exp %x", "dm.exp %x_")
	expect("another error in the function", "3 DM160")
	edit("%x_", "%x")
	edit("dm.exp", "other.op")
	edit("  %l, %dx = dm.grad @loss %x : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)\n", "  %dx = dm.neg %x : tensor<4xf32>\n")
	expect("no gradient is taken", "")
}

// Sizes that are bound at run time are no reason for an error before.
func TestGradientOfSymbolicSizes(t *testing.T) {
	text := strings.ReplaceAll(trained, "tensor<4xf32>", "tensor<?xf32, #dm.at<dims = [n]>>")
	text = strings.Replace(text, "dm.exp %x", "dm.layer_norm %x, %x", 1)
	if p := program.Load(source.New("in.dmir", text), program.Options{}); p.HasErrors() {
		t.Error(p.Diags[0].Message)
	}
}
