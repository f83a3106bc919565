package page_test

import (
	"fmt"
	"testing"

	"dmir/analysis/pipelining"
	"dmir/analysis/plan"
	"dmir/analysis/report"
)

// A training step of 64 layers, as the planner may divide it: figures of one micro-batch and layer on one device.
const (
	layers   = 64
	samples  = 512
	tokens   = samples * 4096
	forward  = 0.020 // seconds for a sample and layer on one device
	backward = 0.024
	weight   = 0.017
	limit    = 80 << 30
)

// planned is a plan with so many devices along each axis.
func planned(t *testing.T, pipe, data, tensor, chunks, micro int, s pipelining.Schedule) *plan.Plan {
	t.Helper()
	devices := pipe * data * tensor
	p := &plan.Plan{
		Axes:   []plan.Axis{{Name: "pipe", Size: pipe}, {Name: "data", Size: data}, {Name: "tensor", Size: tensor}},
		Names:  []string{fmt.Sprintf("data %d × tensor %d × pipeline %d", data, tensor, pipe), "optimizer states split over data (ZeRO-1)"},
		Chunks: chunks, Microbatches: micro, Recompute: "none",
	}
	sh := pipelining.Shape{Devices: pipe, Chunks: chunks, Micro: micro}
	share := float64(samples) / float64(data*micro*tensor)
	var times pipelining.Times
	var mem pipelining.Memory
	for stage := range sh.Stages() {
		n := layers / sh.Stages()
		work := share * float64(n)
		if stage == sh.Stages()-1 {
			work *= 1.15 // the head
		}
		times.Forward = append(times.Forward, forward*work)
		times.Backward = append(times.Backward, backward*work)
		times.Weight = append(times.Weight, weight*work)
		times.Transfer = append(times.Transfer, 0.04*forward*work)
		mem.Activations = append(mem.Activations, int64(share*float64(n)*2e8))
		mem.Kept = append(mem.Kept, int64(share*float64(n)*1e8))
		p.Stages = append(p.Stages, plan.Stage{
			Line: 10 + 5*stage, Layers: n, Forward: forward * work, Backward: (backward + weight) * work, Weight: weight * work,
			Transfer: 0.04 * forward * work, Once: 0.3,
		})
	}
	for range pipe {
		times.Once = append(times.Once, 0.3)
	}
	parameters := int64(140e9) / int64(pipe*tensor)
	p.Memory = plan.Memory{Parameters: parameters, Gradients: parameters, States: 6 * parameters / int64(data), Working: 1 << 30}
	order, err := pipelining.Order(s, sh)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := pipelining.Simulate(order, s, sh, times, mem)
	if err != nil {
		t.Fatal(err)
	}
	held := func(d int) int64 {
		return p.Memory.Parameters + p.Memory.Gradients + p.Memory.States + p.Memory.Working + tl.Devices[d].Peak
	}
	for i := range p.Stages {
		p.Stages[i].Memory = held(pipelining.Device(s, sh, i))
	}
	p.Memory.Activations = tl.Peak()
	p.Memory.Total = held(0)
	p.Time, p.Bubble = tl.Total, tl.MaxBubble
	p.Exposed = 0.3
	p.Compute = p.Time*(1-p.Bubble) - p.Exposed
	p.Tokens = tokens / p.Time
	p.MFU = 3 * forward * layers * samples / p.Time / float64(devices) * 0.6
	p.Sent = map[string]int64{"data": 40 << 30, "tensor": 90 << 30}
	if pipe > 1 {
		p.Timeline, p.Schedule = tl, string(s)
		p.Sent["pipe"] = 3 << 30
	}
	p.Bound = p.Time * 0.97
	p.Objective = p.Time
	return p
}

func result(devices int, plans ...*plan.Plan) *plan.Result {
	r := &plan.Result{
		Function: "step", Target: "dgx-h100", Devices: devices, Limit: limit, Searched: 412, Elapsed: 3.2, Plans: plans,
		Model: plan.Model{Parameters: 70e9, FLOP: 8.6e17, Samples: samples, Tokens: tokens, Layers: layers},
	}
	for i, p := range plans {
		if i == 0 {
			r.Bound = p.Time * 0.95
			r.Gap = (p.Time - r.Bound) / p.Time
			continue
		}
		p.Why = fmt.Sprintf("the bubble is %.1f %% of the step", 100*p.Bubble)
	}
	return r
}

// plansPages are pages of the panel of plans by name.
func plansPages(t *testing.T) map[string]report.Data {
	t.Helper()
	pages := map[string]report.Data{}
	build := func(name string, results ...*plan.Result) {
		d, err := report.BuildPlans("examples/step.dmir", results...)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = d
	}
	few := func() []*plan.Plan {
		return []*plan.Plan{
			planned(t, 8, 2, 4, 2, 16, pipelining.ZBV), planned(t, 8, 2, 4, 1, 16, pipelining.OneFOneB),
			planned(t, 4, 4, 4, 4, 10, pipelining.Interleaved), planned(t, 8, 1, 8, 1, 8, pipelining.GPipe), planned(t, 1, 8, 8, 1, 4, pipelining.GPipe),
		}
	}
	build("step.plans", result(64, few()...))
	build("hostile.plans", result(64, few()...))
	build("none.plans", result(8))
	build("sweep.plans", result(256, planned(t, 16, 4, 4, 2, 32, pipelining.ZBV)), result(16, planned(t, 4, 1, 4, 1, 32, pipelining.ZBH1)),
		result(8), result(64, few()...), result(1024, planned(t, 16, 16, 4, 1, 32, pipelining.OneFOneB)))
	build("large.plans", result(64, planned(t, 64, 1, 1, 1, 256, pipelining.ZBH1), planned(t, 64, 1, 1, 1, 512, pipelining.OneFOneB)))
	return pages
}
