package pipelining

import (
	"fmt"
	"strings"
)

// play is what is known while an order is played out.
type play struct {
	*pipe
	made    []float64    // by task: when its result was there; −1 before
	arrived []float64    // by task: when its result was there at the device that needs it
	free    []float64    // by device: the end of its last task
	link    [][2]float64 // by device: the end of its last transfer to the next device and to the one before it
	total   float64
	onSend  func(Send) // nil: no one needs it
}

func (p *pipe) play() *play {
	pl := &play{pipe: p, free: make([]float64, p.sh.Devices), link: make([][2]float64, p.sh.Devices)}
	n := p.kinds() * p.stages * p.sh.Micro
	times := make([]float64, 2*n)
	for i := range times {
		times[i] = -1
	}
	pl.made, pl.arrived = times[:n:n], times[n:]
	return pl
}

// ready is when what t needs is on its device, and when it was made; there is no such time yet if !ok.
func (pl *play) ready(t Task) (at, made float64, ok bool) {
	need, any := pl.needs(t)
	if t.Kind == Backward && !any {
		need, any = Task{t.Stage, t.Micro, Forward}, true
	} else if t.Kind == Backward && pl.made[pl.id(Task{t.Stage, t.Micro, Forward})] < 0 {
		return 0, 0, false
	}
	if !any {
		return 0, 0, true
	}
	id := pl.id(need)
	if pl.device[need.Stage] == pl.device[t.Stage] { // where it was made, also while it is sent to another one
		return pl.made[id], pl.made[id], pl.made[id] >= 0
	}
	return pl.arrived[id], pl.made[id], pl.arrived[id] >= 0
}

// run runs t on its device from start on, and sends what it makes. It gives the end of t, and the stage
// that needs it (−1: none does).
func (pl *play) run(t Task, start float64) (end float64, stage int) {
	from := pl.device[t.Stage]
	end = start + pl.time[t.Kind][t.Stage]
	pl.free[from] = end
	pl.total = max(pl.total, end+pl.once[from])
	id := pl.id(t)
	pl.made[id], pl.arrived[id] = end, end
	stage, link, ok := pl.sendsTo(t)
	if !ok {
		return end, -1
	}
	to := pl.device[stage]
	if to == from {
		return end, stage
	}
	way := 1
	if to == (from+1)%pl.sh.Devices {
		way = 0
	}
	sends := max(end, pl.link[from][way])
	arrives := sends + pl.transfer[link]
	pl.link[from][way], pl.arrived[id] = arrives, arrives
	if pl.onSend != nil {
		pl.onSend(Send{Task: t, From: from, To: to, Start: sends, End: arrives, Bytes: pl.bytes[link]})
	}
	return end, stage
}

// each calls step with devices that can go on, until none can. step runs a task and gives the stage that it
// sent something to (−1: none), or false if there is nothing to run at present.
func (pl *play) each(step func(d int) (sent int, ok bool)) {
	devices := pl.sh.Devices
	queue := make([]int, devices)
	queued := make([]bool, devices)
	for d := range queue {
		queue[d], queued[d] = d, true
	}
	for len(queue) > 0 {
		d := queue[len(queue)-1]
		queue, queued[d] = queue[:len(queue)-1], false
		for {
			sent, ok := step(d)
			if !ok {
				break
			}
			if sent >= 0 && pl.device[sent] != d && !queued[pl.device[sent]] {
				queue = append(queue, pl.device[sent])
				queued[pl.device[sent]] = true
			}
		}
	}
}

// all plays an order out. visit is called with each task, those of a device in order, the time at which it
// starts and ends, and how long its device waited for a transfer alone. It stops where no device can go
// on; next is the number of tasks that each has done.
func (pl *play) all(order [][]Task, visit func(d int, t Task, start, end, exposed float64)) (next []int) {
	next = make([]int, len(order))
	pl.each(func(d int) (sent int, ok bool) {
		if next[d] == len(order[d]) {
			return -1, false
		}
		t := order[d][next[d]]
		at, made, ok := pl.ready(t)
		if !ok {
			return -1, false
		}
		free := pl.free[d]
		start := max(free, at)
		end, sent := pl.run(t, start)
		next[d]++
		if visit != nil {
			visit(d, t, start, end, start-max(free, made))
		}
		return sent, true
	})
	return next
}

// length is the time of an order that is known to be right.
func (p *pipe) length(order [][]Task) float64 {
	pl := p.play()
	pl.all(order, nil)
	return pl.total
}

// Simulate plays an order out. A task starts when its device is free and what it needs is there:
// for Forward, the result of the stage before it; for Backward, that of the stage after it, and its own
// Forward; for Weight, its own Backward. Transfers run beside computation. Each device has one link to
// the device after it and one to the device before it, which carry one message at a time, in the order in
// which they were made.
//
// The error is an *Error if the order is not one of sh, and a *Stuck if it cannot be played to its end.
func Simulate(order [][]Task, s Schedule, sh Shape, t Times, mem Memory) (*Timeline, error) {
	p, err := newPipe(s, sh, t)
	if err != nil {
		return nil, err
	}
	if err := p.complete(order); err != nil {
		return nil, err
	}
	held, err := p.holding(mem)
	if err != nil {
		return nil, err
	}
	tl := &Timeline{Schedule: s, Shape: sh, Devices: make([]Lane, sh.Devices)}
	for d := range tl.Devices {
		tl.Devices[d].Spans = make([]Span, 0, len(order[d]))
	}
	pl := p.play()
	pl.onSend = func(s Send) { tl.Sends = append(tl.Sends, s) }
	tl.Sends = make([]Send, 0, 2*(p.stages-1)*sh.Micro)
	next := pl.all(order, func(d int, t Task, start, end, exposed float64) {
		lane := &tl.Devices[d]
		lane.Spans = append(lane.Spans, Span{Task: t, Start: start, End: end})
		lane.Exposed += exposed
	})
	if err := pl.stuck(order, next); err != nil {
		return nil, err
	}
	tl.Total = pl.total
	for d := range tl.Devices {
		tl.Devices[d].finish(tl.Total, pl.once[d])
		tl.Devices[d].Peak, tl.Devices[d].InFlight = held.peak(d, order[d])
		tl.MaxBubble = max(tl.MaxBubble, tl.Devices[d].Bubble)
		tl.Bubble += tl.Devices[d].Bubble / float64(sh.Devices)
	}
	return tl, nil
}

// complete is an error unless order has each task once, on the device of its stage.
func (p *pipe) complete(order [][]Task) error {
	const help = "use an order of the same schedule and shape"
	if len(order) != p.sh.Devices {
		return errorf(help, "an order of %d devices for a pipeline of %d", len(order), p.sh.Devices)
	}
	seen := make([]bool, p.kinds()*p.stages*p.sh.Micro)
	count := 0
	for d, list := range order {
		for _, t := range list {
			if t.Stage < 0 || t.Stage >= p.stages || t.Micro < 0 || t.Micro >= p.sh.Micro || int(t.Kind) >= p.kinds() {
				return errorf(help, "there is no task %v in %s with %d stages and %d micro-batches", t, p.s, p.stages, p.sh.Micro)
			}
			if p.device[t.Stage] != d {
				return errorf(help, "device %d has the task %v, whose stage is on device %d", d, t, p.device[t.Stage])
			}
			if seen[p.id(t)] {
				return errorf(help, "device %d has the task %v twice", d, t)
			}
			seen[p.id(t)] = true
			count++
		}
	}
	if count < len(seen) {
		return errorf(help, "the order has %d tasks of %d", count, len(seen))
	}
	return nil
}

// A Stuck is an order in which devices wait for each other.
type Stuck struct {
	Waits []Wait // one for each device that is not done
}

// A Wait is a task that cannot start, and the one that it waits for.
type Wait struct {
	Device int
	Task   Task
	For    Task
}

func (e *Stuck) Error() string {
	var b strings.Builder
	b.WriteString("the order cannot go on:")
	for i, w := range e.Waits {
		if i == 4 {
			fmt.Fprintf(&b, " and %d more", len(e.Waits)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " device %d has %v, which waits for %v", w.Device, w.Task, w.For)
	}
	return b.String()
}

// stuck is a *Stuck if a device has not done all of its tasks.
func (pl *play) stuck(order [][]Task, next []int) error {
	var waits []Wait
	for d, list := range order {
		if next[d] == len(list) {
			continue
		}
		t := list[next[d]]
		need, ok := pl.needs(t)
		if own := (Task{t.Stage, t.Micro, Forward}); t.Kind == Backward && (!ok || pl.made[pl.id(own)] < 0) {
			need = own
		}
		waits = append(waits, Wait{Device: d, Task: t, For: need})
	}
	if waits == nil {
		return nil
	}
	return &Stuck{Waits: waits}
}

// holding is what devices hold, by stage and device.
type holding struct {
	split             bool
	activations, kept []int64
	base              []int64
}

func (p *pipe) holding(mem Memory) (*holding, error) {
	h := &holding{split: p.split}
	for _, l := range []struct {
		name string
		list []int64
		size int
		to   *[]int64
	}{
		{"Activations", mem.Activations, p.stages, &h.activations},
		{"Kept", mem.Kept, p.stages, &h.kept},
		{"Base", mem.Base, p.sh.Devices, &h.base},
	} {
		*l.to = make([]int64, l.size)
		if l.list != nil && len(l.list) != l.size {
			return nil, errorf("give one size for each", "Memory.%s has %d entries, not %d", l.name, len(l.list), l.size)
		}
		copy(*l.to, l.list)
	}
	return h, nil
}

// peak is the most that a device holds, and the most micro-batches whose forward pass has started in
// one of its stages and whose last task there is not done.
func (h *holding) peak(d int, order []Task) (peak int64, inFlight int) {
	held, count := h.base[d], 0
	peak = held
	for _, t := range order {
		switch {
		case t.Kind == Forward:
			held += h.activations[t.Stage]
			count++
		case t.Kind == Weight:
			held -= h.kept[t.Stage]
			count--
		case h.split:
			held -= h.activations[t.Stage] - h.kept[t.Stage]
		default:
			held -= h.activations[t.Stage]
			count--
		}
		peak, inFlight = max(peak, held), max(inFlight, count)
	}
	return peak, inFlight
}
