package prelude_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

func TestFlatten(t *testing.T) {
	headers := []artifact.Header{
		{Name: "dm.cuh", Text: "#pragma once\n#ifdef DM_HOST\n#include \"emu.cuh\"\n#else\n#define FN __device__ // here\n#endif\n#include \"types.cuh\"\n#if ARCH >= 900\n#include \"parts/hopper.cuh\"\n#else\nint old;\n#endif\n#ifndef DM_HOST\n#include \"types.cuh\"\nint device;\n#endif"},
		{Name: "types.cuh", Text: "#pragma once\nint types;\n"},
		{Name: "parts/hopper.cuh", Text: "#include \"more.cuh\"\n"},
		{Name: "parts/more.cuh", Text: "int more;\n"},
	}
	got, err := prelude.Flatten("// kernels\n#include \"dm.cuh\"\nint kernel;\n", headers, "k.cu")
	if err != nil {
		t.Fatal(err)
	}
	want := "// kernels\n#define FN __device__ // here\nint types;\n#if ARCH >= 900\nint more;\n#else\nint old;\n#endif\nint device;\n#line 3 \"k.cu\"\nint kernel;\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for source, want := range map[string]string{
		"\n#include \"nowhere.cuh\"\n": `the source, line 2: there is no header "nowhere.cuh"`,
		"#include \"loop.cuh\"\n":      "loop.cuh includes itself",
	} {
		if _, err := prelude.Flatten(source, []artifact.Header{{Name: "loop.cuh", Text: "#include \"loop.cuh\"\n"}}, ""); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}
