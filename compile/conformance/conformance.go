// Package conformance runs the test suites of other projects' formats on the
// reference executor, or compiled on a device, and reports which cases passed.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"dmir/analysis/machine"
	"dmir/base/parallel"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/gpu/device"
)

// Suites run the programs in a folder, by the name of the format.
var Suites = map[string]func(ctx context.Context, dir string, o Options) (*Report, error){
	"onnx": ONNX, "stablehlo": StableHLO,
}

// Options are how a suite runs.
type Options struct {
	Device device.Device // nil: the reference executor
	// Every runs one program of so many, from the one numbered First; 0: all.
	Every, First int
	// Progress is called after each program; it may be nil.
	Progress func(done, total int)
}

// some are the programs to run.
func (o Options) some(all []string) []string {
	if o.Every <= 1 {
		return all
	}
	var out []string
	for i := o.First; i < len(all); i += o.Every {
		out = append(out, all[i])
	}
	return out
}

// run runs a function, which has no errors.
func (o Options) run(ctx context.Context, m *ir.Module, fn *ir.Func, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if o.Device == nil {
		r, err := interp.Run(ctx, m, fn, args, interp.Options{Threads: 1})
		if err != nil {
			return nil, err
		}
		return r.Outputs, nil
	}
	predicted, _ := machine.Lookup(machine.Default)
	p, err := driver.Build(ctx, m, fn, driver.BuildOptions{Machine: predicted, Arch: o.Device.Arch()})
	if err != nil {
		return nil, err
	}
	r, err := driver.RunArtifact(ctx, o.Device, p, args, device.Options{})
	if err != nil {
		return nil, err
	}
	var out []*tensor.Tensor
	for _, x := range r.Outputs {
		out = append(out, x.Tensor)
	}
	return out, nil
}

// each runs n programs side by side, those that have not begun when ctx ends left out.
func each(ctx context.Context, n int, progress func(done, total int), run func(i int)) {
	var mu sync.Mutex
	done := 0
	parallel.Each(runtime.GOMAXPROCS(0), n, func(i int) {
		if ctx.Err() != nil {
			return
		}
		run(i)
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, n)
		}
	})
}

// maxModel bounds the files that are read: ONNX allows as much.
const maxModel = 2 << 30

// The statuses of a case.
const (
	Passed      = "passed"
	Failed      = "failed"
	Unsupported = "unsupported"
)

// A Case is one program of a suite with its outcome.
type Case struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // why it did not pass
}

// A Report is the outcome of a suite.
type Report struct {
	Passed      int    `json:"passed"`
	Failed      int    `json:"failed"`
	Unsupported int    `json:"unsupported"`
	Cases       []Case `json:"cases"`
}

// ErrUnsupported is wrapped by the error of an importer for a program that is
// valid in its format and has no equivalent in the dialect.
var ErrUnsupported = errors.New("unsupported")

// unsupported is an error that wraps ErrUnsupported and states its reason alone.
type unsupported struct{ error }

func (unsupported) Is(target error) bool { return target == ErrUnsupported }

// Add records the outcome of a case: nil is a pass.
func (r *Report) Add(name string, err error) {
	c := Case{Name: name, Status: Passed}
	switch {
	case err == nil:
		r.Passed++
	case errors.Is(err, ErrUnsupported):
		r.Unsupported++
		c.Status, c.Reason = Unsupported, err.Error()
	default:
		r.Failed++
		c.Status, c.Reason = Failed, err.Error()
	}
	r.Cases = append(r.Cases, c)
}

// Sort orders the cases by name.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Cases, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
}

// Summary is the counts in one line.
func (r *Report) Summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d unsupported", r.Passed, r.Failed, r.Unsupported)
}
