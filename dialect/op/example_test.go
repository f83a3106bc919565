package op_test

import (
	"testing"

	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

func TestExamples(t *testing.T) {
	for _, d := range op.All() {
		t.Run(d.Name, func(t *testing.T) {
			src := source.New(d.Name+".dmir", d.Example+"\n")
			tree := parse.File(src)
			ds := append([]diag.Diagnostic{}, tree.Diags...)
			for _, m := range lower.File(tree) {
				ds = append(append(ds, m.Diags...), verify.Module(m)...)
			}
			for _, d := range ds {
				t.Errorf("%s %s: %s (%s)", d.Code, d.Severity, d.Message, src.Slice(d.Span))
			}
		})
	}
}
