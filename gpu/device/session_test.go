package device

import (
	"context"
	"errors"
	"slices"
	"testing"

	"dmir/gpu/artifact"
)

// adder is a device without memory of its own: its program returns x + y, which is
// the next x, and y.
type adder struct{ fails bool }

func (adder) Name() string  { return "adder" }
func (adder) Title() string { return "the adder" }
func (adder) Arch() string  { return "" }

func (a adder) Run(_ context.Context, _ *artifact.Program, in [][]byte, _ Options) (*Result, error) {
	if a.fails {
		return nil, errors.New("no adder")
	}
	return &Result{Outputs: [][]byte{{in[0][0] + in[1][0]}, {in[1][0]}}}, nil
}

func addition() *artifact.Program {
	buffer := func(name string, at int64) artifact.Buffer {
		return artifact.Buffer{Name: name, Elem: "ui8", Shape: []int64{1}, Kind: artifact.Input, Offset: at, Bytes: 1, First: -1, Last: 0}
	}
	return &artifact.Program{
		Name: "add", Target: "cuda", Workspace: 512, Buffers: []artifact.Buffer{buffer("x", 0), buffer("y", 256)},
		Inputs: []int{0, 1}, Outputs: []int{0, 1}, State: []int{0, -1},
	}
}

// Without memory of the device the state is the host's: an input that is not given
// is the state, or as it was.
func TestHostedState(t *testing.T) {
	s, err := Open(t.Context(), adder{}, addition(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, given := range [][][]byte{{{10}, {1}}, {nil, nil}, {nil, {5}}, {nil, nil}} {
		outs, err := s.Step(t.Context(), given)
		if err != nil || outs[0] != nil || outs[1] == nil {
			t.Fatal(outs, err)
		}
	}
	state, err := s.State(t.Context())
	if err != nil || !slices.Equal(state[0], []byte{10 + 1 + 1 + 5 + 5}) || state[1] != nil {
		t.Errorf("state %v, %v", state, err)
	}
	if _, err := s.Step(t.Context(), [][]byte{nil}); err == nil {
		t.Error("one input of two")
	}
}

func TestHostedFailures(t *testing.T) {
	s, err := Open(t.Context(), adder{fails: true}, addition(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(t.Context(), [][]byte{{1}, {2}}); err == nil {
		t.Error("a device that fails")
	}
	p := addition()
	p.State = []int{0}
	if _, err := Open(t.Context(), adder{}, p, Options{}); err == nil {
		t.Error("a program that breaks a rule")
	}
}
