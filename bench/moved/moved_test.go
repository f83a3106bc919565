package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// Every program of the list is in testdata and in programs.py, nothing else is in
// testdata, and every training step is valid.
func TestEntries(t *testing.T) {
	peers, err := os.ReadFile("programs.py")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.name)
		if !regexp.MustCompile(`(?m)^(def ` + e.name + `\(|` + e.name + ` = )`).Match(peers) {
			t.Errorf("programs.py has no %s", e.name)
		}
		s, err := load("testdata", e)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, c := range e.constant {
			if !strings.Contains(s.text, "%"+c+": ") {
				t.Errorf("%s has no argument %s", e.name, c)
			}
		}
		if s.train == "" {
			continue
		}
		if p := program.Load(source.New(e.name, s.train), program.Options{}); p.HasErrors() {
			t.Errorf("the training step of %s: %s", e.name, p.Diags[0].Message)
		}
	}
	files, err := filepath.Glob("testdata/*.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".dmir"); !slices.Contains(names, name) {
			t.Errorf("%s is in no entry", f)
		}
	}
}
