// Package nvrtctest gives tests the CUDA compilers and the disassembler, or skips them
// where there is none.
package nvrtctest

import (
	"os"
	"testing"

	"dmir/gpu/nvrtc"
)

// Compiler is the compiler of this machine. Without one the test is skipped and
// says how to get one; where CI=true it fails.
func Compiler(t testing.TB) *nvrtc.Compiler {
	t.Helper()
	c, err := nvrtc.Find()
	need(t, err)
	return c
}

// Nvcc is the toolkit's compiler, on the same terms.
func Nvcc(t testing.TB) *nvrtc.Compiler {
	t.Helper()
	c, err := nvrtc.FindNvcc()
	need(t, err)
	return c
}

// Disassembler sees to it, on the same terms, that machine code can be printed.
func Disassembler(t testing.TB) {
	t.Helper()
	_, err := nvrtc.Disassembler()
	need(t, err)
}

func need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%v; run scripts/setup-nvrtc.sh", err)
	default:
		t.Skipf("%v; or run scripts/setup-nvrtc.sh", err)
	}
}
