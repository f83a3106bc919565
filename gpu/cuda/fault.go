package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Fault is a kernel that did what a device does not allow, such as an access
// outside of any memory.
type Fault struct {
	Step   string // of the program; empty where it could not be told
	Kernel string
	File   string // and the lines of it that the kernel came from
	Lines  []int
	Err    error // the driver's *Error
}

// Error is one line.
func (f *Fault) Error() string {
	var e *Error
	what := f.Err.Error()
	if errors.As(f.Err, &e) {
		what = e.Text
	}
	if f.Step == "" {
		return "a kernel failed: " + what + "; none fails when they run one by one"
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

// Unwrap is the driver's error.
func (f *Fault) Unwrap() error { return f.Err }

// isFault reports whether err says that a kernel broke the context.
func isFault(err error) bool {
	var e *Error
	return errors.As(err, &e) && faulted(e.Code)
}

// clearer says in other words what people ask about.
func clearer(err error, d *Device, bytes int64) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch status(e.Code) {
	case outOfMemory:
		return fmt.Errorf("%s has no %d bytes of memory free: %w", d.Name, bytes, err)
	case invalidImage, noBinary, invalidPTX, unsupportedPTX:
		return fmt.Errorf("%s (%s) does not take the machine code: it is for another architecture, or the NVIDIA driver is older than the compiler: %w", d.Name, strings.TrimSuffix(d.Arch(), "a"), err)
	}
	return err
}

// locate finds the step that broke the context: in a fresh one it runs the
// steps one by one and waits for each. The context is dropped before and after,
// whatever comes of it.
func (s *Session) locate(ctx context.Context, inputs [][]byte, fault error) *Fault {
	s.lost = true
	found := &Fault{Err: fault, File: s.p.File}
	drop := func() {
		s.a.CtxRelease(s.d.id) // what these say is known: the context is broken
		s.a.CtxReset(s.d.id)
	}
	drop()
	fresh := &Session{d: s.d, p: s.p, a: s.a, image: s.image}
	err := fresh.with(func() error {
		if err := fresh.load(); err != nil {
			return err
		}
		if err := fresh.give(inputs, nil); err != nil {
			return err
		}
		return s.p.Walk(func(from, to int) error {
			for i := from; i < to; i++ {
				err := fresh.enqueue(i, fresh.streams[0])
				if err == nil {
					err = fresh.wait(ctx)
				}
				if isFault(err) {
					step := &s.p.Steps[i]
					found.Step, found.Err = step.Name, err
					if step.Kernel >= 0 {
						found.Kernel, found.Lines = s.p.Kernels[step.Kernel].Name, s.p.Kernels[step.Kernel].Lines
					}
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, func(step int) (bool, error) { return fresh.holds(ctx, step) })
	})
	switch {
	case fresh.ctx == 0:
	case err != nil:
		drop()
	default:
		fresh.Close()
	}
	return found
}
