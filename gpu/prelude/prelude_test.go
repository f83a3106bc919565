package prelude_test

import (
	"strings"
	"testing"

	"dmir/gpu/prelude"
)

// The flat text is the device's half alone.
func TestTextStandsAlone(t *testing.T) {
	text := prelude.Text()
	for _, bad := range []string{"#include", "DM_HOST", "emu::", "#pragma once"} {
		if strings.Contains(text, bad) {
			t.Errorf("the flat prelude contains %q", bad)
		}
	}
	for _, want := range []string{"#define DM_KERNEL(name, threads) extern \"C\" __global__", "struct In {", "DM_FN Stream stream(", "cp.async.commit_group", "DM_FN i32 thread()"} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("the flat prelude has %d of %q", n, want)
		}
	}
	if strings.Count(text, "#if") != strings.Count(text, "#endif") {
		t.Error("conditions are not balanced")
	}
}

func TestFiles(t *testing.T) {
	names := map[string]bool{}
	for _, f := range prelude.Files() {
		if f.Name == "" || f.Text == "" || strings.Contains(f.Name, "/") || names[f.Name] {
			t.Errorf("part %q of %d bytes", f.Name, len(f.Text))
		}
		names[f.Name] = true
	}
	if !names[prelude.Main] || len(prelude.Hash()) != 64 {
		t.Errorf("%d parts, hash %q", len(names), prelude.Hash())
	}
}
