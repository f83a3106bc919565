package nvrtc_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/export"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/testkit/need"
)

// The kernels of a program compile from its text and from the exported file.
func TestCompileProgram(t *testing.T) {
	nvrtctest.Compiler(t)
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		p := artifacttest.Program()
		r, err := nvrtc.CompileProgram(t.Context(), p, arch, nvrtc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Kernels) != len(p.Kernels) || len(r.Spilled()) != 0 || r.Image().Arch != arch {
			t.Errorf("%s: kernels %+v", arch, r.Kernels)
		}
		file := exported(t, p)
		e, err := nvrtc.Compile(t.Context(), file, nil, arch, nvrtc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range r.Kernels {
			k.Name = "dmir_scale_" + k.Name
			if e.Kernels[i] != k {
				t.Errorf("%s: exported %+v, else %+v", arch, e.Kernels[i], k)
			}
		}
	}
}

func exported(t *testing.T, p *artifact.Program) string {
	t.Helper()
	p.Headers = nvrtc.DeviceHeaders()
	var b bytes.Buffer
	if err := export.Source(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The toolkit's compiler builds the exported file.
func TestNvccBuildsExport(t *testing.T) {
	need.Long(t)
	nvcc := nvrtctest.Nvcc(t)
	p := artifacttest.Program()
	p.Kernels[0].Block.Cluster, p.Kernels[0].Block.Shared = 2, 100<<10
	p.Kernels[0].Params[0].Mode = artifact.Map
	p.Steps[1].Launch.Args[0].Map = &artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scale.cu"), []byte(exported(t, p)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nvcc.Path, "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings", "-c", "scale.cu")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Without NVRTC the toolkit's compiler makes the same kernels, with the same
// messages where it cannot.
func TestNvccInPlaceOfNvrtc(t *testing.T) {
	need.Long(t)
	nvcc, lib := nvrtctest.Nvcc(t), nvrtctest.Compiler(t)
	p := artifacttest.Program()
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		r, err := nvcc.Compile(t.Context(), p.Source, nvrtc.DeviceHeaders(), arch, nvrtc.Options{NoCache: true, LineInfo: true})
		if err != nil {
			t.Fatal(err)
		}
		want, err := lib.Compile(t.Context(), p.Source, nvrtc.DeviceHeaders(), arch, nvrtc.Options{LineInfo: true})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Kernels, want.Kernels) || !strings.Contains(r.PTX, ".target "+arch) || !strings.HasPrefix(r.Compiler, "nvcc ") {
			t.Errorf("%s: %s made %+v, %s %+v", arch, r.Compiler, r.Kernels, want.Compiler, want.Kernels)
		}
	}
	bad := twice + "#line 12 \"dir/ffn.dmir\"\nint q = \"text\";\n"
	_, err := nvcc.Compile(t.Context(), bad, headers, "sm_90a", nvrtc.Options{NoCache: true})
	if err == nil || !strings.HasPrefix(err.Error(), "dir/ffn.dmir:12: line 9 of the CUDA text: ") {
		t.Errorf("error %v", err)
	}
	if _, err := nvcc.Compile(t.Context(), twice, headers, "sm_999", nvrtc.Options{NoCache: true}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// Machine code is printed for every architecture; other bytes are an error.
func TestDisassemble(t *testing.T) {
	need.Long(t)
	nvrtctest.Disassembler(t)
	c := nvrtctest.Compiler(t)
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		r, err := c.Compile(t.Context(), twice, headers, arch, nvrtc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := nvrtc.Disassemble(t.Context(), r.Cubin)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"exchange", "LDG.E", "BAR.SYNC", "STG.E", "EXIT"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s in\n%s", arch, want, text)
			}
		}
	}
	if _, err := nvrtc.Disassemble(t.Context(), []byte("text")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// A program of several kernels is compiled kernel by kernel: each has a part of the machine code, and one
// that another program has too comes from the cache.
func TestKernelByKernel(t *testing.T) {
	nvrtctest.Compiler(t)
	t.Setenv("DMIR_CACHE", t.TempDir())
	program := func(second string) *artifact.Program {
		p := artifacttest.Program()
		p.Source = "#include \"dm.cuh\"\n\nextern \"C\" __global__ void one(float *x) { x[0] = 1; }\n\n" + second
		p.Kernels = []artifact.Kernel{{Name: "one", First: 3, Last: 3}, {Name: "two", First: 5, Last: 5}}
		return p
	}
	var steps []string
	compile := func(second string) (*nvrtc.Result, error) {
		return nvrtc.CompileProgram(t.Context(), program(second), "sm_90a", nvrtc.Options{Progress: func(kernel string, done, total int) {
			steps = append(steps, fmt.Sprint(kernel, total))
		}})
	}
	r, err := compile("extern \"C\" __global__ void two(float *x) { x[0] = 2; }\n")
	if err != nil {
		t.Fatal(err)
	}
	parts, ok := artifact.Parts(r.Cubin)
	slices.Sort(steps)
	if !ok || len(parts) != 2 || len(r.Kernels) != 2 || r.Kernels[1].Name != "two" || !slices.Equal(steps, []string{"one2", "two2"}) {
		t.Errorf("%d parts, kernels %v, progress %v", len(parts), r.Kernels, steps)
	}
	dir, err := nvrtc.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := func() int { list, _ := os.ReadDir(dir); return len(list) }
	if n := kept(); n != 2 {
		t.Errorf("%d kernels are kept", n)
	}
	if _, err := compile("extern \"C\" __global__ void two(float *x) { x[0] = 3; }\n"); err != nil || kept() != 3 {
		t.Errorf("%v; %d kernels are kept after one has changed", err, kept())
	}
	_, err = compile("extern \"C\" __global__ void two(float *x) { x[0] = y; }\n")
	var failed *nvrtc.CompileError
	if !errors.As(err, &failed) || len(failed.Messages) == 0 || failed.Messages[0].Generated != 5 {
		t.Errorf("the mistake in line 5 is reported as %v", err)
	}
}
