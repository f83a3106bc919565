package nvrtc_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
)

// The kernels of a program, from its text and from the file that others build.
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
	if err := p.ExportC(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The toolkit's compiler builds the exported file, where there is a toolkit.
func TestNvccBuildsExport(t *testing.T) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("no nvcc on PATH")
	}
	p := artifacttest.Program()
	p.Kernels[0].Cluster, p.Kernels[0].Shared = 2, 100<<10
	p.Kernels[0].Params[0].Mode = artifact.Map
	p.Steps[1].Args[0].Map = &artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scale.cu"), []byte(exported(t, p)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nvcc, "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings", "-c", "scale.cu")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
