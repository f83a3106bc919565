package feature_test

import (
	"os"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// What an action promises to save ends its title, or stands in parentheses; its
// short title is the same without.
func TestShortTitles(t *testing.T) {
	text, err := os.ReadFile("../../examples/ffn.dmir")
	if err != nil {
		t.Fatal(err)
	}
	p := program.Load(source.New("ffn.dmir", string(text)), program.Options{})
	found := lint.Run(t.Context(), p, lint.Options{})
	all := func(string) bool { return true }
	seen := map[string]int{} // with savings, by kind
	for _, word := range strings.Fields(string(text)) {
		at := strings.Index(string(text), word)
		for _, a := range feature.Actions(p, found, source.Span{Start: at, End: at}, all) {
			want := a.Title
			if before, saving, ok := strings.Cut(want, " (saves "); ok {
				_, rest, _ := strings.Cut(saving, ")")
				want = before + rest
				seen[a.Kind]++
			}
			for _, word := range []string{": saves ", ": adds "} {
				if before, _, ok := strings.Cut(want, word); ok {
					want = before
					seen[a.Kind]++
				}
			}
			if a.Short != want {
				t.Errorf("%q is called %q, want %q", a.Title, a.Short, want)
			}
		}
	}
	if seen["quickfix"] == 0 || seen["refactor.rewrite"] == 0 {
		t.Errorf("actions with savings: %v", seen)
	}
}
