package emulator

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/testkit/need"
)

// needCompiler skips a test where there is no compiler, but not in CI.
func needCompiler(t *testing.T) {
	t.Helper()
	need.OK(t, Check())
}

func floats(x ...float32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func toFloats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

// A program with a constant, a fill, an in-place sum and two streams gives its
// results, and each step moves what the cost model predicts.
func TestRun(t *testing.T) {
	needCompiler(t)
	p := artifacttest.Program()
	x := make([]float32, artifacttest.N)
	var sum float32
	for i := range x {
		x[i] = float32(i%7) - 2
		sum += 3 * x[i]
	}
	r, err := Run(t.Context(), p, [][]byte{floats(x...)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := toFloats(r.Outputs[1])[0]; s != sum {
		t.Errorf("the sum is %v, want %v", s, sum)
	}
	for i, v := range toFloats(r.Outputs[0]) {
		if want := 3*x[i] - x[i] + sum; v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
	for i, s := range p.Steps {
		got := r.Steps[i]
		if got.Name != s.Name || got.Read != s.ReadBytes || got.Written != s.WrittenBytes {
			t.Errorf("%s: read %d, written %d; want %d and %d", s.Name, got.Read, got.Written, s.ReadBytes, s.WrittenBytes)
		}
	}
	if again, err := Run(t.Context(), p, [][]byte{floats(x...)}, Options{}); err != nil || again.Compile != 0 {
		t.Errorf("a second run compiles for %v, error %v", again.Compile, err)
	}
}

func TestNoCompiler(t *testing.T) {
	_, err := Run(t.Context(), artifacttest.Program(), [][]byte{make([]byte, 4*artifacttest.N)}, Options{Compiler: "no-such-compiler"})
	if !errors.Is(err, ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", "")
	t.Setenv("CXX", "")
	if err := Check(); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
}

// Errors in a program are reported before it runs, in a sentence.
func TestBadPrograms(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	for _, c := range []struct {
		name   string
		change func(p *artifact.Program)
		want   string
	}{
		{"a wrong element type", func(p *artifact.Program) { p.Kernels[0].Params[0].Elem = "f16" }, "scaled takes in:f32 in:f32 out:f32, the artifact has in:f16"},
		{"a wrong mode", func(p *artifact.Program) { p.Kernels[0].Params[2].Mode = artifact.InOut }, "the artifact has in:f32 in:f32 inout:f32"},
		{"too few arguments", func(p *artifact.Program) { p.Steps[1].Launch.Args = p.Steps[1].Launch.Args[:2] }, "has 3 parameters, the step gives it 2"},
		{"a buffer outside", func(p *artifact.Program) { p.Buffers[3].Offset = 1 << 20 }, "buffer y lies outside"},
		{"a crooked buffer", func(p *artifact.Program) { p.Buffers[3].Offset += 4 }, "which is not a multiple of 256"},
		{"a shape that is too large", func(p *artifact.Program) { p.Buffers[3].Shape = []int64{1001} }, "do not fit into its 4000 bytes"},
		{"too many threads", func(p *artifact.Program) { p.Kernels[0].Block.Threads = 2048 }, "2048 threads in a block"},
		{"part of a cluster", func(p *artifact.Program) { p.Kernels[0].Block.Cluster = 3 }, "not whole clusters of 3"},
		{"a name that is none", func(p *artifact.Program) { p.Kernels[0].Name = "a;b" }, "is not a valid name"},
		{"text that is none", func(p *artifact.Program) { p.Source += "\nint broken = ;\n" }, "does not compile"},
	} {
		p := artifacttest.Program()
		c.change(p)
		_, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{})
		wantError(t, c.name, err, c.want)
	}
	_, err := Run(t.Context(), artifacttest.Program(), nil, Options{})
	wantError(t, "no inputs", err, "takes 1 arguments, not 0")
	_, err = Run(t.Context(), artifacttest.Program(), [][]byte{{1}}, Options{})
	wantError(t, "a short input", err, "holds 4000 bytes, not 1")
}
