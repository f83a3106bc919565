package feature_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// A name of another framework finds the op: completion offers it, hover tells what
// it is here.
func TestForeignNames(t *testing.T) {
	for typed, want := range map[string]string{
		"dm.sig": "dm.logistic", "sig": "dm.logistic", "dm.perm": "dm.transpose", "dm.sum": "dm.reduce add",
		"dm.reduce_s": "dm.reduce add", "dm.gelu_n": "dm.gelu", "dm.SIG": "dm.logistic",
	} {
		text := "func.func @f(%x: tensor<4xf32>) {\n  %y = " + typed + "\n}\n"
		p := program.Load(source.New("in.dmir", text), program.Options{})
		found := feature.Complete(p, strings.Index(text, typed)+len(typed))
		offered := false
		for _, c := range found.Items {
			offered = offered || c.Text == want && strings.HasPrefix(strings.TrimPrefix(c.Filter, "dm."), strings.ToLower(strings.TrimPrefix(typed, "dm.")))
		}
		if !offered {
			t.Errorf("%s does not offer %s", typed, want)
		}
		if !found.More {
			t.Errorf("%s: what is typed next is not asked about", typed)
		}
	}
	text := "func.func @f(%x: tensor<4xf32>) {\n  %y = dm.sum %x : (tensor<4xf32>) -> tensor<f32>\n  return\n}\n"
	p := program.Load(source.New("in.dmir", text), program.Options{})
	h := feature.HoverAt(p, p.Names(), strings.Index(text, "dm.sum")+4, false)
	if h == nil || !strings.Contains(h.Text, "it is dm.reduce add in this dialect") || !strings.Contains(h.Text, "**Elsewhere.** `sum`") {
		t.Errorf("hover: %v", h)
	}
}
