package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmir/cli"
	"dmir/syntax/diag"
	"dmir/syntax/format"
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
	root := ".."
	code := regexp.MustCompile(`"(DM[0-9]{3})"`)
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && (d.Name() == "node_modules" || d.Name() == "build") { // what other legs write while this one reads
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range code.FindAllSubmatch(text, -1) {
			seen[string(m[1])] = true
			if diag.Find(string(m[1])).Code == "" {
				t.Errorf("%s names %s, which is not registered", path, m[1])
			}
		}
		return err
	})
	if err != nil || len(seen) != len(diag.Codes()) {
		t.Errorf("the source names %d codes of %d: %v", len(seen), len(diag.Codes()), err)
	}
}
