// Package streams plays what a device computes and what it exchanges with others on two streams, and finds orders of the steps
// in which one hides the other. It knows durations and what waits for what, and neither programs nor machines: the cost of a
// text, the compiler's schedule and the time of an artifact are all played here.
package streams

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
)

// A Step is one step of a device's program.
type Step struct {
	Communication bool    // it runs on the stream for communication, beside computation
	Duration      float64 // s
	After         []int   // earlier steps that it begins after: whose results it uses, or that it waits for
	Alone         bool    // it begins once all earlier steps have ended, and all later ones begin after it: a loop
}

// A Span is when a step runs.
type Span struct {
	Start, End float64 // s
	Exposed    float64 // of communication: the time of it in which no computation runs
}

// A Schedule is when the steps of a device run.
type Schedule struct {
	Spans   []Span // of each step
	Total   float64
	Compute float64 // sum of the steps of computation
	Exposed float64 // what communication adds: Total without Compute
}

// Timeline runs steps on two streams, one of computation and one of communication. On each they run in the order of the
// steps, which Order finds, and a step begins once what it waits for has ended: so does a device, which all ranks of a
// collective rely on.
//
// It takes time in proportion to the steps and what they use.
func Timeline(steps []Step) (Schedule, error) {
	all, err := Timelines([][]Step{steps}, nil)
	if err != nil {
		return Schedule{}, err
	}
	return all[0], nil
}

// At is a step of one of several devices.
type At struct{ Device, Step int }

// A Link is that the step To of a device waits for the step From of another, whose result it uses.
type Link struct{ From, To At }

// Timelines runs the programs of several devices, each on two streams as Timeline does. Total of each is when the last of
// all ends. It is an error if steps wait for each other.
func Timelines(programs [][]Step, links []Link) ([]Schedule, error) {
	s := &simulation{lanes: make([]lane, len(programs))}
	first := make([]int, len(programs)) // step of each device
	for d, steps := range programs {
		s.lanes[d].compute.number, s.lanes[d].comm.number = 2*d, 2*d+1
		first[d] = len(s.steps)
		s.steps = append(s.steps, steps...)
		for range steps {
			s.device = append(s.device, d)
		}
	}
	s.waits, s.users, s.spans = make([]int, len(s.steps)), make([][]int, len(s.steps)), make([]Span, len(s.steps))
	for d, steps := range programs {
		for i, step := range steps {
			if !(step.Duration >= 0) || math.IsInf(step.Duration, 0) {
				return nil, fmt.Errorf("step %d: a duration of %v s", i, step.Duration)
			}
			at := first[d] + i
			for _, k := range step.After {
				if k < 0 || k >= i {
					return nil, fmt.Errorf("step %d uses the result of step %d, which is no earlier step", i, k)
				}
				s.users[first[d]+k] = append(s.users[first[d]+k], at)
			}
			s.waits[at] = len(step.After)
			on := &s.lanes[d].compute
			if step.Communication {
				on = &s.lanes[d].comm
			}
			on.order = append(on.order, at)
		}
		s.alone(steps, first[d])
	}
	for _, l := range links {
		from, to := first[l.From.Device]+l.From.Step, first[l.To.Device]+l.To.Step
		s.users[from] = append(s.users[from], to)
		s.waits[to]++
	}
	if s.run() < len(s.steps) {
		return nil, errors.New("steps wait for each other")
	}
	total := 0.0
	for d := range s.lanes {
		total = max(total, s.lanes[d].compute.free, s.lanes[d].comm.free)
	}
	out := make([]Schedule, len(programs))
	for d, steps := range programs {
		l, o := &s.lanes[d], &out[d]
		o.Spans, o.Total = s.spans[first[d]:first[d]+len(steps):first[d]+len(steps)], total
		own := func(order []int) []int {
			list := make([]int, len(order))
			for k, i := range order {
				list[k] = i - first[d]
			}
			return list
		}
		compute := own(l.compute.order)
		for _, i := range compute {
			o.Compute += steps[i].Duration
		}
		o.expose(compute, own(l.comm.order))
	}
	return out, nil
}

// alone makes the steps of a device that run alone wait for the last one of each stream before them, and those behind
// them wait for them.
func (s *simulation) alone(steps []Step, first int) {
	link := func(from, to int) {
		s.users[first+from] = append(s.users[first+from], first+to)
		s.waits[first+to]++
	}
	last, since := [2]int{-1, -1}, -1 // of each stream, and the last that ran alone
	for i, step := range steps {
		lane := 0
		if step.Communication {
			lane = 1
		}
		if other := last[1-lane]; step.Alone && other >= 0 {
			link(other, i)
		}
		if since >= 0 && last[lane] < since {
			link(since, i)
		}
		if last[lane] = i; step.Alone {
			since = i
		}
	}
}

// A stream runs steps one after the other.
type stream struct {
	number  int // twice that of the device, one more of communication
	order   []int
	next    int // place in order of the step that runs or waits
	running bool
	free    float64 // end of the last step that was begun
}

// lane is the streams of a device.
type lane struct{ compute, comm stream }

// running are the streams that run a step, as a heap: first that which ends first, of several computation, and the first
// device.
type running []*stream

func (r running) Len() int      { return len(r) }
func (r running) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r running) Less(i, j int) bool {
	a, b := r[i], r[j]
	return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.number%2, b.number%2), cmp.Compare(a.number, b.number)) < 0
}
func (r *running) Push(x any) { *r = append(*r, x.(*stream)) }
func (r *running) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

type simulation struct {
	steps   []Step  // of all devices
	device  []int   // of each
	waits   []int   // how many of the steps that each uses have not ended
	users   [][]int // who uses each
	spans   []Span
	lanes   []lane
	running running
}

// run moves from the end of one step to the end of the next, and returns how many have ended. Of one device, each step
// uses earlier ones only, so that the first one that has not ended can always run.
func (s *simulation) run() (ended int) {
	for d := range s.lanes {
		s.begin(d, 0)
	}
	for ; len(s.running) > 0; ended++ {
		t := heap.Pop(&s.running).(*stream)
		s.end(t)
	}
	return ended
}

// begin begins what the streams of a device can run.
func (s *simulation) begin(device int, now float64) {
	for _, t := range []*stream{&s.lanes[device].compute, &s.lanes[device].comm} {
		if t.running || t.next == len(t.order) {
			continue
		}
		i := t.order[t.next]
		if s.waits[i] > 0 {
			continue
		}
		t.running, t.free = true, now+s.steps[i].Duration
		s.spans[i] = Span{Start: now, End: t.free}
		heap.Push(&s.running, t)
	}
}

func (s *simulation) end(t *stream) {
	i := t.order[t.next]
	t.next++
	t.running = false
	for _, u := range s.users[i] {
		s.waits[u]--
	}
	s.begin(t.number/2, t.free)
	for _, u := range s.users[i] {
		if d := s.device[u]; d != t.number/2 {
			s.begin(d, t.free)
		}
	}
}

// expose attributes the gaps in computation to the communication that runs in them. In a
// gap there always is some: what computation waits for has all of its inputs from
// computation, or is itself behind other communication.
func (s *Schedule) expose(compute, comm []int) {
	var gaps []Span
	end := 0.0
	for _, c := range compute {
		gaps = append(gaps, Span{Start: end, End: s.Spans[c].Start})
		end = s.Spans[c].End
	}
	gaps = append(gaps, Span{Start: end, End: s.Total})
	next := 0
	for _, c := range comm {
		span := &s.Spans[c]
		for ; ; next++ {
			g := gaps[next]
			span.Exposed += max(0, min(g.End, span.End)-max(g.Start, span.Start))
			if g.End >= span.End || next == len(gaps)-1 {
				break // the gap may reach into the next span
			}
		}
		s.Exposed += span.Exposed
	}
}
