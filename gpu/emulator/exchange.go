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
		sizes := func(v artifact.Move) (in, out int64) {
			if k.Op != artifact.Recv {
				in = p.Buffers[v.From].Size()
			}
			if k.Op != artifact.Send {
				out = p.Buffers[v.To].Size()
			}
			return in, out
		}
		all, given, got := k.Values(), int64(0), int64(0)
		for _, v := range all {
			in, out := sizes(v)
			given, got = given+in, got+out
		}
		return &exchange{int(given), func(from []byte) ([]byte, error) {
			to := make([]byte, got)
			values := make([]collective.Value, len(all))
			rest := to
			for i, v := range all {
				in, out := sizes(v)
				values[i] = collective.Value{From: from[:in:in], To: rest[:out:out]}
				from, rest = from[in:], rest[out:]
			}
			return to, collective.At(comm, p, step, collective.Step(ctx, comm, p, k, values...))
		}}, nil
	}
}
