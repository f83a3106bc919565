package report_test

import (
	"strings"
	"testing"

	"dmir/analysis/pipelining"
	plans "dmir/analysis/plan"
	"dmir/analysis/report"
)

// pipelined is a plan with a pipeline of equal stages, and the timeline of it.
func pipelined(t *testing.T, s pipelining.Schedule, sh pipelining.Shape) (*plans.Plan, *pipelining.Timeline) {
	t.Helper()
	var times pipelining.Times
	for stage := range sh.Stages() {
		f := 1e-3 * (1 + 0.07*float64(stage%5))
		times.Forward, times.Backward = append(times.Forward, f), append(times.Backward, 1.3*f)
		times.Weight, times.Transfer = append(times.Weight, 0.8*f), append(times.Transfer, 0.05*f)
	}
	for range sh.Devices {
		times.Once = append(times.Once, 2e-3)
	}
	order, err := pipelining.Order(s, sh)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := pipelining.Simulate(order, s, sh, times, pipelining.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	return &plans.Plan{
		Axes:     []plans.Axis{{Name: "pipe", Size: sh.Devices}, {Name: "data", Size: 2}},
		Schedule: string(s), Chunks: sh.Chunks, Microbatches: sh.Micro, Recompute: "none", Time: tl.Total, Compute: tl.Total * 0.7,
		Bubble: 0.25, Exposed: tl.Total * 0.01, Bound: tl.Total * 0.9, Timeline: tl,
		Memory: plans.Memory{Parameters: 30e9, Activations: 10e9, Total: 40e9},
		Sent:   map[string]int64{"pipe": 3e9, "data": 1e9},
		Stages: []plans.Stage{{Line: 7, Layers: 4, Forward: 1e-3, Memory: 40e9}, {Memory: 20e9}},
	}, tl
}

func of(devices int, list ...*plans.Plan) *plans.Result {
	return &plans.Result{
		Function: "step", Target: "dgx-h100", Devices: devices, Limit: 80e9, Searched: 3, Bound: 0.01, Gap: 0.125, Plans: list,
		Model: plans.Model{Parameters: 7e9, Samples: 8, Tokens: 4096},
	}
}

func TestPlans(t *testing.T) {
	p, tl := pipelined(t, pipelining.ZBV, pipelining.Shape{Devices: 4, Chunks: 2, Micro: 8})
	slow := *p
	slow.Time, slow.Timeline, slow.Why = 2*p.Time, nil, "waits"
	d, err := report.BuildPlans("a/step.dmir", of(32), of(8, p, &slow))
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind != report.KindPlans || d.Title != "@step on 8 to 32 × dgx-h100" || d.File != "a/step.dmir" || len(d.Plans.Results) != 2 {
		t.Errorf("%q of %q, %q", d.Title, d.File, d.Kind)
	}
	few, many := d.Plans.Results[0], d.Plans.Results[1]
	if few.Devices != 8 || many.Devices != 32 || len(many.Plans) != 0 || many.TimeLabel != "" || many.CostLabel != "" {
		t.Errorf("results are not by number of devices: %d, %d", few.Devices, many.Devices)
	}
	if want := tl.Total * 1e9 * 8 / 4096; few.Cost != want {
		t.Errorf("a token takes %v of the devices, not %v", few.Cost, want)
	}
	first, second := few.Plans[0], few.Plans[1]
	for _, c := range []struct{ what, got, want string }{
		{"axes", first.Axes, "pipe 4 × data 2"},
		{"slower", first.Slower, ""},
		{"slower", second.Slower, "+100 %"},
		{"bubble", first.BubbleShare, "25.0 %"},
		{"gap", first.GapLabel, "10.0 %"},
		{"gap of all", few.GapLabel, "12.5 %"},
		{"memory", first.MemoryLabel + " " + first.MemoryShare, "40.0 GB 50.0 %"},
		{"sent", first.SentLabel, "4.00 GB"},
		{"sent first", first.Sent[0].Axes, "data"},
		{"a stage", first.Stages[1].MemoryShare, "25.0 %"},
		{"why", second.Why, "waits"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if got := first.ComputeNs + first.ExposedNs + first.BubbleNs + first.OtherNs - first.TimeNs; got < -2 || got > 2 {
		t.Errorf("the parts of the time differ from it by %d ns", got)
	}
	if first.Stages[0].Line != 7 || first.Stages[1].Line != 0 || len(first.MemoryParts) != 2 || second.Pipeline != nil {
		t.Errorf("%+v", first)
	}
	// The columns are the tasks of the timeline.
	for i, lane := range first.Pipeline.Lanes {
		now := int64(0)
		for j, s := range tl.Devices[i].Spans {
			now += lane.GapNs[j]
			if off := now - int64(s.Start*1e9); off < -1 || off > 1 || lane.Micro[j] != s.Task.Micro || lane.Stage[j] != s.Task.Stage ||
				lane.Kinds[j:j+1] != s.Task.Kind.String() {
				t.Fatalf("device %d, task %d: at %d, want %+v", i, j, now, s)
			}
			now += lane.RunNs[j]
		}
		if lane.Shares != nil {
			t.Errorf("device %d has shares beside its tasks", i)
		}
	}
}

// The tasks of more pipelines than a page has room for are shares of equal parts of the step, which
// amount to the time that the tasks take.
func TestLargePlans(t *testing.T) {
	large, tl := pipelined(t, pipelining.ZBH1, pipelining.Shape{Devices: 64, Chunks: 1, Micro: 256})
	d, err := report.BuildPlans("step.dmir", of(128, large, large))
	if err != nil {
		t.Fatal(err)
	}
	rows := d.Plans.Results[0].Plans
	if rows[0].Pipeline.Lanes[0].Shares != nil || rows[1].Pipeline.Lanes[0].Shares == nil || rows[1].Pipeline.Lanes[0].Kinds != "" {
		t.Fatal("the first pipeline has its tasks, the second one shares")
	}
	for i, lane := range rows[1].Pipeline.Lanes {
		var want [3]float64
		for _, s := range tl.Devices[i].Spans {
			want[s.Task.Kind] += s.End - s.Start
		}
		for kind, list := range [][]int{lane.Shares.Forward, lane.Shares.Backward, lane.Shares.Weight} {
			got := 0.0
			for _, percent := range list {
				if percent < 0 || percent > 100 {
					t.Fatalf("device %d: %d %%", i, percent)
				}
				got += float64(percent) / 100 * tl.Total / float64(len(list))
			}
			if off := got/want[kind] - 1; off < -0.02 || off > 0.02 {
				t.Errorf("device %d has shares of kind %d of %v in all, not %v", i, kind, got, want[kind])
			}
		}
	}
	text, err := report.JSON(d)
	if err != nil || len(text) > 2_000_000 {
		t.Errorf("the page has %d bytes (%v)", len(text), err)
	}
}

func TestPlansThatAreNone(t *testing.T) {
	other := of(16)
	other.Function = "train"
	for _, c := range []struct {
		results []*plans.Result
		want    string
	}{
		{nil, "no plans"},
		{[]*plans.Result{of(8), other}, "@step and of @train are not one sweep"},
	} {
		if _, err := report.BuildPlans("f", c.results...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// A step of no time, as of a program that computes nothing, has no shares to divide by.
	tasks := make([]pipelining.Span, 40_000)
	one := pipelining.Shape{Devices: 1, Chunks: 1, Micro: 1}
	empty := &plans.Plan{Timeline: &pipelining.Timeline{Devices: []pipelining.Lane{{Spans: tasks}}, Shape: one}}
	d, err := report.BuildPlans("f", of(1, empty, empty))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.HTML(d); err != nil {
		t.Error(err)
	}
}
