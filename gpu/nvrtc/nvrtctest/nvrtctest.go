// Package nvrtctest gives tests the CUDA compilers and the disassembler, or skips them
// where there is none.
package nvrtctest

import (
	"fmt"
	"testing"

	"dmir/gpu/nvrtc"
	"dmir/testkit/need"
)

// Compiler is the compiler of this machine. Without one the test is skipped with
// a hint how to get one; with CI=true it fails.
func Compiler(t testing.TB) *nvrtc.Compiler {
	t.Helper()
	c, err := nvrtc.Find()
	installed(t, err)
	return c
}

// Nvcc is the toolkit's compiler; without it the test is skipped as by Compiler.
func Nvcc(t testing.TB) *nvrtc.Compiler {
	t.Helper()
	c, err := nvrtc.FindNvcc()
	installed(t, err)
	return c
}

// Disassembler skips the test, as Compiler does, if no disassembler is installed.
func Disassembler(t testing.TB) {
	t.Helper()
	_, err := nvrtc.Disassembler()
	installed(t, err)
}

func installed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		err = fmt.Errorf("%w; or run scripts/setup-nvrtc.sh", err)
	}
	need.OK(t, err)
}

// Clean fails the test for each kernel that keeps registers or arrays in memory.
func Clean(t testing.TB, r *nvrtc.Result) {
	t.Helper()
	for _, k := range r.Kernels {
		if k.Spills() || k.Stack > 0 {
			t.Errorf("%s: %s spills %d bytes, and has %d bytes of stack", r.Arch, k.Name, k.SpillStores, k.Stack)
		}
	}
}
