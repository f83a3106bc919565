package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/devicetest"
	"dmir/testkit/need"
)

// needClang skips a test where programs cannot be compiled, but not in CI.
func needClang(t testing.TB) {
	t.Helper()
	_, err := Find(t.Context())
	need.OK(t, err)
	if _, ok := Host(); !ok {
		need.OK(t, errHost)
	}
}

func equal(want ...[]float32) func([][]byte) error {
	return func(outputs [][]byte) error {
		for i := range want {
			if got := numbers(outputs[i]); !slices.Equal(got, want[i]) {
				return fmt.Errorf("result %d is %v, want %v", i, got[:min(len(got), 5)], want[i][:min(len(want[i]), 5)])
			}
		}
		return nil
	}
}

func scaled(list []float32, by float32) []float32 {
	out := slices.Clone(list)
	for i := range out {
		out[i] *= by
	}
	return out
}

func powerInputs(n int64, k uint32, flag byte) [][]byte {
	return [][]byte{floats(ramp(n)...), binary.LittleEndian.AppendUint32(nil, k), {flag}}
}

func build(p *artifact.Program) func(string) (*artifact.Program, error) {
	return func(string) (*artifact.Program, error) { return p, nil }
}

// The suite of devices, with any number of threads.
func TestDevice(t *testing.T) {
	needClang(t)
	cached(t)
	const n = 100_000 // the loops of kernels are shared by threads
	cases := []devicetest.Case{
		{Name: "double", Build: build(doubled(n)), Inputs: [][]byte{floats(ramp(n)...)}, Check: equal(scaled(ramp(n), 2))},
		{Name: "loop", Build: build(power(n)), Inputs: powerInputs(n, 5, 1), Check: equal(scaled(ramp(n), -32*9))},
		{Name: "no loop", Build: build(power(1)), Inputs: powerInputs(1, 0, 0), Check: equal(scaled(ramp(1), 9))},
		{Name: "step", Build: build(step(3)), Inputs: [][]byte{floats(1, 2, 3), floats(10, 20, 30), floats(1, 1, 1)}, Check: equal([]float32{2, 3, 4}, []float32{12, 23, 34}, []float32{14, 26, 38})},
		{Name: "swap", Build: build(swap()), Inputs: [][]byte{floats(1, 2, 3), floats(4, 5, 6)}, Check: equal([]float32{4, 5, 6}, []float32{1, 2, 3}, []float32{1, 2, 3})},
		{Name: "empty", Build: build(doubledEmpty()), Inputs: [][]byte{{}}, Check: equal(nil)},
	}
	for _, threads := range []string{"1", "2", "3", "40"} {
		t.Run(threads, func(t *testing.T) {
			t.Setenv("DMIR_THREADS", threads)
			devicetest.Run(t, processor{}, cases)
		})
	}
}

// doubledEmpty returns its argument, which has no elements.
func doubledEmpty() *artifact.Program {
	b := program("empty")
	x, y := b.buffer("x", "f32", artifact.Input, 0), b.buffer("y", "f32", artifact.Output, 0)
	b.copy(y, x)
	return b.done()
}

// What a run reports of its steps.
func TestMeasured(t *testing.T) {
	needClang(t)
	cached(t)
	p := power(1000)
	var told []device.Progress
	r, err := processor{}.Run(t.Context(), p, powerInputs(1000, 5, 0), device.Options{Runs: 3, Cold: true, Progress: func(p device.Progress) { told = append(told, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := equal(scaled(ramp(1000), 32*9))(r.Outputs); err != nil {
		t.Error(err)
	}
	want := map[string]int64{"copy 0": 1, "fill 1": 1, "decision 2": 6, "below": 6, "grow": 5, "count": 5, "decision 6": 1, "negate": 0, "decision 8": 2, "triple": 2}
	for _, s := range r.Steps {
		if s.Runs != want[s.Name] {
			t.Errorf("%s ran %d times, want %d", s.Name, s.Runs, want[s.Name])
		}
		if s.Counted || s.Name == "triple" && s.MeasuredNs <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if r.Untimed != "" || r.Elapsed <= 0 || r.Compile <= 0 || len(told) == 0 || told[0].Of != len(p.Steps) {
		t.Errorf("untimed %q, elapsed %v, compile %v, progress %v", r.Untimed, r.Elapsed, r.Compile, told)
	}
	again, err := processor{}.Run(t.Context(), p, powerInputs(1000, 5, 0), device.Options{})
	if err != nil || again.Compile != 0 {
		t.Errorf("compiled again: %v, %v", again, err)
	}
}

// State stays in the program's memory from step to step.
func TestSession(t *testing.T) {
	needClang(t)
	cached(t)
	s, err := device.Open(t.Context(), processor{}, step(3), device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(t.Context(), make([][]byte, 3)); err == nil {
		t.Error("a first step without values")
	}
	x := floats(1, 1, 1)
	for i, c := range []struct {
		in   [][]byte
		loss []float32
	}{
		{[][]byte{floats(1, 2, 3), floats(10, 20, 30), x}, []float32{14, 26, 38}}, // w 2 3 4, v 12 23 34
		{[][]byte{nil, nil, nil}, []float32{18, 31, 44}},                          // w 3 4 5, v 15 27 39
		{[][]byte{nil, nil, floats(2, 2, 2)}, []float32{25, 39, 53}},              // w 5 6 7, v 20 33 46
		{[][]byte{floats(0, 0, 0), nil, nil}, []float32{24, 37, 50}},              // w 2 2 2, v 22 35 48
	} {
		outs, err := s.Step(t.Context(), c.in)
		if err != nil || outs[0] != nil || outs[1] != nil {
			t.Fatal(outs, err)
		}
		if got := numbers(outs[2]); !slices.Equal(got, c.loss) {
			t.Errorf("step %d: %v, want %v", i, got, c.loss)
		}
		clear(x) // the caller's memory is free again
	}
	state, err := s.State(t.Context())
	if err != nil || !slices.Equal(numbers(state[0]), []float32{2, 2, 2}) || !slices.Equal(numbers(state[1]), []float32{22, 35, 48}) || state[2] != nil {
		t.Errorf("state %v, %v", state, err)
	}
	if _, err := s.Step(t.Context(), [][]byte{{1}, nil, nil}); err == nil {
		t.Error("an input that is too short")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Step(ctx, make([][]byte, 3)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled step: %v", err)
	}
	if _, err := s.Step(t.Context(), make([][]byte, 3)); err != nil {
		t.Errorf("after a step that did not begin: %v", err)
	}
	s.Close()
	if _, err := s.Step(t.Context(), make([][]byte, 3)); err == nil {
		t.Error("a step of a closed session")
	}
}

// Two programs are open at the same time, and each has its own interface.
func TestTwoPrograms(t *testing.T) {
	needClang(t)
	cached(t)
	a, err := device.Open(t.Context(), processor{}, swap(), device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := device.Open(t.Context(), processor{}, step(3), device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x, y := floats(1, 2, 3), floats(4, 5, 6)
	for i := range 4 {
		out, err := a.Step(t.Context(), [][]byte{x, y})
		if err != nil {
			t.Fatal(err)
		}
		want := []float32{1, 2, 3}
		if i%2 == 1 {
			want = []float32{4, 5, 6}
		}
		if got := numbers(out[2]); !slices.Equal(got, want) {
			t.Errorf("run %d: %v, want %v", i, got, want)
		}
		x, y = nil, nil
		if out, err = b.Step(t.Context(), [][]byte{floats(1, 2, 3), floats(10, 20, 30), floats(1, 1, 1)}); err != nil || !slices.Equal(numbers(out[2]), []float32{14, 26, 38}) {
			t.Errorf("run %d of the other: %v, %v", i, out, err)
		}
	}
}

// A fault names its kernel and line on the calling thread and on another one, and leaves
// the faults of Go, and of later programs, as they were.
func TestFault(t *testing.T) {
	needClang(t)
	cached(t)
	for _, threads := range []string{"1", "3"} {
		t.Setenv("DMIR_THREADS", threads)
		b := program("wild")
		x, y := b.buffer("x", "i32", artifact.Input, 3), b.buffer("y", "i32", artifact.Output, 3)
		b.launch("fine", "%r = add i32 %v0, 1", x, y)
		b.launch("wild", "%far = getelementptr i32, i32* %at0, i64 1099511627776\n%r = load i32, i32* %far", x, y)
		p := b.done()
		_, err := processor{}.Run(t.Context(), p, [][]byte{make([]byte, 12)}, device.Options{})
		f, ok := artifact.FailureOf(err)
		if !ok || f.Reason != artifact.Faulted || f.File != "wild.dmir" || f.Line != 2 || !strings.HasPrefix(err.Error(), "wild.dmir:2: the kernel wild failed: it accesses the address 0x") {
			t.Errorf("%s threads: %v, %+v", threads, err, f)
		}
		s, err := device.Open(t.Context(), processor{}, p, device.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.Step(t.Context(), [][]byte{make([]byte, 12)}); err == nil {
				t.Error("a step with a fault, and one after it")
			}
		}
		s.Close()
	}
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "nil pointer") {
				t.Errorf("a fault of Go: %v", err)
			}
		}()
		var none *artifact.Program
		t.Log(none.Workspace)
	}()
	if _, err := (processor{}).Run(t.Context(), doubled(3), [][]byte{make([]byte, 12)}, device.Options{}); err != nil {
		t.Error("after faults:", err)
	}
}

// Programs that do not run here.
func TestRefused(t *testing.T) {
	cached(t)
	in := [][]byte{make([]byte, 12)}
	foreign := doubled(3)
	foreign.Foreign = true
	cuda := doubled(3)
	cuda.Target = "cuda"
	broken := doubled(3)
	broken.Workspace = 0
	blocks := doubled(3)
	blocks.Kernels[0].Block.Threads = 64
	for _, c := range []struct {
		p      *artifact.Program
		reason artifact.Reason
		text   string
	}{{foreign, artifact.Untrusted, "was not compiled by this user"}, {cuda, 0, `compiled for the target "cuda"`}, {broken, 0, "of a workspace of 0"}, {blocks, 0, "a launch for a GPU"}} {
		_, err := processor{}.Run(t.Context(), c.p, in, device.Options{})
		f, _ := artifact.FailureOf(err)
		if err == nil || f.Reason != c.reason || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %q", err, c.text)
		}
		if _, err := Compile(t.Context(), c.p, "x86-64-v3"); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %q", err, c.text)
		}
	}
	_, err := Compile(t.Context(), doubled(3), "sm_90a")
	if f, _ := artifact.FailureOf(err); f.Reason != artifact.UnknownArch {
		t.Error(err)
	}
	needClang(t)
	large := doubled(3)
	large.Workspace = 1 << 60
	if _, err = (processor{}).Run(t.Context(), large, in, device.Options{}); err == nil || !strings.Contains(err.Error(), "double needs 1152921504606846976 bytes of memory") {
		t.Error(err)
	}
}

func TestKind(t *testing.T) {
	k := Kinds()[0]
	ds, err := k.Find()
	need.OK(t, err)
	if len(ds) != 1 || ds[0].Name() != "cpu" || !ValidArch(ds[0].Arch()) || !strings.Contains(ds[0].Title(), "thread") {
		t.Errorf("%v", ds)
	}
	t.Setenv("PATH", t.TempDir())
	os.Unsetenv("DMIR_CLANG")
	if why := k.Why(ds); why != "this machine's CPU" || k.Ready() == nil {
		t.Errorf("%q, %v", why, k.Ready())
	}
}
