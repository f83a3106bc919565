package cli_test

import (
	"os"
	"strings"
	"testing"

	"dmir/internal/cli"
	"dmir/syntax/format"
)

// docs/RULES.md is what dmir explain says.
func TestRulesPage(t *testing.T) {
	const path = "../../docs/RULES.md"
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
		t.Errorf("docs/RULES.md is not current; run go generate ./internal/cli\n%s", format.Diff("docs/RULES.md", text, page))
	}
	for line := range strings.Lines(page) {
		code, _, ok := strings.Cut(strings.TrimPrefix(line, "| ["), "](#")
		if strings.HasPrefix(line, "| [DM") && (!ok || strings.Count(page, `<a id="`+strings.ToLower(code)+`">`) != 1) {
			t.Errorf("%s leads nowhere", code)
		}
	}
}
