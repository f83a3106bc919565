package pipelining

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Timeline is when the tasks of an order run. Times are in the unit of Times, from the start of the step.
type Timeline struct {
	Schedule  Schedule
	Shape     Shape
	Total     float64 // the end of the step, Once of all devices included
	Bubble    float64 // mean of that of the devices
	MaxBubble float64 // of the device that is idle longest
	Devices   []Lane
	Sends     []Send // those of a device in the order in which it made them
}

// A Lane is what one device does.
type Lane struct {
	Spans    []Span
	Once     Interval // what the device does once in a step, after its last task
	Idle     float64  // how long it is idle before the end of its last task
	Exposed  float64  // the part of Idle that is due to transfers
	Bubble   float64  // Idle / Total
	Peak     int64    // the most that it holds, in the unit of Memory
	InFlight int      // the most micro-batches that it holds activations of, counted once for each of its stages
}

// An Interval is from Start to End.
type Interval struct{ Start, End float64 }

// A Span is a task with its time.
type Span struct {
	Task       Task
	Start, End float64
}

// A Send is a message from a device to another one: the result of Task.
type Send struct {
	Task       Task
	From, To   int
	Start, End float64
	Bytes      int64
}

// Peak is the most that a device holds.
func (tl *Timeline) Peak() int64 {
	var peak int64
	for i := range tl.Devices {
		peak = max(peak, tl.Devices[i].Peak)
	}
	return peak
}

// A Chain is tasks and messages that follow one another without a pause from the start of a step to its end. Since an order is fixed, a step
// with the same order takes no less than its chain, whatever its tasks and messages take.
type Chain struct {
	Tasks  [3][]int // by kind and stage: how many are in it
	Sends  []int    // by the lower one of the two stages
	Device int      // on which it ends, with what that does once in a step
}

// Chain is the one that the step waits for.
func (tl *Timeline) Chain() Chain {
	p := pipe{s: tl.Schedule, sh: tl.Shape, stages: tl.Shape.Stages(), split: tl.Schedule.Split()}
	c := Chain{Sends: make([]int, p.stages)}
	for k := range c.Tasks {
		c.Tasks[k] = make([]int, p.stages)
	}
	type place struct {
		device, at int
		end        float64
	}
	spans, sends := map[Task]place{}, map[Task]int{}
	for d := range tl.Devices {
		for i, x := range tl.Devices[d].Spans {
			spans[x.Task] = place{d, i, x.End}
		}
		if tl.Devices[d].Once.End > tl.Devices[c.Device].Once.End {
			c.Device = d
		}
	}
	before := make([]int, len(tl.Sends)) // the message in front on its link, -1: none
	last := map[[2]int]int{}
	for i, x := range tl.Sends {
		before[i] = -1
		if k, ok := last[[2]int{x.From, x.To}]; ok {
			before[i] = k
		}
		sends[x.Task], last[[2]int{x.From, x.To}] = i, i
	}
	for at := (place{device: c.Device, at: len(tl.Devices[c.Device].Spans) - 1}); at.at >= 0; {
		x := tl.Devices[at.device].Spans[at.at]
		c.Tasks[x.Task.Kind][x.Task.Stage]++
		if at.at > 0 && tl.Devices[at.device].Spans[at.at-1].End == x.Start {
			at.at--
			continue
		}
		need, ok := p.needs(x.Task)
		if !ok { // the first task of the step
			break
		}
		if i, sent := sends[need]; sent {
			for ; ; i = before[i] {
				need = tl.Sends[i].Task
				_, link, _ := p.sendsTo(need)
				c.Sends[link]++
				if spans[need].end == tl.Sends[i].Start {
					break // else the link was busy
				}
			}
		}
		at = spans[need]
	}
	return c
}

func (l *Lane) finish(total, once float64) {
	end := 0.0
	for _, s := range l.Spans {
		l.Idle += s.Start - end
		end = s.End
	}
	l.Once = Interval{end, end + once}
	if total > 0 {
		l.Bubble = l.Idle / total
	}
}

// Text is an order, a line for each device. A task is its kind and micro-batch, "F0", and where
// devices have several stages the stage before them, "2F0".
func Text(order [][]Task) string {
	var b strings.Builder
	for d, list := range order {
		fmt.Fprintf(&b, "device %d:", d)
		one := true
		for _, t := range list {
			one = one && t.Stage == list[0].Stage
		}
		for _, t := range list {
			b.WriteByte(' ')
			if !one {
				b.WriteString(strconv.Itoa(t.Stage))
			}
			b.WriteString(t.Kind.String())
			b.WriteString(strconv.Itoa(t.Micro))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// numbers are written with 7 digits, which is more than a screen shows and keeps large timelines short.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 10*len(n)+2)
	b = append(b, '[')
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, x, 'g', 7, 64)
	}
	return append(b, ']'), nil
}

type tasksJSON struct {
	Kind  string  `json:"kind"` // a letter for each task: F, B or W
	Stage []int   `json:"stage"`
	Micro []int   `json:"microbatch"`
	Start numbers `json:"start_s"`
	End   numbers `json:"end_s"`
}

// columns are n tasks with times in columns.
func columns(n int, task func(i int) (t Task, start, end float64)) tasksJSON {
	c := tasksJSON{Stage: make([]int, n), Micro: make([]int, n), Start: make(numbers, n), End: make(numbers, n)}
	letters := make([]byte, n)
	for i := range n {
		t, start, end := task(i)
		letters[i] = t.Kind.String()[0]
		c.Stage[i], c.Micro[i], c.Start[i], c.End[i] = t.Stage, t.Micro, start, end
	}
	c.Kind = string(letters)
	return c
}

type laneJSON struct {
	Stages    []int     `json:"stages"` // on the device
	Tasks     tasksJSON `json:"tasks"`
	OnceStart float64   `json:"once_start_s"`
	OnceEnd   float64   `json:"once_end_s"`
	Idle      float64   `json:"idle_s"`
	Exposed   float64   `json:"exposed_s"`
	Bubble    float64   `json:"bubble"`
	Peak      int64     `json:"peak_bytes"`
	InFlight  int       `json:"in_flight"`
}

type sendsJSON struct {
	tasksJSON         // the tasks whose results are sent, and the times of the transfers
	From      []int   `json:"from"`
	To        []int   `json:"to"`
	Bytes     []int64 `json:"bytes"`
}

type timelineJSON struct {
	Schedule  Schedule   `json:"schedule"`
	Devices   int        `json:"devices"`
	Chunks    int        `json:"chunks"`
	Micro     int        `json:"microbatches"`
	Total     float64    `json:"total_s"`
	Bubble    float64    `json:"bubble"`
	MaxBubble float64    `json:"max_bubble"`
	Lanes     []laneJSON `json:"lanes"`
	Sends     sendsJSON  `json:"sends"`
}

// MarshalJSON writes tasks and sends in columns: lists of equal length for stage, micro-batch, start
// and end, and a string with a letter for each kind. Times are taken to be in seconds and memory in bytes.
func (tl *Timeline) MarshalJSON() ([]byte, error) {
	out := timelineJSON{
		Schedule: tl.Schedule, Devices: tl.Shape.Devices, Chunks: tl.Shape.Chunks, Micro: tl.Shape.Micro,
		Total: tl.Total, Bubble: tl.Bubble, MaxBubble: tl.MaxBubble, Lanes: make([]laneJSON, 0, len(tl.Devices)),
	}
	for d := range tl.Devices {
		l := &tl.Devices[d]
		lane := laneJSON{
			Stages: StagesOf(tl.Schedule, tl.Shape, d), OnceStart: l.Once.Start, OnceEnd: l.Once.End,
			Idle: l.Idle, Exposed: l.Exposed, Bubble: l.Bubble, Peak: l.Peak, InFlight: l.InFlight,
		}
		lane.Tasks = columns(len(l.Spans), func(i int) (Task, float64, float64) {
			return l.Spans[i].Task, l.Spans[i].Start, l.Spans[i].End
		})
		out.Lanes = append(out.Lanes, lane)
	}
	n := len(tl.Sends)
	out.Sends = sendsJSON{From: make([]int, n), To: make([]int, n), Bytes: make([]int64, n)}
	out.Sends.tasksJSON = columns(n, func(i int) (Task, float64, float64) {
		s := tl.Sends[i]
		out.Sends.From[i], out.Sends.To[i], out.Sends.Bytes[i] = s.From, s.To, s.Bytes
		return s.Task, s.Start, s.End
	})
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes; the times of tasks and sends have its digits.
func (tl *Timeline) UnmarshalJSON(text []byte) error {
	var in timelineJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	out := Timeline{
		Schedule: in.Schedule, Shape: Shape{Devices: in.Devices, Chunks: in.Chunks, Micro: in.Micro},
		Total: in.Total, Bubble: in.Bubble, MaxBubble: in.MaxBubble,
	}
	for _, l := range in.Lanes {
		lane := Lane{
			Once: Interval{l.OnceStart, l.OnceEnd}, Idle: l.Idle, Exposed: l.Exposed, Bubble: l.Bubble, Peak: l.Peak, InFlight: l.InFlight,
		}
		var err error
		if lane.Spans, err = l.Tasks.spans(); err != nil {
			return err
		}
		out.Devices = append(out.Devices, lane)
	}
	sent, err := in.Sends.spans()
	if err != nil {
		return err
	}
	if len(in.Sends.From) != len(sent) || len(in.Sends.To) != len(sent) || len(in.Sends.Bytes) != len(sent) {
		return errColumns
	}
	for i, s := range sent {
		out.Sends = append(out.Sends, Send{s.Task, in.Sends.From[i], in.Sends.To[i], s.Start, s.End, in.Sends.Bytes[i]})
	}
	*tl = out
	return nil
}

var errColumns = errors.New("a timeline with columns of different lengths")

// spans are the tasks of columns.
func (c *tasksJSON) spans() ([]Span, error) {
	n := len(c.Kind)
	if len(c.Stage) != n || len(c.Micro) != n || len(c.Start) != n || len(c.End) != n {
		return nil, errColumns
	}
	var out []Span
	for i := range n {
		k := strings.IndexByte(kinds, c.Kind[i])
		if k < 0 {
			return nil, fmt.Errorf("a timeline with a task of the kind %q", c.Kind[i])
		}
		out = append(out, Span{Task{c.Stage[i], c.Micro[i], Kind(k)}, c.Start[i], c.End[i]})
	}
	return out, nil
}
