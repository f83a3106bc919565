package network

import (
	"fmt"
	"math"
)

// A Step is one step of a device's program.
type Step struct {
	Communication bool    // it runs on the stream for communication, beside computation
	Duration      float64 // s
	After         []int   // earlier steps whose results it uses
}

// A Span is when a step runs.
type Span struct {
	Start, End float64 // s
	Exposed    float64 // of communication: the time of it in which no computation runs
}

// A Schedule is when the steps of a device run.
type Schedule struct {
	Spans   []Span // of each step
	Issued  []int  // the steps of communication, in the order in which they run
	Total   float64
	Compute float64 // sum of the steps of computation
	Exposed float64 // what communication adds: Total without Compute
}

// Timeline runs steps on two streams. Computation runs in the order of the steps, each one
// once what it uses is there. Communication is issued as soon as its inputs are there, and
// runs in the order in which it is issued; of what one step made ready, in the order of the
// steps. Where steps of both streams end at the same time, computation counts as first. In
// the order of the program, communication that waits for late inputs would hold up what is
// ready.
//
// It takes time in proportion to the steps and what they use.
func Timeline(steps []Step) (Schedule, error) {
	s := &simulation{steps: steps, waits: make([]int, len(steps)), users: make([][]int, len(steps)), spans: make([]Span, len(steps))}
	for i, step := range steps {
		if !(step.Duration >= 0) || math.IsInf(step.Duration, 0) {
			return Schedule{}, fmt.Errorf("step %d: a duration of %v s", i, step.Duration)
		}
		for _, d := range step.After {
			if d < 0 || d >= i {
				return Schedule{}, fmt.Errorf("step %d uses the result of step %d, which is no earlier step", i, d)
			}
			s.users[d] = append(s.users[d], i)
		}
		s.waits[i] = len(step.After)
		if !step.Communication {
			s.compute.order = append(s.compute.order, i)
		}
	}
	for i, step := range steps {
		if step.Communication && s.waits[i] == 0 {
			s.comm.order = append(s.comm.order, i)
		}
	}
	s.run()
	out := Schedule{Spans: s.spans, Issued: s.comm.order, Total: max(s.compute.free, s.comm.free)}
	for _, i := range s.compute.order {
		out.Compute += steps[i].Duration
	}
	out.expose(s.compute.order)
	return out, nil
}

// A stream runs steps one after the other.
type stream struct {
	order   []int
	next    int // place in order of the step that runs or waits
	running bool
	free    float64 // end of the last step that was begun
}

type simulation struct {
	steps         []Step
	waits         []int   // how many of the steps that each uses have not ended
	users         [][]int // who uses each
	spans         []Span
	compute, comm stream
}

// run moves from the end of one step to the end of the next. Each step uses earlier ones
// only, so that the first one that has not ended can always run.
func (s *simulation) run() {
	now := 0.0
	for {
		s.begin(&s.compute, now)
		s.begin(&s.comm, now)
		first, second := &s.compute, &s.comm
		switch {
		case !first.running && !second.running:
			return
		case !first.running || second.running && second.free < first.free:
			first = second
		}
		now = first.free
		s.end(first)
	}
}

func (s *simulation) begin(t *stream, now float64) {
	if t.running || t.next == len(t.order) {
		return
	}
	i := t.order[t.next]
	if s.waits[i] > 0 {
		return
	}
	t.running, t.free = true, now+s.steps[i].Duration
	s.spans[i] = Span{Start: now, End: t.free}
}

func (s *simulation) end(t *stream) {
	i := t.order[t.next]
	t.next++
	t.running = false
	for _, u := range s.users[i] {
		if s.waits[u]--; s.waits[u] == 0 && s.steps[u].Communication {
			s.comm.order = append(s.comm.order, u)
		}
	}
}

// expose attributes the gaps in computation to the communication that runs in them. In a
// gap there always is some: what computation waits for has all of its inputs from
// computation, or is itself behind other communication.
func (s *Schedule) expose(compute []int) {
	var gaps []Span
	end := 0.0
	for _, c := range compute {
		gaps = append(gaps, Span{Start: end, End: s.Spans[c].Start})
		end = s.Spans[c].End
	}
	gaps = append(gaps, Span{Start: end, End: s.Total})
	next := 0
	for _, c := range s.Issued {
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
