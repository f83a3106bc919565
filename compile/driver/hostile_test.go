package driver

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/device"
)

// blank is a device that gives zeros for every result.
type blank struct{}

func (blank) Name() string  { return "blank" }
func (blank) Title() string { return "blank" }
func (blank) Arch() string  { return "sm_90a" }

func (blank) Run(_ context.Context, p *artifact.Program, _ [][]byte, _ device.Options) (*device.Result, error) {
	res := &device.Result{Steps: make([]device.StepResult, len(p.For("sm_90a").Steps))}
	for _, o := range p.Outputs {
		res.Outputs = append(res.Outputs, make([]byte, p.Buffers[o].Size()))
	}
	return res, nil
}

// A compiled program that loads accepts arguments and returns results, whatever is
// in its file.
func TestHostileArtifacts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	viewed := artifacttest.Program()
	viewed.Views = []*artifact.View{{Shape: []int64{10, 100}, Order: []int{1, 0}}}
	programs := []*artifact.Program{viewed, artifacttest.Loop()}
	ran := 0
	for n := range 1000 {
		p, err := artifact.Read(bytes.NewReader(artifacttest.Mutated(programs[n%2], r)))
		if err != nil || p.Workspace > 1<<20 {
			continue
		}
		var args []*tensor.Tensor
		for _, b := range p.Inputs {
			elem, _ := types.ElemByName(p.Buffers[b].Elem)
			var shape []int
			for _, d := range p.Buffers[b].Shape {
				shape = append(shape, int(d))
			}
			args = append(args, tensor.New(elem, shape...))
		}
		res, err := RunArtifact(t.Context(), blank{}, p, args, device.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Outputs) != len(p.Outputs) {
			t.Fatalf("%d results of %d", len(res.Outputs), len(p.Outputs))
		}
		ran++
	}
	if ran < 30 {
		t.Errorf("%d programs ran", ran)
	}
}
