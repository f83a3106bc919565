package collective

import (
	"context"
	"fmt"

	"dmir/gpu/artifact"
)

// A Value is the elements of the buffers of a value that is exchanged, one memory where these are one.
type Value struct{ From, To []byte }

// Step runs the collective of a step of p on host memory, with all its values. A send leaves its value as it is.
//
// Several values are one call, of a buffer that they are copied into and out of: of each part of the call, which is one rank's,
// those of all values behind each other.
func Step(ctx context.Context, c Comm, p *artifact.Program, k *artifact.Collective, values ...Value) error {
	if len(values) == 1 {
		return one(ctx, c, p, k, values[0].From, values[0].To)
	}
	ins, outs := 1, 1 // parts on each side
	switch k.Op {
	case artifact.ReduceScatter:
		ins = k.Len()
	case artifact.AllGather:
		outs = k.Len()
	}
	in, out := 0, 0
	for _, v := range values {
		in, out = in+len(v.From), out+len(v.To)
	}
	from := make([]byte, 0, in)
	for i := range ins {
		for _, v := range values {
			n := len(v.From) / ins
			from = append(from, v.From[i*n:(i+1)*n]...)
		}
	}
	to := from // of an all-reduce
	if k.Op != artifact.AllReduce {
		to = make([]byte, out)
	}
	if err := one(ctx, c, p, k, from, to); err != nil {
		return err
	}
	for i := range outs {
		for _, v := range values {
			n := len(v.To) / outs
			to = to[copy(v.To[i*n:(i+1)*n], to):]
		}
	}
	return nil
}

// one is Step of one value.
func one(ctx context.Context, c Comm, p *artifact.Program, k *artifact.Collective, from, to []byte) error {
	group, elem, how := k.Group(c.Rank()), p.Buffers[k.From].Elem, Reduction(k.Reduction)
	switch k.Op {
	case artifact.AllReduce:
		if len(to) > 0 && len(from) > 0 && &to[0] != &from[0] {
			copy(to, from)
		}
		return c.AllReduce(ctx, group, how, elem, to)
	case artifact.ReduceScatter:
		return c.ReduceScatter(ctx, group, how, elem, from, to)
	case artifact.AllGather:
		return c.AllGather(ctx, group, elem, from, to)
	case artifact.AllToAll:
		return c.AllToAll(ctx, group, elem, from, to)
	case artifact.Permute:
		toRank, fromRank := k.Peers(c.Rank())
		return c.Permute(ctx, toRank, fromRank, from, to)
	case artifact.Send:
		if toRank, _ := k.Peers(c.Rank()); toRank >= 0 {
			return c.Send(ctx, toRank, k.Tag, from)
		}
		return nil
	case artifact.Recv:
		if _, fromRank := k.Peers(c.Rank()); fromRank >= 0 {
			return c.Recv(ctx, fromRank, k.Tag, to)
		}
		clear(to)
		return nil
	}
	return fmt.Errorf("there is no collective %q", k.Op)
}

// Fits reports why the devices that c connects cannot run p.
func Fits(c Comm, p *artifact.Program) error {
	switch n := p.Devices(); {
	case p.Divided == nil:
		return nil
	case c == nil:
		return fmt.Errorf("@%s is run by %d devices together, and this is one", p.Name, n)
	case c.Size() != n:
		return fmt.Errorf("@%s is run by %d devices together, and there are %d", p.Name, n, c.Size())
	}
	return nil
}

// StepError is the error of a collective in a program.
type StepError struct {
	Rank int
	Step string
	File string
	Line int // of File; 0: unknown
	Err  error
}

func (e *StepError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	return fmt.Sprintf("step %s%s: %v", e.Step, where, e.Err)
}

// Unwrap is the error of the collective.
func (e *StepError) Unwrap() error { return e.Err }

// At is err as that of step i of p.
func At(c Comm, p *artifact.Program, i int, err error) error {
	if err == nil {
		return nil
	}
	s := &p.Steps[i]
	e := &StepError{Rank: c.Rank(), Step: s.Name, File: p.File, Err: err}
	if lines := p.LinesOf(s); len(lines) > 0 {
		e.Line = lines[0]
	}
	return e
}
