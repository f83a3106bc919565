package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	planner "dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/base/work"
	"dmir/bench/models"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	_ "dmir/compile/target/all"
	"dmir/syntax/source"
)

// The order of steps hides more of what devices send than the one before, which kept the order of least memory; the times
// before are those of that. What the time of a compiled text plays is what the artifact plays.
func TestExposed(t *testing.T) {
	on, _ := machine.Lookup("dgx-h100")
	of := target.For(on.Arch)
	step, err := os.ReadFile(filepath.Join("..", "..", "examples", "mlp_train.dmir"))
	if err != nil {
		t.Fatal(err)
	}
	gpt, err := models.GPT(models.Config{Layers: 1, Hidden: 256, Heads: 4, Vocabulary: 512, Sequence: 128, Batch: 16, Rate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"mlp": string(step), "gpt2": gpt}
	data, tensor, both := planner.Setting{Data: 8}, planner.Setting{Tensor: 8}, planner.Setting{Data: 2, Tensor: 4}
	for _, c := range []struct {
		name   string
		fix    planner.Setting
		before float64 // µs exposed; 0: it was not measured
	}{
		{"mlp", data, 164.3},
		{"mlp", tensor, 161.7},
		{"mlp", both, 368.9},
		{"gpt2", both, 0},
	} {
		p := program.Load(source.New("step.dmir", texts[c.name]), program.Options{Target: on})
		q, err := request.New(p, request.Asked{Devices: 8})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.fix.Pipe, c.fix.Microbatches = 1, 1
		q.Options.Top, q.Options.Fix = 1, c.fix
		found, err := q.Search(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text, err := found.Write(found.Plans[0])
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		written := program.Load(source.New("planned.dmir", text), program.Options{Target: on})
		var counts work.Counts
		u := &pass.Unit{Module: written.Modules[0].Clone(), Machine: target.Machine(of, on), Options: pass.Options{Devices: pass.AllDevices}, Work: &counts}
		u.Func = u.Module.Func(written.Funcs[0].Func.Name)
		g := of.Generator(target.Options{Arch: on.Arch})
		if err := pass.Run(u, pipeline.For(g), nil); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		x := cost.Function(u.Func, u.Module, nil).Overlap(on)
		built, err := g.Program(u)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		t.Logf("%s %v: %.1f µs, exposed %.1f of %.1f µs; before %.1f", c.name, found.Plans[0].Names, x.Ns/1e3, x.ExposedNs/1e3, x.Comm/1e3, c.before)
		if !x.Known || c.before > 0 && x.ExposedNs > c.before*1e3 || x.ExposedNs > x.Comm+1 || x.Ns > x.Compute+x.Comm+1 {
			t.Errorf("%s %v: %.1f µs exposed of %.1f, and %.1f before", c.name, found.Plans[0].Names, x.ExposedNs/1e3, x.Comm/1e3, c.before)
		}
		if got := built.Predicted(); math.Abs(got-x.Ns) > 1e-6*x.Ns {
			t.Errorf("%s %v: the artifact takes %g ns, its text %g", c.name, found.Plans[0].Names, got, x.Ns)
		}
		if counts.Take()["order"] == 0 {
			t.Errorf("%s %v: no order was looked for", c.name, found.Plans[0].Names)
		}
	}
}
