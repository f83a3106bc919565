// Package pipelining has the schedules of pipeline parallelism as static lists: which
// micro-batch each device works on when, what it sends, and what it holds. It knows stages and their
// times, and neither ops nor programs.
package pipelining

import "dmir/dialect/op"

// A Schedule is a rule for the order in which the devices of a pipeline work.
type Schedule string

// The schedules.
const (
	GPipe       Schedule = op.ScheduleGPipe       // all forward, then all backward (Huang et al., arXiv 1811.06965)
	OneFOneB    Schedule = op.Schedule1F1B        // one forward, one backward in turn (Narayanan et al., arXiv 2104.04473)
	Interleaved Schedule = op.ScheduleInterleaved // 1F1B with several stages on each device (the same)
	ZBH1        Schedule = op.ScheduleZBH1        // the gradient of weights fills bubbles (Qi et al., arXiv 2401.10241)
	ZBV         Schedule = op.ScheduleZBV         // two stages on each device, laid out as a V (Qi et al., arXiv 2405.15362)
)

// A Kind is a kind of work.
type Kind uint8

// The kinds of work. Backward is the gradient of inputs and of weights where the schedule does not
// split them, else that of inputs alone.
const (
	Forward Kind = iota
	Backward
	Weight
)

// A Task is what a device does at a time: a kind of work for a micro-batch in a stage. Stages are
// numbered along the model.
type Task struct {
	Stage, Micro int
	Kind         Kind
}

// A Shape is the size of a pipeline. Chunks is the number of stages on each device; there are
// Devices · Chunks stages.
type Shape struct {
	Devices, Chunks, Micro int
}
