package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"dmir/cli"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/testkit/sources"
)

// docs/RULES.md has the texts of dmir explain.
func TestRulesPage(t *testing.T) {
	const path = "../docs/RULES.md"
	page := cli.RulesPage()
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(string(got), "\r\n", "\n"); text != page {
		t.Errorf("docs/RULES.md is not current; run go generate ./cli\n%s", format.Diff("docs/RULES.md", text, page))
	}
	for line := range strings.Lines(page) {
		code, _, ok := strings.Cut(strings.TrimPrefix(line, "| ["), "](#")
		if strings.HasPrefix(line, "| [DM") && (!ok || strings.Count(page, `<a id="`+strings.ToLower(code)+`">`) != 1) {
			t.Errorf("%s leads nowhere", code)
		}
	}
}

// TestCodesAreRegistered verifies that every code in the source is registered.
func TestCodesAreRegistered(t *testing.T) {
	code := regexp.MustCompile(`"(DM[0-9]{3})"`)
	seen := map[string]bool{}
	sources.Each(t, "..", func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllSubmatch(text, -1) {
			seen[string(m[1])] = true
			if diag.Find(string(m[1])).Code == "" {
				t.Errorf("%s names %s, which is not registered", path, m[1])
			}
		}
	})
	if len(seen) != len(diag.Codes()) {
		t.Errorf("the source names %d codes of %d", len(seen), len(diag.Codes()))
	}
}
