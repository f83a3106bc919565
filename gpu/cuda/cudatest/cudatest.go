// Package cudatest provides a fake GPU for tests: a fake of the driver's library,
// and programs whose machine code it runs. It computes what a device would, and fails
// on demand; driver.c describes how.
package cudatest

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

//go:embed testdata/driver.c
var driver string

// Arch is the architecture of the fake GPU.
const Arch = "sm_90a"

// Driver builds the driver's library and returns its folder, to be put into
// LD_LIBRARY_PATH of processes. Without a C compiler the test is skipped.
func Driver(t testing.TB) (dir string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		need.OK(t, errors.New("the stand-in for a driver needs Linux"))
	}
	cc := need.Tool(t, "cc", "apt-get install gcc")
	need.OK(t, emulator.Check())
	dir = t.TempDir()
	source := filepath.Join(dir, "driver.c")
	if err := os.WriteFile(source, []byte(driver), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cc, "-shared", "-fPIC", "-O1", "-Wall", "-Wno-unused-parameter", "-Werror", "-o", filepath.Join(dir, "libcuda.so.1"), source, "-ldl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// Compile adds machine code for the fake GPU to the program.
func Compile(t testing.TB, p *artifact.Program) {
	t.Helper()
	code, err := emulator.Library(context.Background(), p, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Images = []artifact.Image{{Arch: Arch, Code: code}}
}
