package pipelining

import "math"

// Times are how long the work of a pipeline takes, in seconds or any other unit. Lists that are nil are zeros.
type Times struct {
	Forward  []float64 // by stage, for one micro-batch
	Backward []float64 // by stage: the gradient of inputs alone
	Weight   []float64 // by stage: the gradient of weights, which schedules that do not split add to Backward
	// Transfer is by stage: of the activation from stage s to s+1, and of the gradient of it back. It has an
	// entry for each stage but the last, whose entry may be there and is not used. Between two stages on
	// one device nothing is sent.
	Transfer []float64
	Bytes    []int64   // as Transfer, of one message; only Send.Bytes depends on it
	Once     []float64 // by device, after its last task: gradients reduced, parameters updated
}

// Memory is what a pipeline holds, in bytes or any other unit. Lists that are nil are zeros.
type Memory struct {
	Activations []int64 // by stage: of one micro-batch, from the start of its forward pass to the end of its backward pass
	Kept        []int64 // by stage: the part of Activations that is held until the end of Weight, where that is split off
	Base        []int64 // by device: parameters and all else that is there throughout
}

// longest is the longest time that is accepted: sums of those of all tasks and transfers are finite.
const longest = math.MaxFloat64 / (4 * MaxTasks)

// pipe is a pipeline whose lists are complete.
type pipe struct {
	s        Schedule
	sh       Shape
	stages   int
	device   []int // by stage
	split    bool
	time     [3][]float64 // by kind and stage
	transfer []float64    // by stage; 0 where both stages lie on one device
	bytes    []int64
	once     []float64
}

func newPipe(s Schedule, sh Shape, t Times) (*pipe, error) {
	if err := Check(s, sh); err != nil {
		return nil, err
	}
	n := sh.Stages()
	p := &pipe{s: s, sh: sh, stages: n, device: make([]int, n), split: s.Split()}
	for stage := range p.device {
		p.device[stage] = Device(s, sh, stage)
	}
	var err error
	list := func(name string, list []float64, size int) []float64 {
		out := make([]float64, size)
		if list == nil {
			return out
		}
		if len(list) != size {
			fail(&err, errorf("give one time for each", "Times.%s has %d entries, not %d", name, len(list), size))
			return out
		}
		for i, x := range list {
			if !(x >= 0 && x <= longest) {
				fail(&err, errorf("give a finite time of 0 or more", "Times.%s[%d] is %v", name, i, x))
			}
		}
		copy(out, list)
		return out
	}
	p.time = [3][]float64{list("Forward", t.Forward, n), list("Backward", t.Backward, n), list("Weight", t.Weight, n)}
	if !p.split {
		for stage, w := range p.time[Weight] {
			p.time[Backward][stage] += w
		}
	}
	links := n - 1
	if len(t.Transfer) == n {
		links = n
	}
	p.transfer = list("Transfer", t.Transfer, links)
	p.once = list("Once", t.Once, sh.Devices)
	p.bytes = make([]int64, n)
	if len(t.Bytes) > n {
		fail(&err, errorf("give one size for each", "Times.Bytes has %d entries, not %d", len(t.Bytes), n-1))
	}
	copy(p.bytes, t.Bytes)
	for stage := range n - 1 {
		if p.device[stage] == p.device[stage+1] {
			p.transfer[stage], p.bytes[stage] = 0, 0
		}
	}
	return p, err
}

// fail keeps the first error.
func fail(err *error, e error) {
	if *err == nil {
		*err = e
	}
}

// kinds is the number of kinds of work.
func (p *pipe) kinds() int {
	if p.split {
		return 3
	}
	return 2
}

// id numbers tasks from 0.
func (p *pipe) id(t Task) int { return (int(t.Kind)*p.stages+t.Stage)*p.sh.Micro + t.Micro }

// needs is the task of another stage, or of the same one, whose result t works on. There may be none.
func (p *pipe) needs(t Task) (Task, bool) {
	switch {
	case t.Kind == Weight:
		return Task{t.Stage, t.Micro, Backward}, true
	case t.Kind == Forward && t.Stage > 0:
		return Task{t.Stage - 1, t.Micro, Forward}, true
	case t.Kind == Backward && t.Stage < p.stages-1:
		return Task{t.Stage + 1, t.Micro, Backward}, true
	}
	return Task{}, false
}

// sendsTo is the stage that works on the result of t, and the link: the lower one of the two stages.
func (p *pipe) sendsTo(t Task) (stage, link int, ok bool) {
	switch {
	case t.Kind == Forward && t.Stage < p.stages-1:
		return t.Stage + 1, t.Stage, true
	case t.Kind == Backward && t.Stage > 0:
		return t.Stage - 1, t.Stage - 1, true
	}
	return 0, 0, false
}
