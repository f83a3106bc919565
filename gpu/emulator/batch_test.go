package emulator

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

// copier is a program of one kernel that copies four numbers with the body.
func copier(body string, headers ...artifact.Header) Job {
	return Job{
		Program: &artifact.Program{
			Name: "test", File: "test.dmir", Workspace: 512, Headers: headers,
			Source: "#include \"dm.cuh\"\n#line 7 \"test.dmir\"\nDM_KERNEL(k0, 4)(dm::In<float> x, dm::Out<float> y) {\n" + body + "\n}\n",
			Buffers: []artifact.Buffer{
				{Name: "x", Elem: "f32", Shape: []int64{4}, Kind: artifact.Input, Bytes: 16},
				{Name: "y", Elem: "f32", Shape: []int64{4}, Kind: artifact.Output, Offset: 256, Bytes: 16},
			},
			Kernels: []artifact.Kernel{{Name: "k0", Block: artifact.Block{Threads: 4}, Params: []artifact.Param{{Name: "x", Elem: "f32", Mode: artifact.In}, {Name: "y", Elem: "f32", Mode: artifact.Out}}}},
			Steps:   []artifact.Step{{Name: "y", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{1, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}}}}},
			Inputs:  []int{0}, Outputs: []int{1},
		},
		Inputs: [][]byte{floats(1, 2, 3, 4)},
	}
}

// together runs programs that one call of the compiler makes.
func together(t *testing.T, jobs []Job) []Outcome {
	t.Helper()
	out, err := RunBatch(t.Context(), jobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Programs of a batch with the same names do not conflict; each has its own results,
// faults and errors, even if one of them, or a header of one, does not compile.
func TestRunBatch(t *testing.T) {
	needCompiler(t)
	const good = "  const int i = dm::thread();\n  y.store(i, x[i] * %d.0f);"
	jobs := []Job{
		copier(fmt.Sprintf(good, 2)),
		copier("  y.store(dm::thread(), nothing);"),
		copier("  y.store(dm::thread(), x[dm::thread() + 1]);"),
		copier(fmt.Sprintf(good, 3)),
		copier(fmt.Sprintf(good, 4), artifact.Header{Name: "gemm.cuh", Text: "#pragma once\n"}),
		copier(fmt.Sprintf(good, 5), artifact.Header{Name: "gemm.cuh", Text: "#pragma once\nnonsense\n"}),
		copier(fmt.Sprintf(good, 6)),
	}
	jobs[5].Program.Source = strings.Replace(jobs[5].Program.Source, "\n", "\n#include \"gemm.cuh\"\n", 1)
	jobs[6].Program.Kernels[0].Name = "k 0"
	out, err := RunBatch(t.Context(), jobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, factor := range map[int]float32{0: 2, 3: 3, 4: 4} {
		if out[i].Err != nil {
			t.Errorf("program %d: %v", i, out[i].Err)
		} else if y := toFloats(out[i].Result.Outputs[0]); y[3] != 4*factor {
			t.Errorf("program %d gives %v", i, y)
		} else if s := out[i].Result.Steps[0]; s.Read != 16 || s.Written != 16 {
			t.Errorf("program %d: %+v is counted", i, s)
		}
	}
	var text *CompileError
	if !errors.As(out[1].Err, &text) || !strings.Contains(text.Output, "program.cu:4:") || strings.Contains(text.Output, "p0.cu") {
		t.Errorf("got %v", out[1].Err)
	}
	var fault *Fault
	if !errors.As(out[2].Err, &fault) || fault.Kind != Bounds || fault.Line != 4 || fault.SourceLine != 7 {
		t.Errorf("got %+v", out[2].Err)
	}
	if !errors.As(out[5].Err, &text) || !strings.Contains(text.Output, "nonsense") {
		t.Errorf("got %v", out[5].Err)
	}
	if out[6].Err == nil || !strings.Contains(out[6].Err.Error(), "not a valid name") {
		t.Errorf("got %v", out[6].Err)
	}
}
