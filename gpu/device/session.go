package device

import (
	"context"
	"fmt"

	"dmir/gpu/artifact"
)

// Session is a program on a device that runs again and again with the state of
// the run before; see artifact.Program.State. It is used by one goroutine at a
// time and must be closed.
type Session interface {
	// Step runs the program once. An input that is nil has the value that the step
	// before left there: the state, or what was given last. The results that are
	// state stay on the device; their outputs are nil.
	Step(ctx context.Context, inputs [][]byte) (outputs [][]byte, err error)
	// State is the current state, by result; nil for results that are none.
	State(ctx context.Context) ([][]byte, error)
	Close() error
}

// opener is a device that keeps state in its own memory.
type opener interface {
	Open(ctx context.Context, p *artifact.Program, opts Options) (Session, error)
}

// Open loads p on d for steps. A device without memory of its own between runs
// gets the state from the host each time, and reports the progress of each step.
func Open(ctx context.Context, d Device, p *artifact.Program, opts Options) (Session, error) {
	if o, ok := d.(opener); ok {
		return o.Open(ctx, p, opts)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &hosted{d: d, p: p, opts: opts, inputs: make([][]byte, len(p.Inputs))}, nil
}

// hosted is a session with its state in host memory.
type hosted struct {
	d      Device
	p      *artifact.Program
	opts   Options
	inputs [][]byte
}

func (h *hosted) Step(ctx context.Context, inputs [][]byte) ([][]byte, error) {
	if len(inputs) != len(h.inputs) {
		return nil, fmt.Errorf("@%s takes %d inputs, not %d", h.p.Name, len(h.inputs), len(inputs))
	}
	for i, b := range inputs {
		if b != nil {
			h.inputs[i] = b
		}
	}
	got, err := h.d.Run(ctx, h.p, h.inputs, Options{Progress: h.opts.Progress, Comm: h.opts.Comm})
	if err != nil {
		return nil, err
	}
	for i, out := range got.Outputs {
		if in := h.p.Carried(i); in >= 0 {
			h.inputs[in], got.Outputs[i] = out, nil
		}
	}
	return got.Outputs, nil
}

func (h *hosted) State(context.Context) ([][]byte, error) {
	out := make([][]byte, len(h.p.Outputs))
	for i := range out {
		if in := h.p.Carried(i); in >= 0 {
			out[i] = h.inputs[in]
		}
	}
	return out, nil
}

func (h *hosted) Close() error { return nil }
