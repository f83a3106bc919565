package export_test

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/export"
	"dmir/testkit/need"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// golden compares got with the file testdata/name.
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

// sample is the program of the tests with a prelude of one line that makes
// its kernels functions without parameters, so that a host compiler takes them.
func sample() *artifact.Program {
	p := artifacttest.Program()
	p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n#define DM_KERNEL(name) extern \"C\" void name\n"}}
	p.Source = "#include \"dm.cuh\"\n"
	for i := range p.Kernels {
		p.Source += "DM_KERNEL(" + p.Kernels[i].Name + ")() {}\n"
		p.Kernels[i].First, p.Kernels[i].Last = i+2, i+2
	}
	return p
}

func exported(t *testing.T, p *artifact.Program) (cu, h string) {
	t.Helper()
	var c, header bytes.Buffer
	if err := export.Source(&c, p); err != nil {
		t.Fatal(err)
	}
	if err := export.Header(&header, p); err != nil {
		t.Fatal(err)
	}
	return c.String(), header.String()
}

// The text of both files.
func TestExport(t *testing.T) {
	cu, h := exported(t, sample())
	golden(t, "scale.cu", cu)
	golden(t, "scale.h", h)
}

// The exported files are built by a host compiler against a runtime that prints its
// calls.
func TestExportCalls(t *testing.T) {
	cxx := need.Tool(t, "c++", "apt-get install g++")
	run := func(t *testing.T, p *artifact.Program) string {
		dir := t.TempDir()
		cu, h := exported(t, p)
		for name, text := range map[string]string{"scale.cu": cu, "scale.h": h} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		exe := filepath.Join(dir, "main")
		// The file is included after main.cc, which defines the functions of the fake headers.
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
		if d := cmp.Diff(want, run(t, sample())); d != "" {
			t.Error(d)
		}
	})
	// An input that is written and one that a tensor map describes, a result that
	// is returned twice, one that is an input, a cluster, much shared memory, kernels that
	// wait for those before them by themselves.
	t.Run("all", func(t *testing.T) {
		p := sample()
		p.Kernels[0].Params[0].Mode = artifact.Map
		p.Steps[1].Launch.Args[0].Map = &artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}
		for i := range p.Kernels {
			p.Kernels[i].Block.Waits = true
		}
		p.Kernels[0].Block.Cluster, p.Kernels[0].Block.Shared = 2, 100<<10
		p.Outputs = []int{5, 2}
		p.Buffers[5].Kind = artifact.Temp // then it is copied at the end
		want := `copy 4 bytes to workspace+16384 from the host
attribute 8 of scaled is 102400
c = 3
copy 4000 bytes to workspace+0 from x+0
fill 4 bytes at sum+0 with 0
map of workspace+0 type 7 swizzle 1: 40/8 step 1 stride 0 25/5 step 1 stride 160
launch scaled grid 4,1,1 threads 256 shared 102400 clusters of 2: workspace+0 workspace+16384 workspace+4096
launch negated grid 4,1,1 threads 256 shared 0 clusters of 0: dependent on the last: workspace+0 workspace+8192
launch total grid 1,1,1 threads 128 shared 128 clusters of 0: dependent on the last: workspace+4096 sum+0
launch joined grid 4,1,1 threads 256 shared 0 clusters of 0: dependent on the last: workspace+4096 workspace+8192 sum+0 workspace+12288
copy 4000 bytes to out+0 from workspace+12288
`
		if d := cmp.Diff(want, run(t, p)); d != "" {
			t.Error(d)
		}
	})
	t.Run("a result that is an input", func(t *testing.T) {
		p := sample()
		p.Outputs = []int{0, 2}
		p.Buffers[0].Last = len(p.Steps)
		if got := run(t, p); !strings.HasSuffix(got, "copy 4000 bytes to out+0 from x+0\n") {
			t.Errorf("the calls:\n%s", got)
		}
	})
}

// bare is p with kernels and headers of no text.
func bare(p *artifact.Program) *artifact.Program {
	p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n"}}
	p.Source = "#include \"dm.cuh\"\n"
	for i := range p.Kernels {
		p.Source += "extern \"C\" void " + p.Kernels[i].Name + "() {}\n"
		p.Kernels[i].First, p.Kernels[i].Last = i+2, i+2
	}
	return p
}

// The exported file reads the predicate on the host, and runs the loop as often as
// it holds.
func TestExportDecisions(t *testing.T) {
	p := bare(artifacttest.Loop())
	cu, h := exported(t, p)
	_, entry, _ := strings.Cut(cu, "extern \"C\" int dmir_power(")
	var lines []string
	for line := range strings.Lines(entry) {
		for _, want := range []string{"for (;;)", "if (yes)", "} else {", "break;", "&yes", "cudaStreamSynchronize", "launch(", "cudaMemsetAsync", "DeviceToDevice"} {
			if line = strings.TrimSpace(line); strings.Contains(line, want) {
				lines = append(lines, line)
				break
			}
		}
	}
	golden(t, "power.txt", strings.Join(lines, "\n")+"\n")
	if !strings.Contains(h, "cannot be\n// captured into a CUDA graph") {
		t.Errorf("the header promises what does not hold:\n%s", h)
	}
	cxx := need.Tool(t, "c++", "apt-get install g++")
	path := filepath.Join(t.TempDir(), "power.cu")
	if err := os.WriteFile(path, []byte(cu), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cxx, "-std=c++17", "-Wall", "-Werror", "-Wno-unused-function", "-fsyntax-only", "-Itestdata/cuda", "-x", "c++", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A repetition is a loop of the exported file, and reads nothing back.
func TestExportRepeat(t *testing.T) {
	p := bare(artifacttest.Repeat(3))
	p.Steps = p.Steps[:7]
	p.Buffers[5].Last, p.Buffers[2].Last = 7, 0
	p.Buffers = p.Buffers[:7]
	cu, h := exported(t, p)
	_, entry, _ := strings.Cut(cu, "extern \"C\" int dmir_power(")
	if !strings.Contains(entry, "for (long long n = 0; n < 3; n++) { // repeat") || strings.Contains(entry, "cudaStreamSynchronize") {
		t.Errorf("the entry point:\n%s", entry)
	}
	if !strings.Contains(h, "can be captured into a CUDA graph") || !strings.Contains(h, "returns at once") {
		t.Errorf("the header:\n%s", h)
	}
}

// Every program that can be read is exported, or is an error.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	programs := []*artifact.Program{sample(), artifacttest.Loop()}
	for n := range 400 {
		p, err := artifact.Read(bytes.NewReader(artifacttest.Mutated(programs[n%2], r)))
		if err != nil {
			continue
		}
		_ = export.Source(io.Discard, p)
		_ = export.Header(io.Discard, p)
	}
}
