package cuda

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"dmir/gpu/artifact"
)

// Step runs the program with the state that the step before left in the device's
// memory. An input that is nil is that state, or has the value that was given
// last; the outputs that are state are nil. Errors are those of Run.
func (s *Session) Step(ctx context.Context, inputs [][]byte) (outputs [][]byte, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	give, err := s.stepInputs(inputs)
	if err != nil {
		return nil, err
	}
	err = s.with(func() error {
		if err := s.give(give, nil); err != nil {
			return err
		}
		if err := s.prepare(); err != nil {
			return err
		}
		if err := s.play(ctx); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		outputs = make([][]byte, len(s.p.Outputs))
		for i, b := range s.p.Outputs {
			if s.p.Carried(i) >= 0 {
				continue
			}
			if outputs[i], err = s.copyOut(&s.p.Buffers[b]); err != nil {
				return err
			}
		}
		if err := s.carry(); err != nil {
			return err
		}
		return s.wait(ctx)
	})
	if err != nil {
		return nil, s.failed(err)
	}
	return outputs, nil
}

// stepInputs are the inputs to copy: those that are given, and those that were
// given before and that a run overwrites.
func (s *Session) stepInputs(inputs [][]byte) ([][]byte, error) {
	if len(inputs) != len(s.p.Inputs) {
		return nil, fmt.Errorf("@%s takes %d inputs, not %d", s.p.Name, len(s.p.Inputs), len(inputs))
	}
	first := s.steps == nil
	if first {
		s.steps = s.stepping()
	}
	give := make([][]byte, len(inputs))
	for i, b := range inputs {
		buf := &s.p.Buffers[s.p.Inputs[i]]
		switch {
		case b == nil && first && buf.Size() > 0:
			return nil, fmt.Errorf("input %s has no value in the first step", buf.Name)
		case b != nil && int64(len(b)) != buf.Size():
			return nil, fmt.Errorf("input %s has %d bytes, not %d", buf.Name, len(b), buf.Size())
		case b != nil:
			give[i] = b
		default:
			give[i] = s.steps.again[i]
		}
		if s.steps.lost[i] && b != nil {
			s.steps.again[i] = b
		}
	}
	return give, nil
}

// stepping is what all steps of a session share.
type stepping struct {
	lost   []bool   // by input: a run overwrites it, and it is not state
	again  [][]byte // what was given last for these
	moves  []move
	staged int64 // bytes that moves stage
}

func (s *Session) stepping() *stepping {
	n := &stepping{lost: s.p.Overwritten(), again: make([][]byte, len(s.p.Inputs))}
	for _, in := range s.p.State {
		if in >= 0 {
			n.lost[in] = false
		}
	}
	n.moves, n.staged = s.moves()
	return n
}

// State copies the current state to host memory, by result; nil for results
// that are none.
func (s *Session) State(ctx context.Context) ([][]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	out := make([][]byte, len(s.p.Outputs))
	err := s.with(func() (err error) {
		for i := range out {
			if in := s.p.Carried(i); in >= 0 {
				if out[i], err = s.copyOut(&s.p.Buffers[s.p.Inputs[in]]); err != nil {
					return err
				}
			}
		}
		return s.wait(ctx)
	})
	if err != nil {
		return nil, s.failed(err)
	}
	return out, nil
}

// move is a copy of state from a result to the input that it becomes.
type move struct {
	from, to *artifact.Buffer
	staged   int64 // where it is copied to first; -1: nowhere
}

// moves are the copies that carry the state on, none for results in the place
// of their inputs, and the bytes that they stage: a result that shares bytes with
// an input that is copied to is copied away before any input is written.
func (s *Session) moves() (out []move, staged int64) {
	var written []*artifact.Buffer // disjoint, since inputs are live together
	for i, in := range s.p.State {
		if in >= 0 && s.p.Outputs[i] != s.p.Inputs[in] {
			out = append(out, move{&s.p.Buffers[s.p.Outputs[i]], &s.p.Buffers[s.p.Inputs[in]], -1})
			written = append(written, out[len(out)-1].to)
		}
	}
	slices.SortFunc(written, func(a, b *artifact.Buffer) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, m := range out {
		at := sort.Search(len(written), func(k int) bool { return written[k].Offset+written[k].Bytes > m.from.Offset })
		if at < len(written) && written[at].Offset < m.from.Offset+m.from.Bytes {
			out[i].staged = staged
			staged += (m.from.Size() + artifact.Alignment - 1) / artifact.Alignment * artifact.Alignment
		}
	}
	return out, staged
}

// carry enqueues the copies of the state to the inputs of the next step.
func (s *Session) carry() error {
	if s.steps.staged > 0 && s.staged == 0 {
		if err := s.a.check("cuMemAlloc", s.a.MemAlloc(&s.staged, uint64(s.steps.staged))); err != nil {
			return err
		}
	}
	copied := func(to, from deviceVA, n int64) error {
		if n == 0 {
			return nil
		}
		return s.a.check("cuMemcpyDtoDAsync", s.a.CopyOn(to, from, uint64(n), s.streams[0]))
	}
	for _, m := range s.steps.moves {
		if m.staged >= 0 {
			if err := copied(s.staged+deviceVA(m.staged), s.address(m.from), m.from.Size()); err != nil {
				return err
			}
		}
	}
	for _, m := range s.steps.moves {
		from := s.address(m.from)
		if m.staged >= 0 {
			from = s.staged + deviceVA(m.staged)
		}
		if err := copied(s.address(m.to), from, m.to.Size()); err != nil {
			return err
		}
	}
	return nil
}
