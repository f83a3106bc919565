package feature_test

import (
	"fmt"
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

// A selection with more diagnostics than a list shows has a list of bounded length, which offers all of their fixes at once.
func TestActionsOfLongSelections(t *testing.T) {
	offered := map[int]int{}
	for _, n := range []int{20, 300, 900} {
		var b strings.Builder
		b.WriteString("func.func @f(%a0: tensor<4xf32>) -> tensor<4xf32> { ") // all on one line
		for i := range n {
			fmt.Fprintf(&b, "%%a%d = dm.exp %%a%d : tensor<4xf32> ", i+1, i)
		}
		fmt.Fprintf(&b, "return %%a%d : tensor<4xf32> }\n", n)
		p := program.Load(source.New("long.dmir", b.String()), program.Options{})
		found := lint.Run(t.Context(), p, lint.Options{})
		if len(found) < n-1 {
			t.Fatalf("%d findings of %d ops", len(found), n)
		}
		all := 0
		for _, a := range feature.Actions(p, found, source.Span{End: b.Len()}, func(kind string) bool { return kind == "quickfix" }) {
			offered[n]++
			if a.Source == feature.FixAllOf {
				all++
			}
		}
		if all != 1 {
			t.Errorf("%d actions fix all of a code in %d ops", all, n)
		}
	}
	if offered[20] < 19 || offered[300] <= offered[20] || offered[900] != offered[300] {
		t.Errorf("the actions offered, by the number of ops: %v", offered)
	}
}
