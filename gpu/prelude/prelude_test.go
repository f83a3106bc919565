package prelude

import (
	"strings"
	"testing"
)

// The flat text is the device's half alone.
func TestTextStandsAlone(t *testing.T) {
	text := Text()
	for _, bad := range []string{"#include", "DM_HOST", "emu::", "#pragma once"} {
		if strings.Contains(text, bad) {
			t.Errorf("the flat prelude contains %q", bad)
		}
	}
	for _, want := range []string{"#define DM_KERNEL(name, threads) extern \"C\" __global__", "struct In {", "mma_m16n8k16", "DM_FN Stream stream(", "cp.async.cg"} {
		if strings.Count(text, want) != 1 && want != "mma_m16n8k16" || !strings.Contains(text, want) {
			t.Errorf("the flat prelude has %d of %q", strings.Count(text, want), want)
		}
	}
	if strings.Count(text, "#if") != strings.Count(text, "#endif") {
		t.Error("conditions are not balanced")
	}
}

// Each part stands once, where it is first included; other includes stay.
func TestFlattenAProgram(t *testing.T) {
	got := Flatten("// mine\n#include \"types.cuh\"\n#include \"dm.cuh\"\n#include <other.h>\n#ifndef DM_HOST\nint here;\n#else\nint there;\n#endif\n")
	if n := strings.Count(got, "struct bf16"); n != 1 {
		t.Errorf("types.cuh stands %d times", n)
	}
	for _, want := range []string{"// mine\n", "#include <other.h>\n", "int here;\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "int there;") || len(Hash()) != 64 {
		t.Error("the host's half is there, or there is no hash")
	}
}
