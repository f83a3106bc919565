package artifact_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// golden holds got to the file testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-update rewrites it):\n%s", path, d)
	}
}

// exported is the program of the tests with a prelude of one line that makes
// its kernels functions without parameters, so that a host compiler takes them.
func exported() *artifact.Program {
	p := artifacttest.Program()
	p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n#define DM_KERNEL(name) extern \"C\" void name\n"}}
	p.Source = "#include \"dm.cuh\"\n"
	for i := range p.Kernels {
		p.Source += "DM_KERNEL(" + p.Kernels[i].Name + ")() {}\n"
		p.Kernels[i].First, p.Kernels[i].Last = i+2, i+2
	}
	return p
}

func export(t *testing.T, p *artifact.Program) (cu, h string) {
	t.Helper()
	var c, header bytes.Buffer
	if err := p.ExportC(&c); err != nil {
		t.Fatal(err)
	}
	if err := p.ExportHeader(&header); err != nil {
		t.Fatal(err)
	}
	return c.String(), header.String()
}

// Both files as people see them.
func TestExport(t *testing.T) {
	cu, h := export(t, exported())
	golden(t, "scale.cu", cu)
	golden(t, "scale.h", h)
}

// The exported files, built by a host compiler against a runtime that says what
// it is asked for.
func TestExportCalls(t *testing.T) {
	cxx, err := exec.LookPath("c++")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("install a C++ compiler (apt-get install g++)")
		}
		t.Skip("install a C++ compiler (apt-get install g++)")
	}
	run := func(t *testing.T, p *artifact.Program) string {
		dir := t.TempDir()
		cu, h := export(t, p)
		for name, text := range map[string]string{"scale.cu": cu, "scale.h": h} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		exe := filepath.Join(dir, "main")
		// The file is included after main.cc, which defines what the fake headers ask for.
		cmd := exec.Command(cxx, "-std=c++17", "-Wall", "-Werror", "-Wno-unused-function", "-Itestdata/cuda", "-I"+dir, "-o", exe,
			"testdata/cuda/main.cc", "-x", "c++", filepath.Join(dir, "scale.cu"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := exec.Command(exe).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	t.Run("plain", func(t *testing.T) {
		want := `copy 4 bytes to workspace+16384 from the host
c = 3
fill 4 bytes at sum+0 with 0
launch scaled grid 4,1,1 threads 256 shared 0 clusters of 0: x+0 workspace+16384 workspace+4096
launch negated grid 4,1,1 threads 256 shared 0 clusters of 0: x+0 workspace+8192
launch total grid 1,1,1 threads 128 shared 128 clusters of 0: workspace+4096 sum+0
launch joined grid 4,1,1 threads 256 shared 0 clusters of 0: workspace+4096 workspace+8192 sum+0 out+0
`
		if d := cmp.Diff(want, run(t, exported())); d != "" {
			t.Error(d)
		}
	})
	// An input that is written and one that a tensor map describes, a result that
	// is given twice, one that is an input, a cluster, much shared memory.
	t.Run("all", func(t *testing.T) {
		p := exported()
		p.Kernels[0].Params[0].Mode = artifact.Map
		p.Steps[1].Args[0].Map = &artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}
		p.Kernels[0].Cluster, p.Kernels[0].Shared = 2, 100<<10
		p.Outputs = []int{5, 2}
		p.Buffers[5].Kind = artifact.Temp // then it is copied at the end
		want := `copy 4 bytes to workspace+16384 from the host
attribute 8 of scaled is 102400
c = 3
copy 4000 bytes to workspace+0 from x+0
fill 4 bytes at sum+0 with 0
map of workspace+0 type 7 swizzle 1: 40/8 step 1 stride 0 25/5 step 1 stride 160
launch scaled grid 4,1,1 threads 256 shared 102400 clusters of 2: workspace+0 workspace+16384 workspace+4096
launch negated grid 4,1,1 threads 256 shared 0 clusters of 0: workspace+0 workspace+8192
launch total grid 1,1,1 threads 128 shared 128 clusters of 0: workspace+4096 sum+0
launch joined grid 4,1,1 threads 256 shared 0 clusters of 0: workspace+4096 workspace+8192 sum+0 workspace+12288
copy 4000 bytes to out+0 from workspace+12288
`
		if d := cmp.Diff(want, run(t, p)); d != "" {
			t.Error(d)
		}
	})
	t.Run("a result that is an input", func(t *testing.T) {
		p := exported()
		p.Outputs = []int{0, 2}
		p.Buffers[0].Last = len(p.Steps)
		if got := run(t, p); !strings.HasSuffix(got, "copy 4000 bytes to out+0 from x+0\n") {
			t.Errorf("the calls:\n%s", got)
		}
	})
}

func TestFlatten(t *testing.T) {
	headers := []artifact.Header{
		{Name: "dm.cuh", Text: "#pragma once\n#ifdef DM_HOST\n#include \"emu.cuh\"\n#else\n#define FN __device__ // here\n#endif\n#include \"types.cuh\"\n#if ARCH >= 900\n#include \"parts/hopper.cuh\"\n#else\nint old;\n#endif\n#ifndef DM_HOST\n#include \"types.cuh\"\nint device;\n#endif"},
		{Name: "types.cuh", Text: "#pragma once\nint types;\n"},
		{Name: "parts/hopper.cuh", Text: "#include \"more.cuh\"\n"},
		{Name: "parts/more.cuh", Text: "int more;\n"},
	}
	got, err := artifact.Flatten("// kernels\n#include \"dm.cuh\"\nint kernel;\n", headers, "k.cu")
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
		if _, err := artifact.Flatten(source, []artifact.Header{{Name: "loop.cuh", Text: "#include \"loop.cuh\"\n"}}, ""); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}
