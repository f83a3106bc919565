package plan

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dmir/analysis/pipelining"
	"dmir/analysis/plan/solve"
)

// mostChains is how many optimizations it may take to bound a setting by its schedules, mostOfOne how many one of them.
const (
	mostChains = 10
	mostOfOne  = 4
)

// near is how far apart what a choice takes and what no choice takes less than may be, relative, where no more is tried.
const near = 0.01

// A bounded is a schedule with what a step takes with it at least.
type bounded struct {
	way
	least  float64
	course *course // on which more may be proved; nil: none
	tried  int
}

// bySchedule is what a setting takes at least: the least of what it takes with each schedule. That of which this is least is bounded
// more closely as long as it may make a difference. Its order is fixed, so that no step takes less than the tasks and messages of any chain
// in it: first of that which is the longest by pace, then of the mean of that and of the one that is the longest by the
// choice which is best on the chains so far, and so on.
func (s *search) bySchedule(ctx context.Context, m *model, l load, enough float64) float64 {
	pace := m.pace(m.grid, l, s.bandwidth)
	sends := m.grid.sending(leastSent(pace))
	var list []*bounded
	for _, w := range s.ways(m.graph, m.grid.pipe, m.grid.micro) {
		takes, longest := s.longest(m, w, pace)
		list = append(list, &bounded{way: w, least: takes, course: newCourse(longest)})
	}
	if len(list) == 0 {
		return math.Inf(1) // no plan has stages so
	}
	least := func() *bounded {
		return slices.MinFunc(list, func(a, b *bounded) int { return cmp.Compare(a.least, b.least) })
	}
	for range mostChains {
		o := least()
		if o.least >= enough || o.course == nil || s.late() {
			break
		}
		s.graph.work.Add("chains", 1)
		l.course, o.course = o.course, nil
		more := l.course.least.sends * sends
		sol, err := m.solve(ctx, m.problem(l), l, below(enough-more))
		if err != nil || sol.Infeasible != nil {
			break
		}
		o.least = max(o.least, sol.Bound+more)
		if o.tried++; sol.Choice == nil || o.tried == mostOfOne {
			continue
		}
		if takes, longest := s.longest(m, o.way, m.parts(sol.Choice, l)); o.least < takes*(1-near) {
			o.course = l.course.mean(newCourse(longest))
		}
	}
	return least().least
}

// mostQuickened is how many plans of a setting are made quicker, and idle the part of a step for which devices are idle in them at least: in
// others the choice that is best on average is nearly so along any chain.
const (
	mostQuickened = 3
	idle          = 0.15
)

// quicken are plans for the best of found, which have one schedule each: by choices with which that takes least of which the
// step waits. Another schedule may be the best one with such a choice.
func (s *search) quicken(ctx context.Context, m *model, p *solve.Problem, l load, bound float64, found []*candidate, set setting) (more []*candidate) {
	if set.pipe == 1 {
		return nil
	}
	found = slices.SortedStableFunc(slices.Values(found), func(a, b *candidate) int { return cmp.Compare(a.Time, b.Time) })
	for _, c := range found[:min(len(found), mostQuickened)] {
		if s.late() {
			break
		}
		if c.Bubble < idle {
			continue
		}
		w := way{pipelining.Schedule(c.Schedule), pipelining.Shape{Devices: set.pipe, Chunks: c.Chunks, Micro: int(set.micro)}}
		along := l
		along.course = newCourse(m.shares(chainOf(c.Timeline), w, c.st.layers))
		s.graph.work.Add("quickened", 1)
		sol, err := m.solve(ctx, m.problem(along), along, quick)
		if err != nil || sol.Infeasible != nil || sol.Choice == nil {
			continue
		}
		if value := p.Value(sol.Choice); !math.IsInf(value, 1) {
			next, _ := s.schedule(m, l, &solve.Solution{Choice: sol.Choice, Value: value, Bound: bound}, set)
			more = append(more, next...)
		}
	}
	return more
}

// longest is how long a step takes in which layers take what parts say, and the chain that it waits for. Where the schedule has too many
// tasks to be played, it is what the longest of its paths takes.
func (s *search) longest(m *model, w way, parts []part) (takes float64, chain *shares) {
	layers := m.evenLayers(w.shape.Stages())
	if w.shape.Stages()*w.shape.Micro <= mostPlayed/3 {
		st, _ := m.evenly(parts, w.shape.Stages(), func(int) float64 { return 0 }, math.Inf(1))
		times, _ := m.load(&st, w.schedule, w.shape)
		if order, err := s.order(w); err == nil {
			if tl, err := pipelining.Simulate(order, w.schedule, w.shape, times, pipelining.Memory{}); err == nil {
				return tl.Total, m.shares(chainOf(tl), w, layers)
			}
		}
	}
	for _, x := range w.paths() {
		if y := m.shares(x, w, layers); chain == nil || y.of(parts) > takes {
			takes, chain = y.of(parts), y
		}
	}
	return takes, chain
}

// chainOf is the chain of a timeline as a path.
func chainOf(tl *pipelining.Timeline) *path {
	c := tl.Chain()
	x := &path{device: c.Device}
	for _, n := range c.Sends {
		x.sends += float64(n)
	}
	for kind, to := range []*[]float64{pipelining.Forward: &x.forward, pipelining.Backward: &x.inputs, pipelining.Weight: &x.weights} {
		for _, n := range c.Tasks[kind] {
			*to = append(*to, float64(n))
		}
	}
	if !tl.Schedule.Split() {
		x.weights = slices.Clone(x.inputs)
	}
	return x
}

// newCourse is the course of one chain.
func newCourse(x *shares) *course { return &course{least: x, most: x} }

// mean is half of c and half of d: a step that takes as long as either takes as long as their mean.
func (c *course) mean(d *course) *course {
	half := func(x, y *shares) *shares {
		z := x.clone()
		z.with(y, func(a, b float64) float64 { return (a + b) / 2 })
		return z
	}
	return &course{half(c.least, d.least), half(c.most, d.most)}
}
