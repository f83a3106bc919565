package cuda

import (
	"cmp"
	"context"
	"slices"

	"dmir/gpu/artifact"
)

// graphSteps is how many steps a graph has at most, unless a single stretch without decisions has more. A graph's launch adds half a
// kernel's time or more; that of 256 kernels, of more than a microsecond each, 0.3 %. Longer graphs take longer to
// make and gain nothing (Ekelund, Markidis and Peng, Boosting Performance of Iterative Applications on GPUs, 2025).
const graphSteps = 256

// act is one thing that the host does in a run: it launches a graph, runs a collective, or decides.
type act struct {
	graph [][2]int // the stretches [from, to) of steps that are one graph, one behind the other; nil: no graph
	steps int      // of these
	exec  handle   // the graph, once it is captured
	times int64    // how often the graph is launched, or the first part of a repetition is run
	step  int      // the number of the collective or of the decision
	kind  artifact.StepKind
	// parts are those of a decision: of a loop what runs while its predicate holds, and what runs before each look at it.
	parts [2][]*act
}

// planned is what the host does in a run of the program.
func (s *Session) planned() []*act {
	c := &course{s: s}
	c.add(0, len(s.p.Steps))
	return c.end()
}

// course is a list of acts that is being made.
type course struct {
	s    *Session
	acts []*act
	next act // the graph that is being filled
}

// end closes the list.
func (c *course) end() []*act {
	if c.next.steps > 0 {
		next := c.next
		next.times, next.kind = 1, artifact.StepLaunch
		c.acts = append(c.acts, &next)
		c.next = act{}
	}
	return c.acts
}

// do ends the graph and adds an act behind it.
func (c *course) do(a *act) { c.acts = append(c.end(), a) }

// of is the course of the steps [from, to), and then of those of more.
func (c *course) of(from, to int, more ...int) []*act {
	in := &course{s: c.s}
	in.add(from, to)
	if len(more) > 0 {
		in.add(more[0], more[1])
	}
	return in.end()
}

// fill adds stretches to the graph, as often as times says.
func (c *course) fill(stretches [][2]int, steps int, times int64) {
	if c.next.steps > 0 && int64(c.next.steps)+int64(steps)*times > graphSteps {
		c.end()
	}
	for range times {
		c.next.graph = append(c.next.graph, stretches...)
		c.next.steps += steps
	}
}

// add adds the steps [from, to).
func (c *course) add(from, to int) {
	for i := from; i < to; {
		step := &c.s.p.Steps[i]
		if !step.Decides() {
			end := i + 1
			for ; end < to && !c.s.p.Steps[end].Decides(); end++ {
			}
			for _, part := range c.s.parts(i, end) {
				if c.s.onHost(part[0]) {
					c.do(&act{step: part[0], kind: artifact.StepCollective})
				} else {
					c.fill([][2]int{part}, part[1]-part[0], 1)
				}
			}
			i = end
			continue
		}
		first := i + 1
		second := first + step.Decision.Parts[0]
		end := second + step.Decision.Parts[1]
		switch step.Kind {
		case artifact.StepLoop:
			if slices.ContainsFunc(c.s.p.Steps[first:second], func(s artifact.Step) bool { return s.Decides() }) {
				c.do(&act{step: i, kind: step.Kind, parts: [2][]*act{c.of(second, end), c.of(first, second)}})
				break
			}
			c.add(first, second) // and behind each body, in one graph with it
			c.do(&act{step: i, kind: step.Kind, parts: [2][]*act{c.of(second, end, first, second)}})
		case artifact.StepBranch:
			c.do(&act{step: i, kind: step.Kind, parts: [2][]*act{c.of(first, second), c.of(second, end)}})
		case artifact.StepRepeat:
			c.repeat(i, c.of(second, end))
		}
		i = end
	}
}

// repeat adds step i, a repetition of body. Iterations of a body that is one graph are written out, as many as a graph may have.
func (c *course) repeat(i int, body []*act) {
	times := c.s.p.Steps[i].Decision.Trips
	switch {
	case len(body) == 0 || times == 0:
		return
	case len(body) > 1 || body[0].kind != artifact.StepLaunch || body[0].times != 1:
		c.do(&act{step: i, kind: artifact.StepRepeat, times: times, parts: [2][]*act{body}})
		return
	}
	b := body[0]
	together := int64(max(1, graphSteps/b.steps))
	if times > together {
		c.end()
		c.fill(b.graph, b.steps, together)
		c.end()
		c.acts[len(c.acts)-1].times = times / together
		times %= together
	}
	c.fill(b.graph, b.steps, times)
}

// graphs are those of a course.
func graphs(course []*act) (out []*act) {
	for _, a := range course {
		if a.kind == artifact.StepLaunch {
			out = append(out, a)
		}
		for _, part := range a.parts {
			out = append(out, graphs(part)...)
		}
	}
	return out
}

// play runs the program once; its last graph may still run when play returns.
// The host waits where it reads a predicate.
func (s *Session) play(ctx context.Context) error {
	var said []bool // the predicates
	err := s.follow(ctx, s.course, func(step int) (bool, error) {
		yes, err := s.holds(ctx, step)
		said = append(said, yes)
		return yes, err
	})
	if err != nil {
		return err
	}
	s.runs, err = s.p.Walk(func(int, int) error { return nil }, func(int) (yes bool, _ error) {
		yes, said = said[0], said[1:]
		return yes, nil
	})
	return err
}

// follow does the acts of a course.
func (s *Session) follow(ctx context.Context, course []*act, decide func(step int) (bool, error)) error {
	for _, a := range course {
		var err error
		switch a.kind {
		case artifact.StepLaunch:
			for n := int64(0); n < a.times && err == nil; n++ {
				if ctx.Err() != nil { // a repetition does not wait between its graphs
					return cmp.Or(s.wait(ctx), ctx.Err())
				}
				err = s.a.check("cuGraphLaunch", s.a.GraphLaunch(a.exec, s.streams[0]))
			}
		case artifact.StepCollective:
			err = s.exchange(a.step)
		case artifact.StepRepeat:
			for n := int64(0); n < a.times && err == nil; n++ {
				err = s.follow(ctx, a.parts[0], decide)
			}
		case artifact.StepLoop:
			for again := true; again && err == nil; {
				if err = s.follow(ctx, a.parts[1], decide); err != nil {
					return err
				}
				if again, err = decide(a.step); again && err == nil {
					err = s.follow(ctx, a.parts[0], decide)
				}
			}
		case artifact.StepBranch:
			var yes bool
			if yes, err = decide(a.step); err != nil {
				return err
			}
			part := 1
			if yes {
				part = 0
			}
			err = s.follow(ctx, a.parts[part], decide)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
