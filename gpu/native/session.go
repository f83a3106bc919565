package native

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// session is a program that keeps its state in its own memory between steps.
type session struct {
	*instance
	held [][]byte // by input: the value that was given last, without bytes for state
}

// Open loads the program for steps.
func (d processor) Open(ctx context.Context, p *artifact.Program, opts device.Options) (device.Session, error) {
	p = p.For(d.Arch())
	n, _, err := prepare(ctx, p, opts.Comm)
	if err != nil {
		return nil, err
	}
	return &session{n, make([][]byte, len(p.Inputs))}, nil
}

// Step runs the program with the state that the step before left.
func (s *session) Step(ctx context.Context, inputs [][]byte) ([][]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if err := checkInputs(s.p, inputs, true); err != nil {
		return nil, err
	}
	for i, data := range inputs {
		if buf := &s.p.Buffers[s.p.Inputs[i]]; data == nil && s.held[i] == nil && buf.Size() > 0 {
			return nil, fmt.Errorf("input %s has no value in the first step", buf.Name)
		}
	}
	for i, data := range inputs {
		if data == nil {
			continue
		}
		switch {
		case slices.Contains(s.p.State, i):
			s.held[i] = []byte{}
			s.state(i, data)
			continue
		case s.held[i] == nil: // a copy, since the caller may use its memory again
			s.held[i] = make([]byte, len(data))
			s.input(i, s.held[i])
		}
		copy(s.held[i], data)
	}
	if err := s.run(ctx, nil); err != nil {
		return nil, err
	}
	outputs := make([][]byte, len(s.p.Outputs))
	for i := range outputs {
		if s.p.Carried(i) < 0 {
			outputs[i] = s.read(i)
		}
	}
	return outputs, nil
}

// State copies the current state, by result.
func (s *session) State(ctx context.Context) ([][]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	out := make([][]byte, len(s.p.Outputs))
	for i := range out {
		if s.p.Carried(i) >= 0 {
			out[i] = s.read(i)
		}
	}
	return out, nil
}

// read copies a result of the last run, or the state.
func (s *session) read(i int) []byte {
	out := make([]byte, s.p.Buffers[s.p.Outputs[i]].Size())
	if len(out) > 0 {
		s.lib.ReadOutput(s.at, int32(i), unsafe.Pointer(&out[0]))
	}
	return out
}
