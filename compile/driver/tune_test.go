package driver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// stopwatch is a device that computes nothing and reports given times: one tile is
// the fastest.
type stopwatch struct{ best string }

func (stopwatch) Name() string  { return "stopwatch" }
func (stopwatch) Title() string { return "a stopwatch" }
func (stopwatch) Arch() string  { return "sm_80" }

func (w stopwatch) Run(_ context.Context, p *artifact.Program, _ [][]byte, _ device.Options) (*device.Result, error) {
	r := &device.Result{}
	for _, b := range p.Outputs {
		r.Outputs = append(r.Outputs, make([]byte, p.Buffers[b].Bytes))
	}
	for _, s := range p.Steps {
		ns := 100.0
		if s.Tile == w.best {
			ns = 50
		}
		r.Steps = append(r.Steps, device.StepResult{Name: s.Name, Runs: 1, MeasuredNs: ns})
	}
	return r, nil
}

// What was measured to be fastest is what later builds take, and a text that
// asks for a tile gets that one.
func TestTune(t *testing.T) {
	p := loaded(t, "tune.dmir", `func.func @f(%x: tensor<256x512xf16>, %w: tensor<512x256xf16>) -> tensor<256x256xf16> {
  %y = dm.einsum "ik,kj->ij" %x, %w : (tensor<256x512xf16>, tensor<512x256xf16>) -> tensor<256x256xf16>
  return %y : tensor<256x256xf16>
}
`)
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tiles.json")
	tile := func(o BuildOptions) string {
		t.Helper()
		o.Machine, o.Arch, o.TilesFile = p.Target, "sm_80", file
		built, err := Build(t.Context(), m, fn, o)
		if err != nil {
			t.Fatal(err)
		}
		return built.Steps[0].Tile
	}
	first, third := tile(BuildOptions{}), tile(BuildOptions{TileRank: 3})
	if first == third || !strings.HasPrefix(third, "mma ") {
		t.Fatalf("the model's first tile is %q, its third %q", first, third)
	}
	tuned, err := Tune(t.Context(), stopwatch{third}, Job{Program: p, Module: m, Fn: fn}, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tuned) != 1 || tuned[0].Best != third || tuned[0].Model != first || tuned[0].BestNs >= tuned[0].ModelNs {
		t.Errorf("measured: %+v", tuned)
	}
	if got := tile(BuildOptions{}); got != third {
		t.Errorf("after measuring: %q, want %q", got, third)
	}
}
