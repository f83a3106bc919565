package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"time"

	"dmir/gpu/cuda"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
)

// The outcomes of cases.
const (
	Passed  = "passed"
	Wrong   = "wrong"   // results differ
	Failed  = "failed"  // it did not run
	Faulted = "faulted" // a kernel faulted
	Hung    = "hung"
	Skipped = "skipped" // the device is too small, or time ran out
)

// Report is the outcome of a case, a line of JSON in a log.
type Report struct {
	Case     string  `json:"case"`
	Class    string  `json:"class"`
	Outcome  string  `json:"outcome"`
	Why      string  `json:"why,omitempty"`
	Seconds  float64 `json:"seconds"`
	Repeated *bool   `json:"repeated,omitempty"` // whether a second run gave the same bytes
}

// Options bound a run of the suite.
type Options struct {
	Limit  time.Duration // for a run of a program
	Strike int           // hangs and faults after which a class is skipped; 0: two
	Trust  bool          // the user trusts the cases: the emulator runs their C++
	Set    int           // which of the sets of inputs; cases without it are left out
	Runs   int           // how often a captured graph of the program is timed; 0: it is not
}

// Files lists the cases of a folder and of the folders in it, one for each class; that of
// a case's own file is the file.
func Files(dir string) (found []string, err error) {
	if filepath.Ext(dir) == extension {
		return []string{dir}, nil
	}
	for _, pattern := range []string{"*", filepath.Join("*", "*")} {
		here, err := filepath.Glob(filepath.Join(dir, pattern+extension))
		if err != nil {
			return nil, err
		}
		found = append(found, here...)
	}
	sort.Strings(found)
	return found, nil
}

// Run runs the cases on d, each class in turn, and reports each as it ends. When
// ctx ends, those that are left are reported as skipped.
func Run(ctx context.Context, d device.Device, paths []string, o Options, report func(Report)) error {
	if o.Strike == 0 {
		o.Strike = 2
	}
	left, classes, byClass := 0, []string{}, map[string][]*Case{}
	for _, path := range paths {
		c, err := Read(path)
		if err != nil {
			return err
		}
		if o.Set >= len(c.Sets) {
			continue
		}
		left++
		if byClass[c.Class] == nil {
			classes = append(classes, c.Class)
		}
		byClass[c.Class] = append(byClass[c.Class], c)
	}
	strikes := map[string]int{}
	for left > 0 {
		for _, class := range classes {
			if len(byClass[class]) == 0 {
				continue
			}
			c := byClass[class][0]
			byClass[class] = byClass[class][1:]
			left--
			r := Report{Case: c.Name, Class: class, Outcome: Skipped}
			switch {
			case ctx.Err() != nil:
				r.Why = "the time is over"
			case strikes[class] >= o.Strike:
				r.Why = fmt.Sprintf("%d of its class hung or faulted", strikes[class])
			default:
				r = c.run(ctx, d, o)
			}
			if r.Outcome == Hung || r.Outcome == Faulted {
				strikes[class]++
			}
			report(r)
		}
	}
	return nil
}

// Run runs the case, each time within limit.
func (c *Case) Run(ctx context.Context, d device.Device, limit time.Duration) Report {
	return c.run(ctx, d, Options{Limit: limit})
}

func (c *Case) run(ctx context.Context, d device.Device, o Options) Report {
	r := Report{Case: c.Name, Class: c.Class}
	start := time.Now()
	c.fillReport(ctx, d, o, &r)
	r.Seconds = time.Since(start).Seconds()
	return r
}

// fillReport runs the case and records the outcome in r.
func (c *Case) fillReport(ctx context.Context, d device.Device, o Options, r *Report) {
	p, err := c.program()
	if err != nil {
		r.Outcome, r.Why = Failed, err.Error()
		return
	}
	if o.Trust {
		p.Trust()
	}
	once := func(inputs []Input) ([][]byte, bool) {
		var raw [][]byte
		for i := range inputs {
			b, err := inputs[i].bytes()
			if err != nil {
				r.Outcome, r.Why = Failed, err.Error()
				return nil, false
			}
			raw = append(raw, b)
		}
		got, err := d.Run(ctx, p, raw, device.Options{Timeout: o.Limit, Runs: o.Runs})
		if err == nil && got.Untimed != "" {
			err = errors.New(got.Untimed)
		}
		if err == nil {
			return got.Outputs, true
		}
		r.Why = err.Error()
		var fault *cuda.Fault
		var emulated *emulator.Fault
		var large *cuda.TooLarge
		switch {
		case errors.As(err, &large):
			r.Outcome = Skipped
		case ctx.Err() != nil:
			r.Outcome, r.Why = Skipped, "the time is over"
		case errors.As(err, &emulated) && emulated.Kind == emulator.Timeout, errors.Is(err, context.DeadlineExceeded):
			r.Outcome, r.Why = Hung, fmt.Sprintf("it did not end within %v", o.Limit)
		case errors.As(err, &fault), errors.As(err, &emulated):
			r.Outcome = Faulted
		default:
			r.Outcome = Failed
		}
		return nil, false
	}
	for i := range c.Probes {
		q := &c.Probes[i]
		rows, ok := once(q.ByRow)
		if !ok {
			return
		}
		cols, ok := once(q.ByColumn)
		if !ok {
			return
		}
		why, err := q.landed(rows[0], cols[0])
		if err != nil {
			why = err.Error()
		}
		if why != "" && r.Why != "" {
			r.Why += "; "
		}
		r.Why += why
	}
	if r.Why != "" {
		r.Outcome = Wrong
		return
	}
	set := &c.Sets[o.Set]
	if len(set.Want) == 0 {
		r.Outcome = Passed
		return
	}
	first, ok := once(set.Inputs)
	if !ok {
		return
	}
	r.Outcome = Passed
	for i := range set.Want {
		if i >= len(first) {
			r.Outcome, r.Why = Wrong, fmt.Sprintf("%d results of %d", len(first), len(set.Want))
			return
		}
		if err := set.Want[i].check(first[i]); err != nil {
			r.Outcome, r.Why = Wrong, fmt.Sprintf("result %d: %v", i, err)
			return
		}
	}
	again, ok := once(set.Inputs)
	if !ok {
		return
	}
	same := true
	for i := range first {
		same = same && bytes.Equal(first[i], again[i])
	}
	if r.Repeated = &same; !same {
		r.Outcome, r.Why = Wrong, "a second run gives other bytes"
	}
}
