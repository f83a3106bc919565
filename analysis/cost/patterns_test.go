package cost_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// A function of one op moves its minimum: of results that store what an argument, or another result, does the values alone are
// written, and so they are in the minimum.
func TestMinimumOfSharedPatterns(t *testing.T) {
	for _, c := range []struct{ name, body string }{
		{"elements", "%y = dm.relu %a : !a\nreturn %y : !a"},
		{"a dense operand", "%y = dm.mul %a, %d : (!a, !d) -> !a\nreturn %y : !a"},
		{"softmax", "%y = dm.softmax %a, dim = 1 : !a\nreturn %y : !a"},
		{"sampled", "%y = dm.sample %a, %d : (!a, !d) -> !a\nreturn %y : !a"},
		{"its argument beside it", "%y = dm.relu %a : !a\nreturn %y, %a : !a, !a"},
		{"one pattern of several results", "%x, %y, %of = dm.merge union %a, %b : (!a, !a) -> (!u, !u, !o)\nreturn %x, %y, %of : !u, !u, !o"},
	} {
		_, results, _ := strings.Cut(c.body, "return")
		_, results, _ = strings.Cut(results, " : ")
		text := "!a = tensor<64x64xf32, #dm.csr<nnz = 300>>\n!u = tensor<64x64xf32, #dm.csr<nnz = 600>>\n!o = tensor<64x64xi8, #dm.csr<nnz = 600>>\n!d = tensor<64x64xf32>\n" +
			"func.func @f(%a: !a, %b: !a, %d: !d) -> (" + results + ") {\n" + c.body + "\n}"
		p := program.Load(source.New("f.dmir", text), program.Options{})
		if p.HasErrors() {
			t.Fatalf("%s: %s\n%s", c.name, p.Diags[0].Message, text)
		}
		f := p.Funcs[0]
		if !f.Moved().Equal(f.Minimum()) {
			t.Errorf("%s: %s bytes are moved, and the minimum is %s", c.name, f.Moved(), f.Minimum())
		}
	}
}
