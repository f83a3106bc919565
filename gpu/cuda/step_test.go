package cuda

import (
	"math"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// The state stays on the device: each step applies out = 3 x - x + sum(3 x) to the
// result of the one before, and only the sum is copied back.
func TestStep(t *testing.T) {
	f := newFake(t)
	p := artifacttest.Program()
	p.State = []int{0, -1}
	s := load(t, f, p)
	x, _, _ := input()
	want := floats(x)
	for step := range 3 {
		given := [][]byte{nil}
		if step == 0 {
			given[0] = x
		}
		outs, err := s.Step(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		sum := float32(0)
		for _, v := range want {
			sum += 3 * v
		}
		for i, v := range want {
			want[i] = 2*v + sum
		}
		if got := floats(outs[1])[0]; outs[0] != nil || math.Abs(float64(got-sum)) > 1e-3*math.Abs(float64(sum)) {
			t.Errorf("step %d: outputs %v, want no state and the sum %g", step, got, sum)
		}
	}
	state, err := s.State(t.Context())
	if err != nil || state[1] != nil {
		t.Fatal(state[1], err)
	}
	for i, v := range floats(state[0]) {
		if math.Abs(float64(v-want[i])) > 1e-3*math.Abs(float64(want[i])) {
			t.Fatalf("element %d is %g, want %g", i, v, want[i])
		}
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

// State in the memory of other state is moved as if all of it moved at once.
func TestSwap(t *testing.T) {
	f := newFake(t)
	buffer := func(name string, at int64) artifact.Buffer {
		return artifact.Buffer{Name: name, Elem: "f32", Shape: []int64{1}, Kind: artifact.Input, Offset: at, Bytes: 4, First: -1, Last: 0}
	}
	p := &artifact.Program{
		Name: "turn", Target: "cuda", Workspace: 768, Buffers: []artifact.Buffer{buffer("a", 0), buffer("b", 256), buffer("c", 512)},
		Inputs: []int{0, 1, 2}, Outputs: []int{2, 0, 1}, State: []int{0, 1, 2},
	}
	s := load(t, f, p)
	given := [][]byte{{1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}
	for range 2 {
		if _, err := s.Step(t.Context(), given); err != nil {
			t.Fatal(err)
		}
		given = make([][]byte, 3)
	}
	state, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := []byte{state[0][0], state[1][0], state[2][0]}; !slices.Equal(got, []byte{2, 3, 1}) {
		t.Errorf("after two turns of 1 2 3: %v", got)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

func TestStepInputs(t *testing.T) {
	s := load(t, newFake(t), artifacttest.Program())
	defer s.Close()
	x, _, _ := input()
	for text, given := range map[string][][]byte{
		"no value in the first step": {nil},
		"has 1 bytes":                {{1}},
		"takes 1 inputs":             {x, x},
	} {
		if _, err := s.Step(t.Context(), given); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
		s.steps = nil
	}
	for range 2 { // what is given stays
		outs, err := s.Step(t.Context(), [][]byte{x})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, outs)
		x = nil
	}
}
