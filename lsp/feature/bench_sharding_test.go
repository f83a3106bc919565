package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// dividedOps is a function of n ops, divided over a mesh or not.
func dividedOps(n int, divided bool) string {
	x, w := "tensor<64x512xf16>", "tensor<512x512xf16>"
	at := x
	mesh := ""
	if divided {
		mesh, at = "dm.mesh @pod {data = 4}\n", "tensor<64x512xf16, #dm.at<split = @pod[{data}, {}]>>"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%sfunc.func @f(%%v0: %s, %%w: %s) -> %s {\n  %%v1 = dm.relu %%v0 : (%s) -> %s\n", mesh, at, w, x, at, x)
	fmt.Fprintf(&b, "  %%u = dm.relu %%v1 : (%s) -> %s\n", x, x)
	for i := 2; i < n; i++ {
		fmt.Fprintf(&b, "  %%v%d = dm.matmul %%v%d, %%w : (%s, %s) -> %s\n", i, i-1, x, w, x)
	}
	fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", n-1, x)
	return b.String()
}

// BenchmarkEditedHints is an edit of a type in a program of 1,000 ops, and the hints of what is in view
// after it: of a sharding where there is a mesh.
func BenchmarkEditedHints(b *testing.B) {
	for _, c := range []struct {
		name    string
		divided bool
		in      string
	}{
		{"one device", false, ", #dm.at<hbm>"},
		{"sharding", true, ", #dm.at<split = @pod[{data}, {}]>"},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := dividedOps(1000, c.divided)
			src := source.New("x.dmir", text)
			p := program.Load(src, program.Options{})
			if p.HasErrors() {
				b.Fatal(p.Diags[0].Message)
			}
			at := strings.Index(text, "%u = dm.relu")
			at += strings.Index(text[at:], "-> tensor<64x512xf16") + len("-> tensor<64x512xf16")
			old, in := "", c.in
			for b.Loop() {
				next := src.Edit(at, at+len(old), in)
				if !p.Splice(next, parse.Change{Start: at, End: at + len(old), Length: len(in)}) {
					b.Fatal("the change was not followed")
				}
				src, old, in = next, in, old
				view := source.Span{Start: at, End: src.LineStart(min(src.Pos(at).Line+60, src.Lines()-1))}
				if hints := feature.Hints(p, nil, nil, view); len(hints) < 50 {
					b.Fatal(len(hints))
				}
			}
		})
	}
}
