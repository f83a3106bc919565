package artifact

import "dmir/base/streams"

// Predicted is the time of one run in ns by the cost model, as package streams plays it: the steps in their order, collectives
// that have a stream of their own beside the others, each once what it waits for has ended; a step of a loop by Times, and of a
// branch the slower side. Of a program in stages it is that of all devices together: what is sent travels beside what the device
// computes, and a receive ends once it has arrived.
func (p *Program) Predicted() float64 {
	parts := p.Parts()
	programs := make([][]streams.Step, len(parts))
	sum := 0.0
	type parcel struct{ from, to, tag int }
	sent, got := map[parcel][]streams.At{}, map[parcel][]streams.At{}
	for d, q := range parts {
		steps, of := q.steps(0, len(q.Steps), q.Times())
		programs[d] = steps
		for k, i := range of {
			sum += steps[k].Duration
			c := &q.Steps[i].Collective
			if q.Steps[i].Kind != StepCollective || !c.Op.Point() || len(c.Pairs) != 1 {
				continue
			}
			key, at := parcel{c.Pairs[0][0], c.Pairs[0][1], c.Tag}, streams.At{Device: d, Step: k}
			if c.Op == Send {
				sent[key] = append(sent[key], at)
			} else {
				got[key] = append(got[key], at)
			}
		}
	}
	var links []streams.Link
	for key, list := range got {
		for k, at := range list[:min(len(list), len(sent[key]))] {
			links = append(links, streams.Link{From: sent[key][k], To: at})
		}
	}
	s, err := streams.Timelines(programs, links)
	if err != nil || len(s) == 0 { // of a file that Check refuses
		return sum
	}
	return s[0].Total
}

// steps are those from, to but not including to, with what each decision controls as one, and their numbers.
func (p *Program) steps(from, to int, times []int64) (steps []streams.Step, of []int) {
	at := map[int]int{}
	last := -1 // the last step that is beside no other
	for i := from; i < to; {
		s := &p.Steps[i]
		step := streams.Step{Duration: s.TimeNs * float64(times[i])}
		end := i + 1
		switch {
		case s.Decides():
			second := i + 1 + s.Decision.Parts[0]
			end = second + s.Decision.Parts[1]
			a, b := p.within(i+1, second, times), p.within(second, end, times)
			if step.Alone = true; s.Kind == StepBranch {
				step.Duration += max(a, b)
			} else {
				step.Duration += a + b
			}
		case s.Kind == StepCollective:
			step.Communication = s.Stream > 0 || s.Collective.Op == Send
			if s.Stream == 0 && last >= 0 { // it comes behind the others of its stream
				step.After = append(step.After, last)
			}
			if s.Collective.Op == Recv {
				step.Duration = 0
			}
		}
		for _, w := range s.Waits {
			if k, ok := at[w]; ok {
				step.After = append(step.After, k)
			}
		}
		if at[i] = len(steps); !step.Communication {
			last = len(steps)
		}
		steps, of = append(steps, step), append(of, i)
		i = end
	}
	return steps, of
}

// within is the time of the steps from, to but not including to, which begin when all before have ended.
func (p *Program) within(from, to int, times []int64) float64 {
	steps, _ := p.steps(from, to, times)
	s, err := streams.Timeline(steps)
	if err != nil {
		return 0
	}
	return s.Total
}
