// Package cudatest is a card for tests: a stand-in for the driver's library, and
// programs whose machine code it runs. It computes what a device would, and fails
// on demand; driver.c describes how.
package cudatest

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
)

//go:embed testdata/driver.c
var driver string

// Arch is the architecture of the card.
const Arch = "sm_90a"

// Driver makes the driver's library and gives its folder, for LD_LIBRARY_PATH of
// processes that are to find it. Where there is no C compiler the test is skipped.
func Driver(t testing.TB) (dir string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err == nil {
		err = emulator.Check()
	}
	if err != nil || runtime.GOOS != "linux" {
		if os.Getenv("CI") == "true" {
			t.Fatal("install a C++ compiler (apt-get install g++)")
		}
		t.Skip("the stand-in for a driver needs Linux and a C++ compiler (apt-get install g++)")
	}
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

// Compile gives the program machine code for the card.
func Compile(t testing.TB, p *artifact.Program) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.so")
	if err := emulator.Library(context.Background(), p, path, emulator.Options{}); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p.Images = []artifact.Image{{Arch: Arch, Code: code}}
}
