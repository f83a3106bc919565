// Package pipelining has the schedules of pipeline parallelism as static lists: which
// micro-batch each device works on when, what it sends, and what it holds. It knows stages and their
// times, and neither ops nor programs.
//
// A model is cut into stages, numbered from its input. Order gives what each device does, in order, as
// tasks: the forward pass, the backward pass (the gradient of inputs) and, in schedules that split it
// off, the gradient of weights of one micro-batch in one stage. Simulate plays an order out with the
// times of the stages: when each task starts, what is sent meanwhile, how long each device is idle and
// how many activations it holds. Estimate bounds the time of a schedule from below without playing it;
// Bubble and InFlight are the closed forms of the papers. Best compares schedules under a memory limit.
//
// Symbols, as in the papers: p devices, v stages (chunks) on each, m micro-batches, F, B and W the time
// of a task of each kind.
//
// Sources:
//   - GPipe: Huang et al., arXiv 1811.06965.
//   - 1F1B and interleaved 1F1B: Narayanan et al., arXiv 2104.04473 (PipeDream-Flush, Megatron-LM).
//   - ZB-H1, ZB-V and the placement of W in waits: Qi et al., arXiv 2401.10241 (Zero Bubble
//     Pipeline Parallelism); ZB-V as a building block of the V family: Qi et al., arXiv 2405.15362.
package pipelining

import (
	"fmt"
	"slices"

	"dmir/dialect/op"
)

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

// Schedules are all schedules.
var Schedules = []Schedule{GPipe, OneFOneB, Interleaved, ZBH1, ZBV}

// Split is whether s runs the gradient of weights as a task of its own.
func (s Schedule) Split() bool { return s == ZBH1 || s == ZBV }

// A Kind is a kind of work.
type Kind uint8

// The kinds of work. Backward is the gradient of inputs and of weights where the schedule does not
// split them, else that of inputs alone.
const (
	Forward Kind = iota
	Backward
	Weight
)

// String is the letter of k in the papers: F, B or W.
func (k Kind) String() string {
	if k > Weight {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kinds[k : k+1]
}

// kinds are the letters of the kinds.
const kinds = "FBW"

// A Task is what a device does at a time: a kind of work for a micro-batch in a stage. Stages are
// numbered along the model.
type Task struct {
	Stage, Micro int
	Kind         Kind
}

// String is the task as PyTorch writes it: stage, kind, micro-batch, "2F0".
func (t Task) String() string { return fmt.Sprintf("%d%s%d", t.Stage, t.Kind, t.Micro) }

// A Shape is the size of a pipeline. Chunks is the number of stages on each device; there are
// Devices · Chunks stages.
type Shape struct {
	Devices, Chunks, Micro int
}

// Stages is the number of stages.
func (sh Shape) Stages() int { return sh.Devices * sh.Chunks }

// Device is the device on which a stage lies: stage mod p, and for ZBV, whose stages go along the
// devices and back, stage s ≥ p on device 2p−1−s.
func Device(s Schedule, sh Shape, stage int) int {
	if s == ZBV && stage >= sh.Devices {
		return 2*sh.Devices - 1 - stage
	}
	return stage % sh.Devices
}

// StagesOf are the stages on a device, in the order of the model.
func StagesOf(s Schedule, sh Shape, device int) []int {
	stages := make([]int, 0, sh.Chunks)
	for c := range sh.Chunks {
		if s == ZBV && c == 1 {
			stages = append(stages, 2*sh.Devices-1-device)
		} else {
			stages = append(stages, c*sh.Devices+device)
		}
	}
	return stages
}

// An Error is why there is no order or timeline.
type Error struct {
	Msg  string
	Help string // what to do; "" if Msg says it
}

func (e *Error) Error() string { return e.Msg }

func errorf(help, format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Help: help}
}

// MaxTasks is the number of tasks above which a shape is refused. Lists of this length still fit in memory.
const MaxTasks = 1 << 25

// Check is an *Error if s has no order for sh.
func Check(s Schedule, sh Shape) error {
	switch {
	case !slices.Contains(Schedules, s):
		return errorf(fmt.Sprintf("write one of %q", Schedules), "there is no schedule %q", string(s))
	case sh.Devices < 1:
		return errorf("give at least 1 device", "a pipeline of %d devices", sh.Devices)
	case sh.Micro < 1:
		return errorf("give at least 1 micro-batch", "a pipeline with %d micro-batches", sh.Micro)
	case sh.Chunks < 1:
		return errorf("give at least 1 stage on each device", "a pipeline with %d stages on each device", sh.Chunks)
	case sh.Devices > MaxTasks/3 || sh.Chunks > MaxTasks/3/sh.Devices || sh.Micro > MaxTasks/3/sh.Stages():
		return errorf("use fewer devices, stages or micro-batches",
			"a pipeline of %d devices with %d stages on each and %d micro-batches has more than %d tasks",
			sh.Devices, sh.Chunks, sh.Micro, MaxTasks)
	case s == ZBV && sh.Chunks != 2:
		return errorf(fmt.Sprintf("cut the model into %d stages", 2*sh.Devices),
			"%s has 2 stages on each device, not %d", s, sh.Chunks)
	case s != ZBV && s != Interleaved && sh.Chunks != 1:
		return errorf(fmt.Sprintf("cut the model into %d stages, or use the schedule %q", sh.Devices, string(Interleaved)),
			"%s has 1 stage on each device, not %d", s, sh.Chunks)
	}
	return nil
}

// Order is what each device does, in order. It depends on the schedule and the shape alone, so that a program
// that states these runs the order that was simulated for it. Those of ZB-H1 and ZB-V are the papers' for equal
// times or, where that is faster, the same with the gradients of weights placed by such times. No order holds more
// than InFlight states.
func Order(s Schedule, sh Shape) ([][]Task, error) {
	if err := Check(s, sh); err != nil {
		return nil, err
	}
	one := slices.Repeat([]float64{1}, sh.Stages())
	p, err := newPipe(s, sh, Times{Forward: one, Backward: one, Weight: one})
	if err != nil {
		return nil, err
	}
	switch s {
	case GPipe:
		return p.gpipe(), nil
	case OneFOneB:
		return p.oneFOneB(), nil
	case Interleaved:
		return p.interleaved(), nil
	default:
		return p.zeroBubble(), nil
	}
}
