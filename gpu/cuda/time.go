package cuda

import (
	"context"
	"slices"
)

// Timing is how long a program takes by the device's own clock: medians over
// several runs.
type Timing struct {
	TotalNs float64   // of a whole run, without copies to and from the host
	StepNs  []float64 // of each step, when they run one after another; all its runs together
	Runs    int
}

// sweepBytes is at least twice the size of any device's last-level cache.
const sweepBytes = 256 << 20

// Time measures a program that was loaded: runs of its graph, then runs of a
// graph of the same steps one after another with the time taken between them.
// With cold, other bytes are written before every run, so that the cache holds none
// of the program's.
func (s *Session) Time(ctx context.Context, inputs [][]byte, runs int, cold bool) (*Timing, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}
	t := &Timing{Runs: max(1, runs)}
	err := s.with(func() error {
		if err := s.prepare(); err != nil {
			return err
		}
		if err := s.give(inputs, nil); err != nil {
			return err
		}
		var sweep deviceVA
		if cold {
			if err := s.a.check("cuMemAlloc", s.a.MemAlloc(&sweep, sweepBytes)); err != nil {
				return err
			}
		}
		err := s.timeTotal(ctx, inputs, sweep, t)
		switch {
		case err != nil:
		case s.p.Straight() && s.p.Divided == nil:
			err = s.timeSteps(ctx, inputs, sweep, t)
		default:
			err = s.timeRounds(ctx, inputs, sweep, t)
		}
		if sweep != 0 && !s.lost && !isFault(err) {
			if freed := s.a.check("cuMemFree", s.a.MemFree(sweep)); err == nil {
				err = freed
			}
		}
		return err
	})
	if isFault(err) {
		err = s.fault(err)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// ready copies the inputs again that the last run overwrote, and fills the cache
// with the bytes of sweep, if that is not 0.
func (s *Session) ready(inputs [][]byte, overwritten []bool, sweep deviceVA) error {
	if err := s.give(inputs, overwritten); err != nil || sweep == 0 {
		return err
	}
	return s.a.check("cuMemsetD8Async", s.a.Fill(sweep, 0, sweepBytes, s.streams[0]))
}

func (s *Session) timeTotal(ctx context.Context, inputs [][]byte, sweep deviceVA, t *Timing) error {
	from, err := s.event(0)
	if err != nil {
		return err
	}
	to, err := s.event(0)
	if err != nil {
		return err
	}
	overwritten := s.p.Overwritten()
	var total []float64
	for run := range t.Runs + 1 { // the first warms up
		if err := s.ready(inputs, overwritten, sweep); err != nil {
			return err
		}
		if err := s.a.check("cuEventRecord", s.a.EventRecord(from, s.streams[0])); err != nil {
			return err
		}
		if err := s.play(ctx); err != nil {
			return err
		}
		if err := s.a.check("cuEventRecord", s.a.EventRecord(to, s.streams[0])); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		ns, err := s.between(from, to)
		if err != nil {
			return err
		}
		if run > 0 {
			total = append(total, ns)
		}
	}
	t.TotalNs = median(total)
	return nil
}

// timeSteps records an event after each step within one graph, so that times include
// no launch from the host.
func (s *Session) timeSteps(ctx context.Context, inputs [][]byte, sweep deviceVA, t *Timing) error {
	marks := make([]handle, len(s.p.Steps)+1)
	for i := range marks {
		var err error
		if marks[i], err = s.event(0); err != nil {
			return err
		}
	}
	exec, err := s.capture(func() error {
		on := s.streams[0]
		for i := range marks {
			if i > 0 {
				if err := s.enqueue(i-1, on); err != nil {
					return err
				}
			}
			if err := s.a.check("cuEventRecordWithFlags", s.a.EventNode(marks[i], on, recordExternal)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	overwritten := s.p.Overwritten()
	steps := make([][]float64, len(s.p.Steps))
	for run := range t.Runs + 1 {
		if err = s.ready(inputs, overwritten, sweep); err != nil {
			break
		}
		if err = s.replay(ctx, exec); err != nil {
			break
		}
		for i := range steps {
			var ns float64
			if ns, err = s.between(marks[i], marks[i+1]); err != nil {
				break
			}
			if run > 0 {
				steps[i] = append(steps[i], ns)
			}
		}
	}
	if s.lost || isFault(err) {
		return err
	}
	if freed := s.a.check("cuGraphExecDestroy", s.a.ExecFree(exec)); err == nil {
		err = freed
	}
	for _, list := range steps {
		t.StepNs = append(t.StepNs, median(list))
	}
	return err
}

// timeRounds is timeSteps for a program with decisions, which is not one graph. Its
// steps are launched one by one, so times of short steps include the launch.
// Decisions have no time.
func (s *Session) timeRounds(ctx context.Context, inputs [][]byte, sweep deviceVA, t *Timing) error {
	marks := make([]handle, len(s.p.Steps)+1)
	for i := range marks {
		var err error
		if marks[i], err = s.event(0); err != nil {
			return err
		}
	}
	overwritten := s.p.Overwritten()
	on := s.streams[0]
	mark := func(i int) error { return s.a.check("cuEventRecord", s.a.EventRecord(marks[i], on)) }
	steps := make([][]float64, len(s.p.Steps))
	for run := range t.Runs + 1 {
		if err := s.ready(inputs, overwritten, sweep); err != nil {
			return err
		}
		sum := make([]float64, len(steps))
		_, err := s.p.Walk(func(from, to int) error {
			if err := mark(from); err != nil {
				return err
			}
			for i := from; i < to; i++ {
				if err := s.enqueue(i, on); err != nil {
					return err
				}
				if err := mark(i + 1); err != nil {
					return err
				}
			}
			if err := s.wait(ctx); err != nil {
				return err
			}
			for i := from; i < to; i++ {
				ns, err := s.between(marks[i], marks[i+1])
				if err != nil {
					return err
				}
				sum[i] += ns
			}
			return nil
		}, func(step int) (bool, error) { return s.holds(ctx, step) })
		if err != nil {
			return err
		}
		for i, ns := range sum {
			if run > 0 {
				steps[i] = append(steps[i], ns)
			}
		}
	}
	for _, list := range steps {
		t.StepNs = append(t.StepNs, median(list))
	}
	return nil
}

// between is the time between two events that have happened, in nanoseconds.
func (s *Session) between(from, to handle) (float64, error) {
	var ms float32
	err := s.a.check("cuEventElapsedTime", s.a.EventElapsed(&ms, from, to))
	return float64(ms) * 1e6, err
}

// median of a list; 0 of none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	mid := len(list) / 2
	if len(list)%2 == 1 {
		return list[mid]
	}
	return (list[mid-1] + list[mid]) / 2
}
