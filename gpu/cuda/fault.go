package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dmir/gpu/artifact"
)

// Fault is the failure of a kernel by an invalid operation, such as an access
// outside of any allocation.
type Fault struct {
	Step   string // of the program; empty where it is not known
	Kernel string
	File   string // and the lines of it that the kernel came from
	Lines  []int
	Err    error  // the driver's *Error
	Found  string // result of looking for the step; empty if it was not looked for
}

// Error is one line.
func (f *Fault) Error() string {
	var e *Error
	what := f.Err.Error()
	if errors.As(f.Err, &e) {
		what = e.Text
	}
	if f.Step == "" {
		if f.Found != "" {
			what += "; " + f.Found
		}
		return "a kernel failed: " + what
	}
	at := ""
	if len(f.Lines) > 0 {
		at = fmt.Sprintf("%s:%d: ", f.File, f.Lines[0])
	}
	name := f.Step
	if f.Kernel != "" && f.Kernel != f.Step {
		name += " (" + f.Kernel + ")"
	}
	return fmt.Sprintf("%sthe kernel %s failed: %s", at, name, what)
}

// Failure reports that a kernel failed, and the line that it came from.
func (f *Fault) Failure() artifact.Failure {
	out := artifact.Failure{Reason: artifact.Faulted, File: f.File, Help: "dmir run --device emulator reports more details"}
	if len(f.Lines) > 0 {
		out.Line = f.Lines[0]
	}
	return out
}

// Unwrap is the driver's error.
func (f *Fault) Unwrap() error { return f.Err }

// isFault reports whether err is the status of a kernel that broke the context.
func isFault(err error) bool {
	var e *Error
	return errors.As(err, &e) && faulted(e.Code)
}

// clearer returns a message that explains the statuses users ask about most.
func clearer(err error, d *Device, bytes int64) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch status(e.Code) {
	case outOfMemory:
		return fmt.Errorf("%s has no %d bytes of memory free: %w", d.Name, bytes, err)
	case invalidImage, noBinary, invalidPTX, unsupportedPTX:
		return fmt.Errorf("%s (%s) rejects the machine code: it is for another architecture, or the NVIDIA driver is older than the compiler: %w", d.Name, strings.TrimSuffix(d.Arch(), "a"), err)
	}
	return err
}

// fault is err as a *Fault whose kernel is not known: steps run as one graph. The
// context is broken, and the process cannot use the device any more, whatever the
// driver returns; another process finds the kernel with [Session.RunSteps].
func (s *Session) fault(err error) *Fault {
	s.lost = true
	return &Fault{Err: err, File: s.p.File}
}

// RunSteps is Run with a wait after each step, so that a *Fault names its kernel. It
// is slow and only for locating faults.
func (s *Session) RunSteps(ctx context.Context, inputs [][]byte) ([][]byte, error) {
	return s.run(ctx, inputs, func() (err error) {
		s.runs, err = s.p.Walk(func(from, to int) error {
			for i := from; i < to; i++ {
				err := s.enqueue(i, s.streams[0])
				if err == nil {
					err = s.wait(ctx)
				}
				if isFault(err) {
					fault, step := s.fault(err), &s.p.Steps[i]
					fault.Step = step.Name
					if k := s.p.KernelOf(step); k != nil {
						fault.Kernel, fault.Lines = k.Name, k.Lines
					}
					return fault
				}
				if err != nil {
					return fmt.Errorf("at the step %s: %w", s.p.Steps[i].Name, err)
				}
			}
			return nil
		}, func(step int) (bool, error) { return s.holds(ctx, step) })
		return err
	})
}
