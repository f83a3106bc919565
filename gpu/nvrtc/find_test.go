package nvrtc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// standins creates a folder of Python packages for each name, with a fake compiler in
// two libraries, of which the second is missing if the name begins with "half".
func standins(t *testing.T, roots ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		need.OK(t, errors.New("the fake compiler needs Linux"))
	}
	cc := need.Tool(t, "cc", "apt-get install gcc")
	lib, err := Find()
	need.OK(t, err) // the fake compiler returns its machine code
	made, err := lib.Compile(t.Context(), `extern "C" __global__ void probe(float *x) { x[0] = 1; }`, nil, "sm_80", Options{})
	if err != nil {
		t.Fatal(err)
	}
	cubin := filepath.Join(t.TempDir(), "probe.cubin")
	if err := os.WriteFile(cubin, made.Cubin, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STANDIN_CUBIN", cubin)
	for _, root := range roots {
		dir := filepath.Join(root, "lib", "python3.12", "site-packages", "nvidia", "cu13", "lib")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		// The file's name is unique, since open libraries are identified by it.
		build := func(args ...string) {
			t.Helper()
			if out, err := exec.Command(cc, append([]string{"-shared", "-fPIC"}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		build("-o", filepath.Join(dir, "libnvrtc.so.13"), "testdata/nvrtc.c", "-ldl")
		if !strings.HasPrefix(filepath.Base(root), "half") {
			build("-Wl,-soname,libnvrtc-builtins.so.13.0", "-o", filepath.Join(dir, "libnvrtc-builtins.so.13.0"), "-x", "c", os.DevNull)
		}
	}
}

// A library whose second half is missing cannot compile and is skipped. One with its
// second half beside it compiles. Both are found in the environment of the Python on
// PATH, which is not run.
func TestHalves(t *testing.T) {
	all := t.TempDir()
	half, whole := filepath.Join(all, "half"), filepath.Join(all, "whole")
	standins(t, half, whole)
	t.Setenv("DMIR_NVRTC", filepath.Join(half, "lib/python3.12/site-packages/nvidia/cu13/lib"))
	_, err := find()
	var none *NotFound
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "cannot be used: nvrtcCompileProgram: NVRTC_ERROR_BUILTIN_OPERATION_FAILURE") {
		t.Fatalf("a library that compiles nothing: %v", err)
	}
	t.Setenv("DMIR_NVRTC", "")
	t.Setenv("DMIR_CACHE", t.TempDir())
	t.Setenv("VIRTUAL_ENV", half)
	t.Setenv("CONDA_PREFIX", "")
	bin := filepath.Join(whole, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\nkill $PPID\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	c, err := find()
	if err != nil || !strings.HasPrefix(c.Path, whole) || c.Where != "Python package" {
		t.Fatalf("found %+v, %v", c, err)
	}
}
