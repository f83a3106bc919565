package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/source"
)

// A file with any number of problems, or with deep keys, is scanned once, and its
// diagnostics stay short.
func TestHostile(t *testing.T) {
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"machines":       many("[machines.m%d]\n", 2000),
		"unknown keys":   many("k%d = 1\n", 2000),
		"bad sizes":      "[bind]\n" + many("k%d = -1\n", 2000),
		"a dotted key":   "a" + strings.Repeat(".a", 20_000) + " = 1\n",
		"a dotted table": "[a" + strings.Repeat(".a", 20_000) + "]\nb = 1\n",
		"inline tables":  strings.Repeat("a = {", 8000) + strings.Repeat("}", 8000),
		"arrays":         "a = " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, ds := Parse(source.New("dmir.toml", text))
			if len(ds) == 0 || len(ds) > maxProblems+1 {
				t.Errorf("%d diagnostics", len(ds))
			}
			for _, d := range ds {
				if d.Code == "" || d.Help == "" || len(d.Message) > 2*maxName {
					t.Errorf("%s: %d bytes, help %q", d.Code, len(d.Message), d.Help)
					break
				}
			}
		})
	}
	p := placesOf(source.New("dmir.toml", many("[machines.m%d]\n", 3000)))
	for i := range 3000 {
		if at := p.locate("machines", fmt.Sprint("m", i)); p.src.Slice(at) != fmt.Sprintf("[machines.m%d]", i) {
			t.Fatalf("machine %d is found at %q", i, p.src.Slice(at))
		}
	}
	if p.looks > p.src.Lines() {
		t.Errorf("%d lines were looked at of %d", p.looks, p.src.Lines())
	}
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(many("k%d = 1\n", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, ds := ForFile(path); len(ds) != 1 || ds[0].Code != "DM901" {
		t.Errorf("a large file: %v", ds)
	}
}
