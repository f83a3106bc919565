package plan

import (
	"math"
	"slices"

	"dmir/analysis/pipelining"
	"dmir/analysis/plan/solve"
)

// schedules are those that are looked at where there are stages, and on how many stages for each device.
var schedules = []struct {
	schedule pipelining.Schedule
	chunks   []int
}{
	{pipelining.OneFOneB, []int{1}},
	{pipelining.GPipe, []int{1}},
	{pipelining.ZBH1, []int{1}},
	{pipelining.Interleaved, []int{2, 3, 4, 6, 8, 12}},
	{pipelining.ZBV, []int{2}},
}

// schedule are the plans of a setting under the choices of sol, one for each schedule that fits. Where none does,
// lacks is the memory that the smallest one exceeds.
func (s *search) schedule(m *model, l load, sol *solve.Solution, set setting) (found []*candidate, lacks float64) {
	lacks = math.Inf(1)
	parts := m.parts(sol.Choice, l)
	base := Plan{Microbatches: int(set.micro), Recompute: set.recompute, Objective: sol.Value, Bound: sol.Bound}
	if set.pipe == 1 {
		st, ok := m.stage(parts, 1, func(int) float64 { return 1 }, math.Inf(1))
		if !ok {
			return nil, lacks
		}
		p := base
		all := &st.parts[0]
		if more := all.bytes(1).total() - s.memory; more > 0 {
			return nil, more
		}
		micro := float64(set.micro)
		p.Compute = micro*all.compute + all.onceCompute
		forward, backward := all.passes(m.hidden())
		p.Time = micro*(forward+backward) + all.once + max(all.exposed(m.hidden()), m.exposed(sol.Choice, l))
		p.Exposed = p.Time - p.Compute
		p.Chunks = 1
		p.Memory = all.bytes(1)
		s.describe(&p, m, &st, nil)
		return []*candidate{{Plan: &p, m: m, choice: sol.Choice, set: set, st: st, load: l, whole: set.micro == 1 && m.dividesNothing(sol.Choice)}}, lacks
	}
	var options []pipelining.Option
	var stagings []staging
	for _, w := range s.ways(m.graph, set.pipe, set.micro) {
		limit, live := math.Inf(1), func(int) float64 { return 0 }
		if w.shape.Chunks == 1 {
			limit = s.memory
			live = func(stage int) float64 { return float64(pipelining.InFlight(w.schedule, w.shape, stage)) }
		}
		st, ok := m.stage(parts, w.shape.Stages(), live, limit)
		if !ok { // how much it lacks is worth knowing
			st, ok = m.stage(parts, w.shape.Stages(), live, math.Inf(1))
		}
		if !ok {
			continue
		}
		times, memory := m.load(&st, w.schedule, w.shape)
		options = append(options, pipelining.Option{Schedule: w.schedule, Shape: w.shape, Times: times, Memory: memory})
		stagings = append(stagings, st)
	}
	limit := int64(0)
	if !math.IsInf(s.memory, 1) {
		limit = int64(s.memory)
	}
	for _, c := range pipelining.Best(options, limit) {
		if c.Err != nil || c.Timeline == nil {
			continue
		}
		if !c.Fits {
			lacks = min(lacks, float64(c.Timeline.Peak())-s.memory)
			continue
		}
		p := base
		st := &stagings[c.Index]
		p.Schedule, p.Chunks = string(c.Option.Schedule), c.Option.Shape.Chunks
		p.Time, p.Bubble = c.Timeline.Total, c.Timeline.Bubble
		d := m.busiest(st, c.Option.Schedule, c.Option.Shape)
		p.Compute = float64(set.micro)*d.compute + d.onceCompute
		forward, backward := d.passes(m.hidden())
		p.Exposed = float64(set.micro)*(forward+backward-d.compute) + d.once - d.onceCompute + d.exposed(m.hidden())
		p.Memory = m.peak(st, c.Option.Schedule, c.Option.Shape, c.Timeline)
		s.describe(&p, m, st, c.Timeline)
		found = append(found, &candidate{Plan: &p, m: m, choice: sol.Choice, set: set, st: *st, load: l})
	}
	return found, lacks
}

// undivided is the plan on one axis in which each device does all that there is; none where something is to be divided, or there
// is no memory for it. Where dividing the step gains next to nothing by the model, its text may cost less.
func (s *search) undivided(m *model, l load, p *solve.Problem, bound float64, set setting) []*candidate {
	if !set.plain() {
		return nil
	}
	choice := make([]int, len(m.vars))
	for i := range m.vars {
		x := &m.vars[i]
		if x.strategies == nil {
			choice[i] = slices.Index(x.layouts, allWhole)
		} else {
			n := m.nodes[x.nodes[0]]
			choice[i] = slices.IndexFunc(x.strategies, func(s strategy) bool { return s.undivided(n) })
		}
		if choice[i] < 0 {
			return nil
		}
	}
	found, _ := s.schedule(m, l, &solve.Solution{Choice: choice, Value: p.Value(choice), Bound: bound}, set)
	return found
}

// dividesNothing reports whether each device does all that there is.
func (m *model) dividesNothing(choice []int) bool {
	for i := range m.vars {
		x := &m.vars[i]
		if x.strategies != nil && !x.strategies[choice[i]].undivided(m.nodes[x.nodes[0]]) {
			return false
		}
	}
	return true
}

// onDevice is what a device of the pipeline does in all of its stages.
func onDevice(st *staging, s pipelining.Schedule, sh pipelining.Shape, d int) part {
	var all part
	for _, k := range pipelining.StagesOf(s, sh, d) {
		all.add(&st.parts[k], 1)
	}
	return all
}

// busiest is the device that computes longest.
func (m *model) busiest(st *staging, s pipelining.Schedule, sh pipelining.Shape) part {
	var best part
	for d := range sh.Devices {
		if p := onDevice(st, s, sh, d); d == 0 || p.compute > best.compute {
			best = p
		}
	}
	return best
}

// load is a staging as a pipeline's times and sizes.
func (m *model) load(st *staging, s pipelining.Schedule, sh pipelining.Shape) (pipelining.Times, pipelining.Memory) {
	n := len(st.parts)
	t := pipelining.Times{
		Forward: make([]float64, n), Backward: make([]float64, n), Weight: make([]float64, n),
		Transfer: make([]float64, n), Bytes: make([]int64, n), Once: make([]float64, sh.Devices),
	}
	mem := pipelining.Memory{Activations: make([]int64, n), Base: make([]int64, sh.Devices)}
	for k := range st.parts {
		p := &st.parts[k]
		forward, backward := p.passes(m.hidden())
		t.Forward[k], t.Backward[k], t.Weight[k] = forward, backward-p.weight, p.weight
		t.Transfer[k], t.Bytes[k] = m.transfer(p), int64(p.boundary)
		mem.Activations[k] = int64(p.kept)
	}
	for d := range sh.Devices {
		all := onDevice(st, s, sh, d)
		t.Once[d] = all.once + all.exposed(m.hidden())
		mem.Base[d] = all.bytes(0).Total
	}
	return t, mem
}

// peak is what the device that holds most holds.
func (m *model) peak(st *staging, s pipelining.Schedule, sh pipelining.Shape, tl *pipelining.Timeline) Memory {
	var most Memory
	for d := range sh.Devices {
		all := onDevice(st, s, sh, d)
		x := all.bytes(0)
		x.Activations = tl.Devices[d].Peak - x.Total
		x.Total = tl.Devices[d].Peak
		if x.Total > most.Total {
			most = x
		}
	}
	return most
}

// rates are what follows from the time of a step.
func (s *search) rates(p *Plan) {
	p.Tokens = float64(s.tokens) / p.Time
	if s.peak > 0 {
		p.MFU = s.flop / (p.Time * float64(s.o.Devices) * s.peak)
	}
}

// describe fills in what a person reads of a plan.
func (s *search) describe(p *Plan, m *model, st *staging, tl *pipelining.Timeline) {
	micro := float64(p.Microbatches)
	p.Timeline = tl
	p.Modelled = p.Time
	s.rates(p)
	p.Sent = map[string]int64{}
	var worst part
	for k := range st.parts {
		x := &st.parts[k]
		if k == 0 || total(x.sent)*micro+total(x.sentOnce) > total(worst.sent)*micro+total(worst.sentOnce) {
			worst = *x
		}
	}
	for a := range m.grid.axes {
		if n := worst.sent[a]*micro*float64(p.Chunks) + worst.sentOnce[a]*float64(p.Chunks); n > 0 {
			p.Sent[m.grid.axes[a].Name] = int64(n)
		}
	}
	if n := len(st.parts); n > 1 {
		widest := slices.MaxFunc(st.parts, func(a, b part) int { return int(a.boundary - b.boundary) })
		p.Sent["pipe"] = int64(2 * worst.boundary * micro * float64(p.Chunks))
		if worst.boundary == 0 {
			p.Sent["pipe"] = int64(2 * widest.boundary * micro * float64(p.Chunks))
		}
	}
	for k := range st.parts {
		x := &st.parts[k]
		forward, backward := x.passes(m.hidden())
		stage := Stage{
			Layers: st.layers[k], Forward: forward, Backward: backward, Weight: x.weight, Transfer: m.transfer(x),
			Once: x.once + x.exposed(m.hidden()), Memory: x.bytes(1).Total,
		}
		if m.layers != nil {
			stage.Line = s.line(m.siteOf(m.layers.begin[st.first[k]]))
		}
		p.Stages = append(p.Stages, stage)
	}
	for i, a := range m.grid.axes {
		if a.Size > 1 || i == 0 && s.o.Devices == 1 {
			p.Axes = append(p.Axes, a)
		}
	}
	if m.grid.pipe > 1 {
		p.Axes = append([]Axis{{"pipe", m.grid.pipe}}, p.Axes...)
	}
}

func total(x [maxAxes]float64) float64 {
	n := 0.0
	for _, v := range x {
		n += v
	}
	return n
}
