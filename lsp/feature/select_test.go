package feature_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// However deep a text is nested, so many selections are given, the innermost and the whole file among them.
func TestSelectionsBounded(t *testing.T) {
	const deep = 400
	text := "func.func @f() {\n  \"a.b\"() {x = " + strings.Repeat("[", deep) + "1" + strings.Repeat("]", deep) + "} : () -> ()\n}\n"
	p := program.Load(source.New("f.dmir", text), program.Options{})
	spans := feature.Selections(p, strings.Index(text, "[1")+1)
	if first, last := spans[0], spans[len(spans)-1]; len(spans) != 256 || text[first.Start:first.End] != "1" || last.Len() != len(text) {
		t.Errorf("%d selections from %v to %v", len(spans), first, last)
	}
	for i, s := range spans[1:] {
		if in := spans[i]; s.Start > in.Start || s.End < in.End || s == in {
			t.Fatalf("%v is not inside of %v", in, s)
		}
	}
}
