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
// those behind one in the same cell, which are in its folder, and that they have the names that follow in brackets.
func TestMap(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("`([a-z0-9_/-]+(?:NAME)?(?:\\.(?:go|cuh|ts|py))?)`(?: \\(((?:(?:, )?`[A-Za-z.]+`)+)\\))?")
	files, names := 0, 0
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
			} else if filepath.Ext(path) != "" {
				path = filepath.Join(folder, path)
			} else {
				continue
			}
			if strings.Contains(path, "NAME") {
				continue
			}
			files++
			path = filepath.Join(root, filepath.FromSlash(path))
			in := []string{path}
			if filepath.Ext(path) == "" {
				in, _ = filepath.Glob(filepath.Join(path, "*"))
			}
			var held strings.Builder
			for _, path := range in {
				text, err := os.ReadFile(path)
				if err != nil && filepath.Ext(path) != "" {
					t.Errorf("%s is not there: %s", path, row)
				}
				held.Write(text)
			}
			if len(in) == 0 {
				t.Errorf("%s is not there: %s", path, row)
			}
			for name := range strings.SplitSeq(strings.ReplaceAll(m[2], "`", ""), ", ") {
				if name == "" {
					continue
				}
				names++
				name = name[strings.LastIndex(name, ".")+1:]
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(held.String()) {
					t.Errorf("%s has no %s: %s", path, name, row)
				}
			}
		}
	}
	if files < 100 || names < 20 {
		t.Errorf("the page names %d files, and %d names in them", files, names)
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
