package lower_test

import (
	"testing"

	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// TestExamples lowers and verifies the example of every op of the registry.
func TestExamples(t *testing.T) {
	for _, d := range op.All() {
		t.Run(d.Name, func(t *testing.T) {
			f := parse.File(source.New(d.Name+".dmir", d.Example))
			for _, m := range lower.File(f) {
				for _, list := range [][]diag.Diagnostic{f.Diags, m.Diags, verify.Module(m)} {
					for _, d := range list {
						line, col := m.Src.Human(d.Span.Start)
						t.Errorf("%d:%d: %s[%s]: %s (%s)", line, col, d.Severity, d.Code, d.Message, d.Help)
					}
				}
			}
		})
	}
}
