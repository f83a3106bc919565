package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinks checks that relative links in the documentation name existing files.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "bench/README.md", "vscode-extension/README.md"} {
		docs = append(docs, filepath.Join(root, filepath.FromSlash(name)))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, target)
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d relative links, expected at least 100", links)
	}
}

// TestMap checks that the files and folders that docs/ARCHITECTURE.md names exist, also
// those behind one in the same cell, which are in its folder.
func TestMap(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, named := regexp.MustCompile("`([a-z0-9_/]+(?:\\.go)?)`"), 0
	_, table, _ := strings.Cut(string(text), "| question | first | then |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		folder := ""
		for _, m := range file.FindAllStringSubmatch(row, -1) {
			path := m[1]
			if strings.Contains(path, "/") {
				folder = filepath.Dir(path)
				if filepath.Ext(path) == "" {
					folder = path
				}
			} else if filepath.Ext(path) == ".go" {
				path = filepath.Join(folder, path)
			} else {
				continue
			}
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				t.Errorf("%s is not there: %s", path, row)
			}
		}
	}
	if named < 20 {
		t.Errorf("the page names %d files", named)
	}
}

// withoutCode returns Markdown text without its fenced code blocks.
func withoutCode(text string) string {
	var prose strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced {
			prose.WriteString(line)
		}
	}
	return prose.String()
}
