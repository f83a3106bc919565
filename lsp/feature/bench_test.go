package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// manyOps is a program of 100,000 ops, in one function or in functions of a
// hundred, with a call in each.
func manyOps(oneFunction bool) string {
	const ops, per = 100_000, 100
	var b strings.Builder
	b.WriteString("func.func private @leaf(tensor<8x512xf16>) -> tensor<8x512xf16>\n")
	for i := range ops {
		if i == 0 || !oneFunction && i%per == 0 {
			fmt.Fprintf(&b, "func.func @f%d(%%x: tensor<8x512xf16>) -> tensor<8x512xf16> {\n  %%c%d = func.call @leaf(%%x) : (tensor<8x512xf16>) -> tensor<8x512xf16>\n", i, i)
		}
		fmt.Fprintf(&b, "  %%v%d = dm.add %%x, %%c%d : tensor<8x512xf16>\n", i, i-i%per*(1-one(oneFunction))-i*one(oneFunction))
		if i == ops-1 || !oneFunction && i%per == per-1 {
			fmt.Fprintf(&b, "  return %%v%d : tensor<8x512xf16>\n}\n", i)
		}
	}
	return b.String()
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What is asked about a place or about what is in view costs the same in any
// file, whatever stands around it; what is asked about all of it does not.
func BenchmarkRequests(b *testing.B) {
	for _, one := range []bool{true, false} {
		text := manyOps(one)
		p := program.Load(source.New("in.dmir", text), program.Options{})
		if p.HasErrors() {
			b.Fatal(p.Diags[0].Message)
		}
		name := "one function"
		if !one {
			name = "many functions"
		}
		line := p.Src.Lines() / 2
		for !strings.Contains(p.Src.Line(line), "dm.add") {
			line++
		}
		off := p.Src.LineStart(line)
		add, value := off+strings.Index(p.Src.Line(line), "dm.add")+2, off+3
		view := source.Span{Start: off, End: p.Src.LineStart(line + 60)}
		call := strings.Index(text, "@leaf(%x)") + 2
		for _, r := range []struct {
			name string
			ask  func() bool
		}{
			{"definition", func() bool { return len(feature.Definition(p.Names(), value)) == 1 }},
			{"highlights", func() bool { return len(feature.Highlights(p.Names(), value)) > 0 }},
			{"hover", func() bool { return feature.HoverAt(p, p.Names(), add, false) != nil }},
			{"signature", func() bool { return feature.SignatureAt(p, add+6) != nil }},
			{"completion of values", func() bool { return len(feature.Complete(p, add+6).Items) > 0 }},
			{"completion of symbols", func() bool { return len(feature.Complete(p, call).Items) > 0 }},
			{"selections", func() bool { return len(feature.Selections(p, add)) > 2 }},
			{"linked editing", func() bool { return len(feature.EditedTogether(p.Names(), value)) > 0 }},
			{"function at", func() bool { return feature.FunctionAt(p, call) != nil }},
			{"tokens in view", func() bool { return len(slices.Collect(feature.Tokens(p, view))) > 60 }},
			{"hints in view", func() bool { return len(feature.Hints(p, nil, nil, view)) > 60 }},
			{"format in view", func() bool { return len(feature.FormatRange(p.Tree, view)) == 0 }},
			{"rename", func() bool { e, err := feature.Rename(p.Names(), value, "renamed"); return err == nil && len(e) > 0 }},
			{"links of the file", func() bool { return len(feature.Links(p.Src)) == 0 }},
			{"folds of the file", func() bool { return len(feature.Folds(p.Tree)) > 0 }},
			{"tokens of the file", func() bool { return len(slices.Collect(feature.Tokens(p, source.Span{End: p.Src.Len()}))) > 100_000 }},
			{"callers", func() bool { return len(feature.Callers(p, call)) > 0 }},
			{"callees", func() bool { return len(feature.Callees(p, strings.Index(text, "@f0")+1)) == 1 }},
			{"format typed", func() bool { return len(feature.FormatTyped(p.Tree, off, "\n")) == 0 }},
		} {
			b.Run(name+"/"+strings.ReplaceAll(r.name, " ", "_"), func(b *testing.B) {
				for b.Loop() {
					if !r.ask() {
						b.Fatal("no answer")
					}
				}
			})
		}
	}
}
