package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCurrent compares the committed files with the registry.
func TestCurrent(t *testing.T) {
	texts, err := files("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range texts {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s is not current; run go generate ./editors/tree-sitter-dmir/gen", filepath.Join("editors/tree-sitter-dmir", name))
		}
	}
}

// TestWords checks that each op has one highlight.
func TestWords(t *testing.T) {
	w := collect()
	if n := len(w.elements); n != 18 {
		t.Errorf("%d element types: %v", n, w.elements)
	}
	for list, want := range map[*[]string]string{
		&w.regions:   "dm.kernel",
		&w.plain:     "dm.reduce", // its region may be left out
		&w.constants: "hbm",
		&w.joints:    "else",
	} {
		if !strings.Contains("\n"+strings.Join(*list, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%s is missing in %v", want, *list)
		}
	}
	seen := map[string]bool{}
	for _, name := range append(w.regions, w.plain...) {
		if seen[name] {
			t.Errorf("%s has two colours", name)
		}
		seen[name] = true
	}
}
