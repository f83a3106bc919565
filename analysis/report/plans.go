package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/pipelining"
	"dmir/analysis/plan"
	"dmir/analysis/units"
)

// KindPlans is the panel of the plans for a training step. BuildPlans makes it.
const KindPlans = "plans"

// What a page shows of pipelines: the tasks of the first plans, as long as there are at most pageTasks,
// and the shares of laneParts parts of the step for each device of the others.
const (
	pageTasks = 60_000
	laneParts = 240
)

// BuildPlans is the data of the panel with the plans of a search for a function of a file, or of several
// searches for the same function with different numbers of devices. It is an error if there is no result,
// or if results are of different functions.
func BuildPlans(file string, results ...*plan.Result) (Data, error) {
	if len(results) == 0 {
		return Data{}, errors.New("there are no plans to show")
	}
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(a, b *plan.Result) int { return cmp.Compare(a.Devices, b.Devices) })
	first := results[0]
	devices := strconv.Itoa(first.Devices)
	if n := len(results); n > 1 {
		devices += " to " + strconv.Itoa(results[n-1].Devices)
	}
	d := Data{
		Kind: KindPlans, File: file, Function: first.Function, Functions: []Function{},
		Title:  fmt.Sprintf("@%s on %s × %s", first.Function, devices, first.Target),
		Target: Target{Name: first.Target, Title: first.Target, Peaks: []Peak{}},
		Plans:  &Plans{Model: model(first.Model)},
	}
	tasks := pageTasks
	for _, r := range results {
		if r.Function != first.Function {
			return Data{}, fmt.Errorf("plans of @%s and of @%s are not one sweep", first.Function, r.Function)
		}
		d.Plans.Results = append(d.Plans.Results, planResult(r, &tasks))
	}
	return d, nil
}

func model(m plan.Model) []Fact {
	facts := []Fact{
		{"parameters", units.Count(float64(m.Parameters))},
		{"FLOP of a step", units.Work(m.FLOP)},
		{"samples", units.Count(float64(m.Samples))},
		{"tokens", units.Count(float64(m.Tokens))},
	}
	if m.Layers > 0 {
		facts = append(facts, Fact{"layers", strconv.Itoa(m.Layers)})
	}
	return facts
}

// ns is a time in seconds as nanoseconds.
func ns(seconds float64) int64 { return round(seconds * 1e9) }

func seconds(s float64) string { return units.Time(s * 1e9) }

func planResult(r *plan.Result, tasks *int) PlanResult {
	out := PlanResult{
		Devices: r.Devices, Plans: []PlanRow{}, Limit: r.Limit, LimitLabel: units.Bytes(r.Limit), Searched: r.Searched,
		BoundNs: ns(r.Bound), BoundLabel: seconds(r.Bound), ElapsedLabel: seconds(r.Elapsed),
	}
	if len(r.Plans) == 0 {
		return out
	}
	if r.Modelled == "" {
		out.BoundLabel += " by the model of the search"
	}
	best := r.Plans[0]
	out.GapLabel = units.Percent(r.Gap, 1)
	out.TimeNs, out.TimeLabel = ns(best.Time), seconds(best.Time)
	if tokens := max(r.Model.Tokens, r.Model.Samples); tokens > 0 {
		out.Cost = best.Time * 1e9 * float64(r.Devices) / float64(tokens)
		out.CostLabel = units.Time(out.Cost)
	}
	for i, p := range r.Plans {
		out.Plans = append(out.Plans, planRow(p, i+1, best, r.Limit, tasks))
	}
	return out
}

func planRow(p *plan.Plan, rank int, best *plan.Plan, limit int64, tasks *int) PlanRow {
	var axes []string
	for _, a := range p.Axes {
		axes = append(axes, fmt.Sprintf("%s %d", a.Name, a.Size))
	}
	bubble := p.Bubble * p.Time
	other := max(0, p.Time-p.Compute-p.Exposed-bubble)
	row := PlanRow{
		Rank: rank, Axes: strings.Join(axes, " × "), Names: append([]string{}, p.Names...), Chunks: p.Chunks,
		Microbatches: p.Microbatches, Schedule: p.Schedule, Recompute: p.Recompute,
		TimeNs: ns(p.Time), TimeLabel: seconds(p.Time),
		ComputeNs: ns(p.Compute), ComputeLabel: seconds(p.Compute),
		ExposedNs: ns(p.Exposed), ExposedLabel: seconds(p.Exposed),
		BubbleNs: ns(bubble), BubbleLabel: seconds(bubble), BubbleShare: units.Percent(p.Bubble, 1),
		OtherNs: ns(other), OtherLabel: seconds(other),
		Tokens: p.Tokens, TokensLabel: units.Count(p.Tokens), MFU: p.MFU, MFULabel: units.Percent(p.MFU, 1),
		Memory: p.Memory.Total, MemoryLabel: units.Bytes(p.Memory.Total), MemoryShare: shareOf(p.Memory.Total, limit),
		MemoryParts: memoryParts(p.Memory), Stages: []PlanStage{}, Why: p.Why,
	}
	if rank > 1 && best.Time > 0 {
		row.Slower = "+" + units.Percent(p.Time-best.Time, best.Time)
	}
	if by := cmp.Or(p.Modelled, p.Time); by > 0 && p.Bound > 0 {
		row.Gap = max(0, by-p.Bound) / by
		row.GapLabel = units.Percent(row.Gap, 1)
	}
	for _, axes := range slices.Sorted(maps.Keys(p.Sent)) {
		n := p.Sent[axes]
		row.Sent = append(row.Sent, SentOn{axes, n, units.Bytes(n)})
		row.SentBytes += n
	}
	row.SentLabel = units.Bytes(row.SentBytes)
	for _, s := range p.Stages {
		stage := PlanStage{
			Layers: s.Layers, ForwardLabel: seconds(s.Forward), BackwardLabel: seconds(s.Backward), WeightLabel: seconds(s.Weight),
			TransferLabel: seconds(s.Transfer), OnceLabel: seconds(s.Once),
			Memory: s.Memory, MemoryLabel: units.Bytes(s.Memory), MemoryShare: shareOf(s.Memory, limit),
		}
		if s.Line > 0 {
			stage.Place = Place{Line: s.Line, Column: 1, EndColumn: 1}
		}
		row.Stages = append(row.Stages, stage)
	}
	if p.Timeline != nil {
		row.Pipeline = pipelineOf(p.Timeline, tasks)
	}
	return row
}

func shareOf(n, limit int64) string {
	if limit <= 0 {
		return ""
	}
	return units.Percent(float64(n), float64(limit))
}

func memoryParts(m plan.Memory) []PlanPart {
	parts := []PlanPart{}
	for _, p := range []PlanPart{
		{Name: "parameters", Bytes: m.Parameters},
		{Name: "gradients", Bytes: m.Gradients},
		{Name: "optimizer states", Bytes: m.States},
		{Name: "activations", Bytes: m.Activations},
		{Name: "working memory", Bytes: m.Working},
	} {
		if p.Bytes > 0 {
			p.Label = units.Bytes(p.Bytes)
			parts = append(parts, p)
		}
	}
	return parts
}

// pipelineOf is a timeline for a page that has room for so many tasks more.
func pipelineOf(tl *pipelining.Timeline, tasks *int) *Pipeline {
	n := 0
	for i := range tl.Devices {
		n += len(tl.Devices[i].Spans)
	}
	whole := n <= *tasks
	if whole {
		*tasks -= n
	}
	out := &Pipeline{TimeNs: ns(tl.Total), Micro: tl.Shape.Micro, Lanes: []PipelineLane{}}
	for d := range tl.Devices {
		l := &tl.Devices[d]
		lane := PipelineLane{
			Stages: pipelining.StagesOf(tl.Schedule, tl.Shape, d), OnceStartNs: ns(l.Once.Start), OnceEndNs: ns(l.Once.End),
			IdleLabel: seconds(l.Idle), ExposedLabel: seconds(l.Exposed), BubbleLabel: units.Percent(l.Bubble, 1), InFlight: l.InFlight,
		}
		if whole {
			lane.tasks(l.Spans)
		} else {
			lane.Shares = shares(l.Spans, tl.Total)
		}
		out.Lanes = append(out.Lanes, lane)
	}
	return out
}

func (l *PipelineLane) tasks(spans []pipelining.Span) {
	var kinds strings.Builder
	end := int64(0)
	for _, s := range spans {
		kinds.WriteString(s.Task.Kind.String())
		if len(l.Stages) > 1 {
			l.Stage = append(l.Stage, s.Task.Stage)
		}
		start := ns(s.Start)
		l.Micro, l.GapNs = append(l.Micro, s.Task.Micro), append(l.GapNs, start-end)
		end = ns(s.End)
		l.RunNs = append(l.RunNs, end-start)
	}
	l.Kinds = kinds.String()
}

// shares is how much of each of laneParts parts of the step the tasks of each kind take.
func shares(spans []pipelining.Span, total float64) *PipelineShare {
	var sums [3][laneParts]float64
	part := total / laneParts
	if part <= 0 {
		spans, part = nil, 1
	}
	for _, s := range spans {
		for i := min(laneParts-1, int(s.Start/part)); i < laneParts && float64(i)*part < s.End; i++ {
			sums[s.Task.Kind][i] += max(0, min(s.End, float64(i+1)*part)-max(s.Start, float64(i)*part))
		}
	}
	percent := func(sums [laneParts]float64) []int {
		out := make([]int, laneParts)
		for i, x := range sums {
			out[i] = int(math.Round(100 * x / part))
		}
		return out
	}
	return &PipelineShare{percent(sums[pipelining.Forward]), percent(sums[pipelining.Backward]), percent(sums[pipelining.Weight])}
}
