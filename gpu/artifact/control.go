package artifact

// maxDepth is how deep decisions may be nested.
const maxDepth = 64

// Decides reports whether the step is a loop or a branch.
func (s *Step) Decides() bool {
	return s.Kind == StepLoop || s.Kind == StepRepeat || s.Kind == StepBranch
}

// Straight reports whether the program takes no decisions: its steps run once
// each, and the host reads nothing before the end.
func (p *Program) Straight() bool {
	for i := range p.Steps {
		if p.Steps[i].Decides() {
			return false
		}
	}
	return true
}

// ReadsBack reports whether the host reads a predicate during a run and waits for it.
func (p *Program) ReadsBack() bool {
	for i := range p.Steps {
		if p.Steps[i].Decides() && p.Steps[i].Kind != StepRepeat {
			return true
		}
	}
	return false
}

// Walk visits the steps of a program that Check accepts in execution order.
// straight is called for each stretch of steps [from, to) without decisions;
// decide for each decision that reads a predicate, all steps before which have been
// given to straight: it returns the predicate. An error of either ends the walk. runs
// is how often each step ran: a loop and a branch once for each predicate, a
// repetition once for each iteration.
func (p *Program) Walk(straight func(from, to int) error, decide func(step int) (bool, error)) (runs []int64, err error) {
	w := &walk{p: p, straight: straight, decide: decide, runs: make([]int64, len(p.Steps))}
	err = w.steps(0, len(p.Steps))
	return w.runs, err
}

type walk struct {
	p        *Program
	straight func(from, to int) error
	decide   func(step int) (bool, error)
	runs     []int64
}

func (w *walk) steps(from, to int) error {
	for i := from; i < to; {
		s := &w.p.Steps[i]
		if !s.Decides() {
			end := i
			for ; end < to && !w.p.Steps[end].Decides(); end++ {
				w.runs[end]++
			}
			if err := w.straight(i, end); err != nil {
				return err
			}
			i = end
			continue
		}
		first := i + 1
		second := first + s.Decision.Parts[0]
		end := second + s.Decision.Parts[1]
		if s.Kind == StepRepeat {
			if end == second { // an empty body may be repeated any number of times
				w.runs[i] += s.Decision.Trips
			}
			for n := int64(0); n < s.Decision.Trips && end > second; n++ {
				w.runs[i]++
				if err := w.steps(second, end); err != nil {
					return err
				}
			}
			i = end
			continue
		}
		for again := true; again; {
			if s.Kind == StepLoop {
				if err := w.steps(first, second); err != nil {
					return err
				}
			}
			w.runs[i]++
			yes, err := w.decide(i)
			switch {
			case err != nil:
				return err
			case s.Kind == StepLoop && yes:
				err = w.steps(second, end)
			case s.Kind == StepBranch && yes:
				err = w.steps(first, second)
			case s.Kind == StepBranch:
				err = w.steps(second, end)
			}
			if err != nil {
				return err
			}
			again = s.Kind == StepLoop && yes
		}
		i = end
	}
	return nil
}

// Stretches are the steps [from, to) that Walk gives to straight, each once, in
// the order of the program.
func (p *Program) Stretches() [][2]int {
	var out [][2]int
	floor := p.floors()
	for i := range p.Steps {
		switch n := len(out); {
		case p.Steps[i].Decides():
		case floor[i] == i || n == 0:
			out = append(out, [2]int{i, i + 1})
		default:
			out[n-1][1] = i + 1
		}
	}
	return out
}

// floors returns for each step the first step that may still run when it starts, on
// any stream: the last bound of a part at or before it, or itself for a decision.
func (p *Program) floors() []int {
	out := make([]int, len(p.Steps)+1)
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Decides() {
			for _, at := range []int{i, i + 1, i + 1 + s.Decision.Parts[0], i + 1 + s.Decision.Parts[0] + s.Decision.Parts[1]} {
				if at >= 0 && at < len(out) {
					out[at] = at
				}
			}
		}
		out[i+1] = max(out[i+1], out[i])
	}
	return out[:len(p.Steps)]
}

// Times is the predicted number of executions of each step in one run: once, in a
// loop its trip count or once if that is unknown, and both sides of a branch once.
func (p *Program) Times() []int64 {
	out := make([]int64, len(p.Steps))
	var fill func(from, to int, n int64)
	fill = func(from, to int, n int64) {
		for i := from; i < to; i++ {
			out[i] = n
			s := &p.Steps[i]
			if !s.Decides() {
				continue
			}
			second := i + 1 + s.Decision.Parts[0]
			end := second + s.Decision.Parts[1]
			conditions, rounds := int64(1), int64(1)
			if s.Kind != StepBranch && s.Decision.TripsKnown {
				conditions, rounds = min(s.Decision.Trips, 1<<56)+1, min(s.Decision.Trips, 1<<56)
			}
			fill(i+1, second, Repeated(n, conditions))
			fill(second, end, Repeated(n, rounds))
			i = end - 1
		}
	}
	fill(0, len(p.Steps), 1)
	return out
}

// Repeated is n × times, at most 2^56, so that sums of such numbers do not overflow.
func Repeated(n, times int64) int64 {
	const most = 1 << 56
	if times > 0 && n > most/times {
		return most
	}
	return n * times
}

// part is a part of a decision.
type part struct {
	from, to int // steps
	decision int // the step
	parent   int // the part that the decision is in, -1 for none
}

// parts finds the parts, and in which one each step is, -1 for none.
func (c *checker) parts() (parts []part, in []int) {
	p := c.p
	in = make([]int, len(p.Steps))
	var find func(from, to, parent, depth int)
	find = func(from, to, parent, depth int) {
		for i := from; i < to; i++ {
			in[i] = parent
			s := &p.Steps[i]
			if !s.Decides() {
				continue
			}
			left := to - i - 1
			if a, b := s.Decision.Parts[0], s.Decision.Parts[1]; a < 0 || b < 0 || a > left || b > left-a {
				c.errorf("step %d (%s): parts of %d and %d steps, and %d are left", i, s.Name, a, b, left)
				return
			}
			if depth == maxDepth {
				c.errorf("step %d (%s): loops and branches are nested deeper than %d", i, s.Name, maxDepth)
				return
			}
			at := i + 1
			for _, n := range s.Decision.Parts {
				if n > 0 {
					parts = append(parts, part{at, at + n, i, parent})
					find(at, at+n, len(parts)-1, depth+1)
				}
				at += n
			}
			i = at - 1
		}
	}
	find(0, len(p.Steps), -1, 0)
	return parts, in
}

// decision checks the fields of a loop or a branch.
func (c *checker) decision(bad func(string, ...any), s *Step) {
	if s.Kind == StepRepeat {
		if s.Decision.On != 0 || s.Decision.Parts[0] != 0 || !s.Decision.TripsKnown {
			bad("a repetition has a trip count, one part, and no predicate")
		}
	} else if !c.has(bad, s.Decision.On) {
		return
	} else if b := &c.p.Buffers[s.Decision.On]; b.Elem != "i1" || b.Size() != 1 {
		bad("decides by the buffer %s, which is not one i1", b.Name)
	}
	if s.Stream != 0 || len(s.Waits) > 0 {
		bad("a decision comes behind all steps before it, and has no stream and no waits")
	}
	if s.Decision.Trips < 0 {
		bad("a trip count of %d", s.Decision.Trips)
	}
}

// rounds checks lifetimes against the parts of decisions: a buffer written in a part
// is live only there, and a buffer that a loop reads from before it is live until the
// loop's end, since every iteration reads it.
func (c *checker) rounds() {
	p := c.p
	parts, in := c.parts()
	if len(parts) == 0 || len(c.errs) > 0 {
		return
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.First >= 0 && b.First < len(in) && in[b.First] >= 0 {
			if at := parts[in[b.First]]; b.Last >= at.to {
				c.errorf("buffer %s: it is made in a part of step %d (%s), which ends with step %d, and lives until step %d", b.Name, at.decision, p.Steps[at.decision].Name, at.to-1, b.Last)
			}
		}
		if b.Last >= len(in) || b.Last < 0 {
			continue
		}
		for k := in[b.Last]; k >= 0; k = parts[k].parent {
			d := parts[k].decision
			s := &p.Steps[d]
			if end := d + s.Decision.Parts[0] + s.Decision.Parts[1]; s.Kind != StepBranch && b.First <= d && b.Last < end {
				c.errorf("buffer %s: the loop of step %d (%s) comes back to it until step %d, and it lives until step %d", b.Name, d, s.Name, end, b.Last)
				break
			}
		}
	}
	for d := range p.Steps {
		s := &p.Steps[d]
		if s.Kind != StepLoop || s.Decision.Parts[0] > 0 { // with a first part the predicate is checked above
			continue
		}
		b := &p.Buffers[s.Decision.On]
		if end := d + s.Decision.Parts[1]; b.First <= d && b.Last < end {
			c.errorf("buffer %s: the loop of step %d (%s) comes back to it until step %d, and it lives until step %d", b.Name, d, s.Name, end, b.Last)
		}
	}
}

// written requires that buffers are written before they are read, on every path.
func (c *checker) written(uses [][]access) {
	p := c.p
	type use struct {
		buffer int
		access
	}
	at := make([][]use, len(p.Steps)) // but for decisions
	for b, list := range uses {
		for _, a := range list {
			if !a.decides {
				at[a.step] = append(at[a.step], use{b, a})
			}
		}
	}
	reported := make([]bool, len(p.Buffers))
	reads := func(b, step int, have []bool) {
		if n, _ := p.Buffers[b].Len(); !have[b] && !reported[b] && n > 0 {
			reported[b] = true
			c.errorf("buffer %s: step %d (%s) reads it before anything is written", p.Buffers[b].Name, step, p.Steps[step].Name)
		}
	}
	var run func(from, to int, have []bool)
	run = func(from, to int, have []bool) {
		for i := from; i < to; i++ {
			s := &p.Steps[i]
			if !s.Decides() {
				for _, u := range at[i] {
					if !u.write || u.read && s.Kind == StepCollective {
						reads(u.buffer, i, have)
					}
				}
				for _, u := range at[i] {
					have[u.buffer] = have[u.buffer] || u.write
				}
				continue
			}
			second := i + 1 + s.Decision.Parts[0]
			end := second + s.Decision.Parts[1]
			switch s.Kind {
			case StepRepeat:
				if s.Decision.Trips > 0 {
					run(second, end, have)
				}
			case StepLoop:
				run(i+1, second, have)
				reads(s.Decision.On, i, have)
				run(second, end, append([]bool(nil), have...))
			default:
				reads(s.Decision.On, i, have)
				other := append([]bool(nil), have...)
				run(i+1, second, have)
				run(second, end, other)
				for b := range have {
					have[b] = have[b] && other[b]
				}
			}
			i = end - 1
		}
	}
	have := make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		have[i] = p.Buffers[i].Kind == Input || p.Buffers[i].Kind == Constant || p.Buffers[i].Filled
	}
	run(0, len(p.Steps), have)
	for i, o := range p.Outputs {
		if n, _ := p.Buffers[o].Len(); !have[o] && n > 0 {
			c.errorf("output %d is the buffer %s, which nothing writes", i, p.Buffers[o].Name)
		}
	}
}

// waits checks that step i waits only for steps of its stretch.
func (c *checker) waits(i, floor int) {
	s := &c.p.Steps[i]
	for _, w := range s.Waits {
		if w < floor {
			c.errorf("step %d (%s): waits for step %d, but a branch or loop lies between them", i, s.Name, w)
		}
	}
}

// decided is the step at whose end decision i reads its predicate.
func (p *Program) decided(i int) int {
	if s := &p.Steps[i]; s.Kind == StepLoop {
		return i + s.Decision.Parts[0]
	}
	return i
}
