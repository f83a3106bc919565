package server

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/lsp/page"
)

// Each feature that docs/EDITORS.md lists is linked to a test that is there.
func TestFeaturesAreTested(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(docs, "EDITORS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| feature | behaviour | test |\n|---|---|---|\n")
	if !ok {
		t.Fatal("EDITORS.md has no table of features")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	link := regexp.MustCompile("\\[`(\\w+)`\\]\\(([^)]+)\\)")
	sources := map[string]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		links := link.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(links) == 0 {
			t.Errorf("no test is linked in %s", row)
		}
		for _, l := range links {
			if _, read := sources[l[2]]; !read {
				file, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(l[2])))
				if err != nil {
					t.Error(err)
				}
				sources[l[2]] = string(file)
			}
			if strings.HasSuffix(l[2], "_test.go") && !strings.Contains(sources[l[2]], "\nfunc "+l[1]+"(t *testing.T)") {
				t.Errorf("there is no %s in %s", l[1], l[2])
			}
		}
	}
}

// The editors' own lists name views that there are.
func TestEditorsNameViews(t *testing.T) {
	word := regexp.MustCompile(`view: "([a-z-]+)"|'(after-[a-z]+|cuda|ptx|generic|expanded|fixed|cost)'`)
	for _, file := range []string{"vscode-extension/src/views.ts", "editors/nvim/lua/dmir/init.lua"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := word.FindAllStringSubmatch(string(text), -1)
		if len(found) < 8 {
			t.Errorf("%s names %d views", file, len(found))
		}
		for _, m := range found {
			if name := m[1] + m[2]; !slices.Contains(page.Views(), name) {
				t.Errorf("%s names the view %q; there are %s", file, name, strings.Join(page.Views(), ", "))
			}
		}
	}
}
