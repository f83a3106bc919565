package plan

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dmir/analysis/network"
	"dmir/analysis/pipelining"
)

// pace are parts, by the number of the layer, of which no choice takes less for a micro-batch or once in a step: each op is divided as is
// best for it, and nothing is exchanged but what stages send on.
func (g *graph) pace(gr *grid, l load, bandwidth float64) []part {
	out := make([]part, g.layerCount())
	least := make([]float64, len(g.nodes))
	_, vars := g.tied()
	for _, x := range vars { // nodes that choose alike take as long
		if g.nodes[x.nodes[0]].o == nil {
			continue
		}
		t := g.least(g.nodes[x.nodes[0]], gr, bandwidth)
		for _, at := range x.nodes {
			least[at] = t
		}
	}
	devices := gr.along(1<<len(gr.axes) - 1)
	for i, n := range g.nodes {
		p := &out[n.layer]
		switch {
		case n.o == nil:
		case n.phase == forward:
			p.forward += least[i]
			p.backward += least[i] * (n.again(l.recompute) - 1)
		case n.phase == backward:
			p.backward += least[i]
			if g.ofWeights(n) {
				p.weight += least[i]
			}
		default:
			p.once += least[i]
		}
	}
	for _, v := range g.values {
		if v.micro && g.crosses(v) {
			out[g.nodes[v.node].layer].boundary += v.bytes / float64(gr.micro) / devices
		}
	}
	return out
}

// A way is a schedule on a number of stages for each device.
type way struct {
	schedule pipelining.Schedule
	shape    pipelining.Shape
}

// ways are the schedules that are looked at in a setting with a pipeline.
func (s *search) ways(g *graph, pipe int, micro int64) (out []way) {
	for _, k := range schedules {
		if f := s.o.Fix.Schedule; f != "" && f != string(k.schedule) || f == "" && g.looped() && k.schedule.Split() {
			continue // what a loop computes backward has the gradients of weights in it
		}
		for _, v := range k.chunks {
			if f := s.o.Fix.Chunks; f > 0 && f != v {
				continue
			}
			shape := pipelining.Shape{Devices: pipe, Chunks: v, Micro: int(micro)}
			if n := shape.Stages(); n <= g.layers.count && !(g.looped() && (v > 1 || g.evenLayers(n) == nil)) &&
				pipelining.Check(k.schedule, shape) == nil && (g.layers.count%n == 0 || v <= 2) {
				out = append(out, way{k.schedule, shape})
			}
		}
	}
	return out
}

// apart bounds a setting by what it takes at least if each op is divided as is best for it.
func (s *search) apart(set *setting) {
	gr, err := s.grid(*set)
	if err != nil {
		set.least = math.Inf(1)
		return
	}
	set.filling = set.form.filling(gr, s.bandwidth)
	set.work = set.form.apart(gr, s.free(*set), s.bandwidth) + set.filling
	set.least = set.work
	if set.pipe > 1 {
		set.least = max(set.least, s.pipelined(set.form.graph, gr, set.form.pace(gr, s.free(*set), s.bandwidth)))
	}
}

// optimistic is what a setting takes at least with unlimited memory, as far as that is below enough: by what all schedules have in common,
// or, closely, by each of them.
func (s *search) optimistic(ctx context.Context, set setting, enough float64, closely bool) float64 {
	gr, err := s.grid(set)
	if err != nil {
		return math.Inf(1)
	}
	g := set.form.graph
	m := newModel(g, gr, s.bandwidth)
	l := s.free(set)
	if closely {
		return s.bySchedule(ctx, m, l, enough)
	}
	s.graph.work.Add("bounded settings", 1)
	pace := g.pace(gr, l, s.bandwidth)
	more := set.filling
	l.course = s.course(g, gr, pace)
	if l.course != nil {
		more = l.course.least.sends * gr.sending(leastSent(pace))
	}
	sol, err := m.solve(ctx, m.problem(l), l, below(enough-more))
	if err != nil || sol.Infeasible != nil {
		return math.Inf(1)
	}
	return sol.Bound + more
}

// leastSent is what the layers send on at least.
func leastSent(pace []part) float64 {
	bytes := math.Inf(1)
	for i := range pace[1 : len(pace)-1] {
		bytes = min(bytes, pace[1+i].boundary)
	}
	return bytes
}

// mostPlayed bounds the tasks of a schedule that is played to bound a setting.
const mostPlayed = 1 << 14

// pipelined is what a step takes at least with stages whose passes take what pace says, whatever the schedule: a schedule's order
// is fixed, so that no task of it that takes longer lets the step end sooner.
func (s *search) pipelined(g *graph, gr *grid, pace []part) float64 {
	if g.layers == nil {
		return math.Inf(1)
	}
	type option struct {
		way
		times pipelining.Times
		least float64
	}
	var list []option
	m := &model{graph: g, grid: gr}
	heavy := g.topHeavy(gr, s.bandwidth)
	best := math.Inf(1)
	for _, w := range s.ways(g, gr.pipe, gr.micro) {
		if heavy {
			best = min(best, uneven(g, pace, w))
			continue
		}
		st, _ := g.evenly(pace, w.shape.Stages(), func(int) float64 { return 0 }, math.Inf(1))
		times, _ := m.load(&st, w.schedule, w.shape)
		if least, err := pipelining.Estimate(w.schedule, w.shape, times); err == nil {
			list = append(list, option{w, times, least})
		}
	}
	slices.SortStableFunc(list, func(a, b option) int { return cmp.Compare(a.least, b.least) })
	for _, o := range list {
		if o.least >= best {
			break
		}
		best = min(best, s.played(o.way, o.times, o.least))
	}
	return best
}

// played is how long the step takes, as far as it is played; else least, which it takes at least.
func (s *search) played(w way, times pipelining.Times, least float64) float64 {
	if w.shape.Stages()*w.shape.Micro > mostPlayed/3 {
		return least
	}
	order, err := s.order(w)
	if err != nil {
		return least
	}
	tl, err := pipelining.Simulate(order, w.schedule, w.shape, times, pipelining.Memory{})
	if err != nil {
		return least
	}
	return tl.Total
}

// order is that of the schedule, which many settings have.
func (s *search) order(w way) ([][]pipelining.Task, error) {
	s.orderLock.Lock()
	defer s.orderLock.Unlock()
	if o := s.orders[w]; o != nil {
		return o, nil
	}
	o, err := pipelining.Order(w.schedule, w.shape)
	s.orders[w] = o
	return o, err
}

// topHeavy reports whether what stands before or behind the layers takes as long as a layer if each op is divided as is best for it: then
// stages have different numbers of layers. It does not depend on choices, so that bounds know it too.
// Stages of a loop have equal numbers whatever stands around it.
func (g *graph) topHeavy(gr *grid, bandwidth float64) bool {
	if g.looped() {
		return false
	}
	if gr.topHeavy == nil {
		pace := g.pace(gr, load{recompute: None}, bandwidth)
		whole := func(p *part) float64 { return p.forward + p.backward }
		heavy := max(whole(&pace[0]), whole(&pace[len(pace)-1])) >= whole(&pace[g.numberOf(g.layers.count/2)])
		gr.topHeavy = &heavy
	}
	return *gr.topHeavy
}

// uneven is what a step takes at least whatever stages the layers are cut into: the way of one micro-batch forward and back, and what the
// device with the last layer does.
func uneven(g *graph, pace []part, w way) float64 {
	way := 0.0
	for i := range pace {
		p := &pace[i]
		inputs := p.backward
		if w.schedule.Split() {
			inputs -= p.weight
		}
		way += float64(g.layers.times(i)) * (p.forward + inputs)
	}
	last, end := &pace[len(pace)-1], &pace[g.layers.left]
	return max(way, float64(w.shape.Micro)*(last.forward+last.backward+end.forward+end.backward))
}

// sending is the time of what crosses between stages at least.
func (g *grid) sending(bytes float64) float64 {
	return g.collective(network.Permute, 1<<len(g.axes), bytes)
}
