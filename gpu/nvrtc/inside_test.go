package nvrtc

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"dmir/testkit/need"

	"github.com/google/go-cmp/cmp"
)

func TestParseMessages(t *testing.T) {
	log := `ffn.dmir(13): error: identifier "y" is undefined
    x=y;
      ^

C:\dir\k.cu(4): error #20: identifier "z" is undefined
k.cu(12): warning #550-D: parameter "x" was set but never used
  void k(float *x) {
                ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

a (copy).cuh(3): catastrophic error: cannot open source file "b.cuh"

k.cu:1:10: fatal error: foo.h: No such file or directory
    1 | #include <foo.h>

2 errors detected in the compilation of "kernels.cu".
`
	want := []Message{
		{Severity: "error", Text: `identifier "y" is undefined`, File: "ffn.dmir", Line: 13, Detail: "    x=y;\n      ^\n"},
		{Severity: "error", Text: `identifier "z" is undefined`, File: `C:\dir\k.cu`, Line: 4},
		{Severity: "warning", Text: `parameter "x" was set but never used`, File: "k.cu", Line: 12, Detail: "  void k(float *x) {\n                ^\n"},
		{Severity: "error", Text: `cannot open source file "b.cuh"`, File: "a (copy).cuh", Line: 3},
		{Severity: "error", Text: "foo.h: No such file or directory", File: "k.cu", Line: 1, Detail: "    1 | #include <foo.h>\n"},
	}
	if d := cmp.Diff(want, parseMessages(log)); d != "" {
		t.Error(d)
	}
}

func TestParseUsage(t *testing.T) {
	log := `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'g' for 'sm_80'
ptxas info    : Function properties for g
    976 bytes stack frame, 2116 bytes spill stores, 2120 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 976 bytes cumulative stack size, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for helper
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 256 bytes smem, 360 bytes cmem[0]
`
	want := map[string]*Usage{
		"g": {Name: "g", Registers: 32, Stack: 976, SpillStores: 2116, SpillLoads: 2120, Constant: 372},
		"k": {Name: "k", Registers: 12, Shared: 256, Constant: 360},
	}
	if d := cmp.Diff(want, parseUsage(log)); d != "" {
		t.Error(d)
	}
}

// The usage read from the machine code is what the assembler reported.
func TestCubinAgreesWithLog(t *testing.T) {
	need.Long(t)
	c, err := Find()
	need.OK(t, err)
	source := `extern "C" __global__ void __launch_bounds__(1024) g(float *x, int n) {
  float a[200];
  for (int i = 0; i < 200; i++) a[i] = x[i * n];
  for (int j = 0; j < n; j++) for (int i = 0; i < 200; i++) a[i] = a[i] * a[(i + 7) % 200] + 1;
  for (int i = 0; i < 200; i++) x[i] = a[i];
}
extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2; }`
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		r, err := c.Compile(t.Context(), source, nil, arch, Options{})
		if err != nil {
			t.Fatal(err)
		}
		counted, err := usage(r.Cubin, "")
		if err != nil || len(counted) != 2 {
			t.Fatalf("%s: %+v, %v", arch, counted, err)
		}
		for i, reported := range r.Kernels {
			if got := counted[i]; got.Name != reported.Name || got.Registers != reported.Registers || got.Stack != reported.Stack || got.Constant != reported.Constant {
				t.Errorf("%s: the file has %+v, the assembler reported %+v", arch, got, reported)
			}
		}
	}
	for _, bad := range [][]byte{nil, []byte("text"), make([]byte, 64)} {
		if _, err := usage(bad, ""); err == nil {
			t.Errorf("%q passed for machine code", bad)
		}
	}
}

func TestTrimKeepsWhatWasUsedLast(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "used", "new"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 1000), 0o644); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(int64(1000+i), 0)
		os.Chtimes(path, when, when)
	}
	trim(dir, 2500)
	left, _ := os.ReadDir(dir)
	if len(left) != 2 || left[0].Name() != "new" || left[1].Name() != "used" {
		t.Errorf("left: %v", left)
	}
}

// If the variable names a library, no other is used.
func TestNamedLibrary(t *testing.T) {
	empty := t.TempDir()
	text := filepath.Join(empty, "libnvrtc.so.13")
	for _, c := range []struct{ value, want string }{
		{filepath.Join(empty, "nowhere"), "names no NVRTC library"},
		{empty, "names no NVRTC library"},
		{text, "cannot open"},
	} {
		if c.value == text {
			if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("DMIR_NVRTC", c.value)
		found, err := find()
		var none *NotFound
		if !errors.As(err, &none) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.value, found, err, c.want)
		}
	}
}

// The toolkit's compiler gives the same results as the library. Here it is a script
// with the output of nvcc and precompiled machine code.
func TestNvcc(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the script is for a shell")
	}
	lib, err := Find()
	need.OK(t, err)
	made, err := lib.Compile(t.Context(), `extern "C" __global__ void k(float *x) { x[0] = 1; }`, nil, "sm_80", Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("made.cubin", string(made.Cubin), 0o644)
	write("made.ptx", made.PTX, 0o644)
	write("nvcc", `#!/bin/sh
here=$(dirname "$0")
case "$*" in
--version) echo 'Cuda compilation tools, release 12.8, V12.8.93'; exit;;
esac
for last; do :; done
test -e part.cuh || { echo 'no header'; exit 1; }
if n=$(grep -n bad "$last"); then
  line=${n%%:*}
  grep -q '#line' "$last" && echo "x.dmir(7): error: bad" || echo "$last($line): error: bad"
  exit 2
fi
case "$*" in
*--cubin*) cp "$here/made.cubin" out.cubin;;
*--ptx*) cp "$here/made.ptx" out.ptx;;
esac
`, 0o755)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	c, err := FindNvcc()
	if err != nil || c.Version != "nvcc 12.8" {
		t.Fatalf("found %+v, %v", c, err)
	}
	parts := []Header{{Name: "part.cuh", Text: "// a part"}}
	r, err := c.Compile(t.Context(), "good", parts, "sm_80", Options{NoCache: true})
	if err != nil || len(r.Cubin) != len(made.Cubin) || r.PTX != made.PTX || len(r.Kernels) != 1 || r.Compiler != "nvcc 12.8" {
		t.Errorf("compiled %+v, %v", r, err)
	}
	_, err = c.Compile(t.Context(), "good\n#line 7 \"x.dmir\"\nbad", parts, "sm_80", Options{NoCache: true})
	if err == nil || !strings.HasPrefix(err.Error(), "x.dmir:7: line 3 of the CUDA text: bad") {
		t.Errorf("error %v", err)
	}
	if _, err := c.Compile(t.Context(), "good", []Header{{Name: "../part.cuh"}}, "sm_80", Options{NoCache: true}); err == nil {
		t.Error("a header was written outside of the folder")
	}
}
