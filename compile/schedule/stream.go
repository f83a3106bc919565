package schedule

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/pass"
)

// clock records what has ended when a step begins, and what order there is between
// steps of several streams: the step before on its stream, and those that it
// waits for, have ended, and all that had ended when they began.
type clock struct {
	stream []int     // of each step
	ended  [][]int32 // for each step and stream, the last step of that stream that has ended; -1 for none
	count  int       // streams
}

// newClock follows steps in their order.
func newClock(stream []int, waits [][]int) *clock {
	c := &clock{stream: stream, count: 1}
	for _, s := range stream {
		c.count = max(c.count, s+1)
	}
	last := make([]int, c.count)
	for i := range last {
		last[i] = -1
	}
	for i, s := range stream {
		e := make([]int32, c.count)
		for k := range e {
			e[k] = -1
		}
		for _, j := range append([]int{last[s]}, waits[i]...) {
			if j < 0 || j >= i {
				continue
			}
			for k, n := range c.ended[j] {
				e[k] = max(e[k], n)
			}
			e[stream[j]] = max(e[stream[j]], int32(j))
		}
		c.ended = append(c.ended, e)
		last[s] = i
	}
	return c
}

// before reports whether step i has ended when step j begins.
func (c *clock) before(i, j int) bool { return c.ended[j][c.stream[i]] >= int32(i) }

// duration is the time of a step by the machine model.
type duration struct {
	launch float64 // ns until it begins, in which others may run
	busy   float64 // ns in which it uses the machine's bandwidth or arithmetic to the full
	small  bool    // the launch is most of it: alone it leaves the machine idle
}

// durations asks the cost model about the steps of g.
func durations(g *model, u *pass.Unit, m *machine.Machine) []duration {
	byOp := cost.Function(g.fn, u.Module, u.Options.Bind).ByOp()
	out := make([]duration, len(g.steps))
	for i, s := range g.steps {
		d := &out[i]
		if e := byOp[s.op]; e != nil {
			if t := e.Time(m); t.Known && t.Ns > 0 {
				d.launch = min(m.Launch*1e9, t.Ns)
				d.busy = t.Ns - d.launch
				d.small = t.Bound == cost.Latency && !pass.Controls(s.op) // the host waits for all before a decision
			}
		}
	}
	return out
}

// The most streams that a step is cut into, and the part of the time that a
// second stream and each further one must save: less than this is lost in what
// the model does not know.
const (
	maxStreams = 4
	worthwhile = 0.03
)

// spreadOut gives the steps of g, which run in the order given, to streams, and
// says which ones each waits for. There is one stream, unless the model
// promises that several take less time. Kernels share the machine: what one
// takes of bandwidth and arithmetic another cannot have at the same time, so
// that overlap only hides launches, of kernels so small that the launch is most
// of their time. All others stay on stream 0.
func spreadOut(p *problem, order []int, ds []duration) (stream []int, waits [][]int) {
	stream = make([]int, len(order))
	alone := finish(p, order, ds, stream)
	total := alone
	for n := 2; n <= maxStreams; n++ {
		s := assign(p, order, ds, n)
		if t := finish(p, order, ds, s); t < total-worthwhile*alone {
			total, stream = t, s
		}
	}
	return stream, waitsFor(p, order, stream)
}

// assign gives each step, in order, to the one of n streams on which it begins first.
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

// finish is when the last step ends, in ns.
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
	machine float64 // when nothing that has begun uses the machine any more
}

func newLine(p *problem, order []int, ds []duration) *line {
	l := &line{problem: p, order: order, ds: ds, at: make([]int, len(order))}
	for k, i := range order {
		l.at[i] = k
	}
	return l
}

// begin is when the step at a place could begin on stream s. Waiting for
// another stream costs half a launch: the event is recorded, seen and acted on.
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

// waitsFor is the fewest waits by which every step comes behind those that make
// what it reads; steps are places in the order.
func waitsFor(p *problem, order []int, stream []int) [][]int {
	at := make([]int, len(order))
	for k, i := range order {
		at[i] = k
	}
	waits := make([][]int, len(order))
	if len(order) == 0 || slices.Max(stream) == 0 {
		return waits
	}
	for k, i := range order {
		var from []int
		for _, j := range p.tasks[i].after {
			if stream[at[j]] != stream[k] {
				from = append(from, at[j])
			}
		}
		slices.Sort(from)
		slices.Reverse(from) // later steps bring with them what ended before
		for _, j := range from {
			if c := newClock(stream[:k+1], waits[:k+1]); !c.before(j, k) {
				waits[k] = append(waits[k], j)
			}
		}
		slices.Sort(waits[k])
	}
	return waits
}
