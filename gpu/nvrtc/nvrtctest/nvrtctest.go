// Package nvrtctest gives tests the CUDA compiler, or skips them where there is
// none.
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
	if err == nil {
		return c
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%v; run scripts/setup-nvrtc.sh", err)
	}
	t.Skipf("%v; or run scripts/setup-nvrtc.sh", err)
	return nil
}
