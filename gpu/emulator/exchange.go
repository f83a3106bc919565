package emulator

import (
	"context"
	"fmt"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
)

// exchange is a collective that the process asks for.
type exchange struct {
	bytes int                               // that it writes
	run   func(from []byte) ([]byte, error) // its answer
}

// exchanges are the collectives of p on comm, by step; nil of a program for one device.
func exchanges(p *artifact.Program, comm collective.Comm) func(ctx context.Context, step int) (*exchange, error) {
	if p.Divided == nil {
		return nil
	}
	return func(ctx context.Context, step int) (*exchange, error) {
		if step < 0 || step >= len(p.Steps) || p.Steps[step].Kind != artifact.StepCollective {
			return nil, fmt.Errorf("the emulator asks for a collective in step %d, which is none", step)
		}
		k := &p.Steps[step].Collective
		in, out := p.Buffers[k.From].Size(), p.Buffers[k.To].Size()
		switch k.Op {
		case artifact.Send:
			out = 0
		case artifact.Recv:
			in = 0
		}
		return &exchange{int(in), func(from []byte) ([]byte, error) {
			to := make([]byte, out)
			return to, collective.At(comm, p, step, collective.Step(ctx, comm, p, k, from, to))
		}}, nil
	}
}
