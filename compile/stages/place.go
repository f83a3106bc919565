package stages

import (
	"maps"
	"slices"

	"dmir/analysis/pipelining"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Positions on a device are numbered from 0: first those of what is computed before all tasks, then one for each
// task, then those of what is computed behind them, and at the end that of the return. Before and behind the
// tasks, an op that needs what another device computes there has a later position than that.

// task is the position of a task by its place in the order of its device, and the number of the first position
// behind the tasks.
func (s *splitter) task(place int) int { return s.before + place }

// last is the position of the return.
func (s *splitter) last(device int) int { return s.task(len(s.order[device])) + s.behind }

// nowhere is the position of an op on a device that does not run it.
const nowhere = -1

// place finds where each op runs.
func (s *splitter) place() {
	at := map[pipelining.Task]int{}
	for _, tasks := range s.order {
		for i, t := range tasks {
			at[t] = i
		}
	}
	first := make([]bool, len(s.ops)) // of no micro-batch, and needed by one
	for i := len(s.ops) - 1; i >= 0; i-- {
		n := s.ops[i]
		for _, d := range n.uses {
			first[d.index] = first[d.index] || d.micro < 0 && (n.micro >= 0 || first[i])
		}
	}
	outside := func(n *node) bool { return n.micro < 0 || n.late }
	level := make([]int, len(s.ops)) // of ops outside of tasks: how often what they need changes the device there
	for i, n := range s.ops {
		if n.free || !outside(n) {
			continue
		}
		for _, d := range n.uses {
			switch {
			case d.free || !outside(d) || first[d.index] != first[i]:
			case s.device(d) == s.device(n):
				level[i] = max(level[i], level[d.index])
			default:
				level[i] = max(level[i], level[d.index]+1)
			}
		}
		if first[i] {
			s.before = max(s.before, level[i]+1)
		} else {
			s.behind = max(s.behind, level[i]+1)
		}
	}
	for i, n := range s.ops {
		n.places = slices.Repeat([]int{nowhere}, s.devices)
		if n.free {
			continue
		}
		on := s.device(n)
		position := level[i]
		switch {
		case first[i]:
		case outside(n):
			position += s.task(len(s.order[on]))
		default:
			position = s.task(at[pipelining.Task{Stage: n.stage, Micro: n.micro, Kind: n.kind}])
		}
		for _, d := range n.uses {
			position = max(position, d.places[on])
		}
		n.places[on] = position
	}
	for changed := true; changed; {
		s.repeat()
		changed = s.signature()
	}
}

// repeat places the ops that are computed on each device that uses them, as late as can be.
func (s *splitter) repeat() {
	sooner := func(n *node, device, position int) {
		if n.free && position >= 0 && (n.places[device] < 0 || position < n.places[device]) {
			n.places[device] = position
		}
	}
	for i, v := range s.body.Terminator().Operands {
		if n := s.of[v.Op]; n != nil && s.returns != nil {
			for _, device := range s.returns[i] {
				sooner(n, device, s.last(device))
			}
		}
	}
	for i := len(s.ops) - 1; i >= 0; i-- {
		n := s.ops[i]
		for _, d := range n.uses {
			for device, position := range n.places {
				sooner(d, device, position)
			}
		}
	}
}

// signature finds which devices use each argument and return each result, and reports whether that is news. A
// result is returned where it is made, and the next value of an argument wherever that is used.
func (s *splitter) signature() (changed bool) {
	number := map[*ir.Value]int{}
	users := make([]map[int]bool, len(s.fn.Args))
	for i, a := range s.fn.Args {
		number[a], users[i] = i, map[int]bool{}
	}
	for _, n := range s.ops {
		for _, v := range ir.UsedValues(n.op) {
			if i, ok := number[v]; ok {
				for device, position := range n.places {
					if position >= 0 {
						users[i][device] = true
					}
				}
			}
		}
	}
	for i, p := range s.stacked.args { // a device has its piece, whether it needs it or not
		if device, ok := owner(p); ok {
			users[i][device] = true
		}
	}
	state := op.State(s.fn.Op)
	outs := s.body.Terminator().Operands
	returns := make([][]int, len(outs))
	for i, v := range outs {
		if device, ok := owner(s.stacked.results[i]); ok {
			returns[i] = []int{device}
			continue
		}
		if i < len(state) && state[i] >= 0 && len(users[state[i]]) > 0 {
			returns[i] = slices.Sorted(maps.Keys(users[state[i]]))
			continue
		}
		returns[i] = []int{s.maker(v, number, users)}
	}
	for i, v := range outs {
		if k, ok := number[v]; ok {
			for _, device := range returns[i] {
				users[k][device] = true
			}
		}
	}
	changed = !slices.EqualFunc(s.users, users, maps.Equal[map[int]bool]) ||
		!slices.EqualFunc(s.returns, returns, slices.Equal[[]int])
	s.users, s.returns = users, returns
	return changed
}

// maker is the first device that has v.
func (s *splitter) maker(v *ir.Value, number map[*ir.Value]int, users []map[int]bool) int {
	if n := s.of[v.Op]; n != nil {
		return max(0, slices.IndexFunc(n.places, func(position int) bool { return position >= 0 }))
	}
	for device := range s.devices {
		if users[number[v]][device] {
			return device
		}
	}
	return 0
}

// crossing is a value that a device sends to another.
type crossing struct {
	value    *ir.Value
	maker    *node
	from, to int
	at       int // the position on from behind which it is sent
	need     int // the position on to before which it is received
	channel  int
}

// crossings finds what devices send.
func (s *splitter) crossings() {
	need := map[*ir.Value][]int{} // by device: the first position that needs it
	note := func(v *ir.Value, device, position int) {
		n := s.of[v.Op]
		if n == nil || n.free || s.device(n) == device || position < 0 {
			return
		}
		if need[v] == nil {
			need[v] = slices.Repeat([]int{nowhere}, s.devices)
		}
		if at := &need[v][device]; *at < 0 || position < *at {
			*at = position
		}
	}
	for _, n := range s.ops {
		for _, v := range ir.UsedValues(n.op) {
			for device, position := range n.places {
				note(v, device, position)
			}
		}
	}
	for i, v := range s.body.Terminator().Operands {
		for _, device := range s.returns[i] {
			note(v, device, s.last(device))
		}
	}
	for _, n := range s.ops {
		for _, v := range n.op.Results {
			for to, position := range need[v] {
				if position >= 0 {
					from := s.device(n)
					s.cross = append(s.cross, &crossing{value: v, maker: n, from: from, to: to, at: n.places[from], need: position, channel: len(s.cross)})
				}
			}
		}
	}
}

// acyclic checks that no devices wait for each other in a circle.
func (s *splitter) acyclic() error {
	start := make([]int, s.devices+1) // the number of the first position of each device
	for d := range s.devices {
		start[d+1] = start[d] + s.last(d) + 1
	}
	n := start[s.devices]
	next, open := make([][]int, n), make([]int, n)
	edge := func(from, to int) {
		next[from] = append(next[from], to)
		open[to]++
	}
	for d := range s.devices {
		for i := start[d]; i+1 < start[d+1]; i++ {
			edge(i, i+1)
		}
	}
	for _, c := range s.cross {
		edge(start[c.from]+c.at, start[c.to]+c.need)
	}
	var ready []int
	for i := range n {
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	done := make([]bool, n)
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done[i] = true
		for _, k := range next[i] {
			if open[k]--; open[k] == 0 {
				ready = append(ready, k)
			}
		}
	}
	for _, c := range s.cross {
		if !done[start[c.from]+c.at] && !done[start[c.to]+c.need] {
			return pass.Errorf(c.maker.op, "DM836", "%s is needed %s on the devices with %s = %d, which in the schedule %s comes before what computes it here, %s",
				c.value.Name, s.when(c.to, c.need), s.axis.Name, c.to, s.schedule, s.when(c.from, c.at))
		}
	}
	return nil
}

// taskAt is the task of a position, if it has one.
func (s *splitter) taskAt(device, position int) (t pipelining.Task, ok bool) {
	place := position - s.before
	if place < 0 || place >= len(s.order[device]) {
		return t, false
	}
	return s.order[device][place], true
}

// when is a position of a device in words.
func (s *splitter) when(device, position int) string {
	if t, ok := s.taskAt(device, position); ok {
		return "in task " + t.String()
	}
	if position < s.before {
		return "before the first task"
	}
	return "after the last task"
}
