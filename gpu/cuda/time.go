package cuda

import (
	"context"
	"slices"
)

// Timing is how long a program takes by the device's own clock: medians over
// several runs.
type Timing struct {
	TotalNs float64   // of a whole run, without copies to and from the host
	StepNs  []float64 // of each step, when they run one after another
	Runs    int
}

// Time measures a program that was loaded: runs of its graph, then runs of a
// graph of the same steps one after another with the time taken between them.
func (s *Session) Time(ctx context.Context, inputs [][]byte, runs int) (*Timing, error) {
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
		if err := s.timeTotal(ctx, inputs, t); err != nil {
			return err
		}
		return s.timeSteps(ctx, inputs, t)
	})
	if isFault(err) {
		return nil, s.locate(ctx, inputs, err)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s *Session) timeTotal(ctx context.Context, inputs [][]byte, t *Timing) error {
	from, err := s.event(0)
	if err != nil {
		return err
	}
	to, err := s.event(0)
	if err != nil {
		return err
	}
	anew := s.p.Overwritten()
	var total []float64
	for run := range t.Runs + 1 { // the first warms up
		if err := s.give(inputs, anew); err != nil {
			return err
		}
		if err := s.a.check("cuEventRecord", s.a.EventRecord(from, s.streams[0])); err != nil {
			return err
		}
		if err := s.a.check("cuGraphLaunch", s.a.GraphLaunch(s.exec, s.streams[0])); err != nil {
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

// timeSteps takes the time at each step's end inside of one graph, so that no
// launch from the host is in it.
func (s *Session) timeSteps(ctx context.Context, inputs [][]byte, t *Timing) error {
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
	anew := s.p.Overwritten()
	steps := make([][]float64, len(s.p.Steps))
	for run := range t.Runs + 1 {
		if err = s.give(inputs, anew); err != nil {
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
