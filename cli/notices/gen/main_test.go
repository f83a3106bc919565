package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file in the binary lists its current modules.
func TestBinary(t *testing.T) {
	parts, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	want, err := notices("The binary of dmir holds, beside dmir's own code, that of the following modules.", parts)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join("..", goFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not current; run go generate ./cli/notices", goFile)
	}
	for _, name := range []string{"github.com/alecthomas/participle/v2 ", "gonum.org/v1/gonum ", "The Go standard library", "Permission is hereby granted", "Redistribution and use"} {
		if !strings.Contains(want, name) {
			t.Errorf("nothing of %s", name)
		}
	}
}

// The extension's file names the packages of its lock file, each with a text.
func TestExtension(t *testing.T) {
	folder := filepath.Join("..", extension)
	parts, err := bundled(folder)
	if err != nil || len(parts) == 0 {
		t.Fatalf("%v, %v", parts, err)
	}
	b, err := os.ReadFile(filepath.Join(folder, goFile))
	if err != nil {
		t.Fatal(err)
	}
	list, texts, _ := strings.Cut(string(b), strings.Repeat("=", 80))
	named := strings.Fields(list[strings.Index(list, "\n  "):])
	var want []string
	for _, p := range parts {
		want = append(want, p.name, p.version)
		if !strings.Contains(texts, "\n"+p.String()+"\n") {
			t.Errorf("no text for %s", p)
		}
	}
	if strings.Join(named, " ") != strings.Join(want, " ") {
		t.Errorf("%s names %v, the lock file %v; run go generate ./cli/notices", goFile, named, want)
	}
	ignore, err := os.ReadFile(filepath.Join(folder, ".vscodeignore"))
	if err != nil || !strings.Contains(string(ignore), "!"+goFile) {
		t.Errorf("it is not packaged: %v", err)
	}
	script, err := os.ReadFile("../../../scripts/package-vscode.sh")
	if err != nil || !strings.Contains(string(script), goFile) {
		t.Errorf("scripts/package-vscode.sh leaves it out: %v", err)
	}
}
