package schedule

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/pass"
)

// clock is the happens-before order of steps on several streams: when a step
// begins, the previous step of its stream and those it waits for have ended,
// and all that had ended when these began.
type clock struct {
	stream []int     // of each step
	ended  [][]int32 // by step and stream, the last step of that stream that has ended; -1 for none
	count  int       // streams
	last   []int     // of each stream, the last step so far
}

// newClock computes the order of steps.
func newClock(stream []int, waits [][]int) *clock {
	c := startClock(stream)
	for i := range stream {
		c.begin()
		for _, j := range waits[i] {
			c.wait(j)
		}
	}
	return c
}

// startClock is the clock of steps on these streams, none of which has begun.
func startClock(stream []int) *clock {
	c := &clock{stream: stream, count: 1}
	for _, s := range stream {
		c.count = max(c.count, s+1)
	}
	c.last = make([]int, c.count)
	for i := range c.last {
		c.last[i] = -1
	}
	return c
}

// begin adds the next step.
func (c *clock) begin() {
	i := len(c.ended)
	e := make([]int32, c.count)
	for k := range e {
		e[k] = -1
	}
	c.ended = append(c.ended, e)
	c.wait(c.last[c.stream[i]])
	c.last[c.stream[i]] = i
}

// wait makes the last step added wait for step j.
func (c *clock) wait(j int) {
	i := len(c.ended) - 1
	if j < 0 || j >= i {
		return
	}
	for k, n := range c.ended[j] {
		c.ended[i][k] = max(c.ended[i][k], n)
	}
	c.ended[i][c.stream[j]] = max(c.ended[i][c.stream[j]], int32(j))
}

// overFrom returns a function that reports whether b is dead when step i begins, and
// when any step after it does.
func (c *clock) overFrom() func(b *liveRange, i int) bool {
	least := make([][]int32, len(c.ended)) // by step: what has ended before it and before all that follow
	for i := len(c.ended) - 1; i >= 0; i-- {
		if least[i] = c.ended[i]; i+1 < len(c.ended) {
			least[i] = slices.Clone(c.ended[i])
			for s, n := range least[i+1] {
				least[i][s] = min(least[i][s], n)
			}
		}
	}
	return func(b *liveRange, i int) bool {
		if b.kept || i < 0 {
			return false
		}
		for s, n := range b.last {
			if n > least[i][s] {
				return false
			}
		}
		return true
	}
}

// before reports whether step i has ended when step j begins.
func (c *clock) before(i, j int) bool { return c.ended[j][c.stream[i]] >= int32(i) }

// duration is the time of a step by the machine model.
type duration struct {
	launch float64 // launch latency in ns, during which others may run
	busy   float64 // ns during which it saturates bandwidth or arithmetic
	small  bool    // dominated by the launch: by itself it leaves the machine idle
	sends  bool    // a collective, while which kernels can run
}

// durations are the times of g's steps by the cost model.
func durations(g *model, u *pass.Unit, m *machine.Machine) []duration {
	byOp := cost.Block(g.body.Block, u.Func, u.Module, u.Options.Bind)
	out := make([]duration, len(g.steps))
	for i, s := range g.steps {
		d := &out[i]
		d.sends = sends(s)
		if e := byOp[s.op]; e != nil {
			if t := e.Time(m); t.Known && t.Ns > 0 {
				d.launch = min(m.Start()*1e9, t.Ns)
				d.busy = t.Ns - d.launch
				d.small = (t.Bound == cost.Latency || t.Bound == cost.Launch) && !pass.Controls(s.op) // the host waits for all steps before a decision
			}
		}
	}
	return out
}

// The most streams, and the fraction of the time that a second stream and each
// further one must save: a smaller gain is within the error of the model.
const (
	maxStreams = 4
	worthwhile = 0.03
)

// assignStreams assigns the steps of g, which run in the given order, to
// streams, and computes their waits. There is one stream unless the model
// predicts that several take less time. Kernels share the machine's bandwidth
// and arithmetic, so that overlap only hides launch latency, of kernels so
// small that it dominates their time. All others are on stream 0.
func assignStreams(p *problem, order []int, ds []duration) (stream []int, waits [][]int) {
	stream = make([]int, len(order))
	splittable := finish(p, order, ds, stream)
	total := splittable
	for n := 2; n <= maxStreams; n++ {
		s := assign(p, order, ds, n)
		if t := finish(p, order, ds, s); t < total-worthwhile*splittable {
			total, stream = t, s
		}
	}
	return stream, waitsFor(p, order, stream, nil)
}

// assign assigns each step, in order, to the one of n streams on which it
// begins first.
func assign(p *problem, order []int, ds []duration, n int) []int {
	l := newLine(p, order, ds)
	for at, i := range order {
		pick := 0
		if ds[i].small {
			for s := 1; s < n; s++ {
				if l.begin(at, s) < l.begin(at, pick) {
					pick = s
				}
			}
		}
		l.put(at, pick)
	}
	return l.stream
}

// finish is the time at which the last step ends, in ns.
func finish(p *problem, order []int, ds []duration, stream []int) float64 {
	l := newLine(p, order, ds)
	for at := range order {
		l.put(at, stream[at])
	}
	return slices.Max(append(l.end, 0))
}

// line is a simulation of steps on streams.
type line struct {
	problem *problem
	order   []int
	ds      []duration
	at      []int     // of tasks in the order
	stream  []int     // of places in the order
	end     []float64 // of places in the order
	free    [maxStreams]float64
	machine float64 // when the steps begun so far no longer use the machine
}

func newLine(p *problem, order []int, ds []duration) *line {
	l := &line{problem: p, order: order, ds: ds, at: make([]int, len(order))}
	for k, i := range order {
		l.at[i] = k
	}
	return l
}

// begin is the time at which the step at a position could begin on stream s.
// Waiting for another stream costs half a launch, for recording and waiting for
// the event.
func (l *line) begin(at, s int) float64 {
	i := l.order[at]
	t := l.free[s]
	for _, j := range l.problem.tasks[i].after {
		k := l.at[j]
		ready := l.end[k]
		if l.stream[k] != s {
			ready += l.ds[i].launch / 2
		}
		t = max(t, ready)
	}
	return t
}

func (l *line) put(at, s int) {
	d := l.ds[l.order[at]]
	t := max(l.begin(at, s)+d.launch, l.machine) + d.busy
	if d.busy > 0 {
		l.machine = t
	}
	l.free[s] = t
	l.stream = append(l.stream, s)
	l.end = append(l.end, t)
}

// waitsFor are the fewest waits by which every step runs after those that define its operands, and after the extra ones;
// steps are positions in the order.
func waitsFor(p *problem, order []int, stream []int, extra [][]int) [][]int {
	waits := make([][]int, len(order))
	if len(order) == 0 || slices.Max(stream) == 0 {
		return waits
	}
	at := make([]int, len(order))
	for k, i := range order {
		at[i] = k
	}
	c := startClock(stream)
	for k, i := range order {
		var from []int
		for _, j := range p.tasks[i].after {
			if stream[at[j]] != stream[k] {
				from = append(from, at[j])
			}
		}
		if extra != nil {
			from = append(from, extra[k]...)
		}
		slices.Sort(from)
		slices.Reverse(from) // later steps imply those that ended before
		c.begin()
		for _, j := range from {
			if !c.before(j, k) {
				waits[k] = append(waits[k], j)
				c.wait(j)
			}
		}
		slices.Sort(waits[k])
	}
	return waits
}
