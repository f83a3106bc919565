package emulator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dmir/base/local"
	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// TestForeign verifies that a foreign program is an error before it is compiled.
func TestForeign(t *testing.T) {
	p := artifacttest.Program()
	p.Foreign = true
	_, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{Compiler: "no-such-compiler"})
	if !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
	p.Trust()
	if _, err = Run(t.Context(), p, nil, Options{Compiler: "no-such-compiler"}); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("trusted: %v", err)
	}
}

// TestNoHostAssembly verifies that headers of a program, which may contain assembly
// for devices, cannot contain any for the host.
func TestNoHostAssembly(t *testing.T) {
	needCompiler(t)
	for name, header := range map[string]string{
		"plain":    "static void f() { asm(\"nop\"); }\n",
		"spelled":  "static void f() { __asm__ volatile(\"nop\"); }\n",
		"a macro":  "#define ASSEMBLY asm\nstatic void f() { ASSEMBLY(\"nop\"); }\n",
		"pasted":   "#define JOIN(a, b) a##b\nstatic void f() { JOIN(as, m)(\"nop\"); }\n",
		"included": "asm(\".incbin \\\"/etc/passwd\\\"\");\n",
	} {
		p := artifacttest.Program()
		p.Headers = []artifact.Header{{Name: "gemm.cuh", Text: "#pragma once\n" + header}}
		p.Source = "#include \"gemm.cuh\"\n" + p.Source
		_, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{})
		var refused *CompileError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoCache runs without a writable cache, and leaves no files.
func TestNoCache(t *testing.T) {
	needCompiler(t)
	quickRuntime(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	t.Setenv("DMIR_CACHE", filepath.Join(file, "cache"))
	if _, err := Run(t.Context(), artifacttest.Program(), [][]byte{make([]byte, 4*artifacttest.N)}, Options{}); err != nil {
		t.Fatal(err)
	}
	local.RemoveWork()
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
