package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/collective/nccl"
)

// deviceComm has collectives on memory of the device, in the order of a stream: NCCL.
type deviceComm interface {
	AllReduce(how collective.Reduction, elem string, in, out uintptr, count int64, stream uintptr) error
	ReduceScatter(how collective.Reduction, elem string, in, out uintptr, count int64, stream uintptr) error
	AllGather(elem string, in, out uintptr, count int64, stream uintptr) error
	AllToAll(elem string, in, out uintptr, count int64, stream uintptr) error
	Permute(to, from int, elem string, in, out uintptr, count int64, stream uintptr) error
	Grouped(calls func() error) error // that begin together
	Err() error
	Abort() error
	Close() error
}

// team is the devices that run a session's program together.
type team struct {
	comm  collective.Comm
	rings map[string]deviceComm // by group; nil: collectives go through the host's memory
	ctx   context.Context       // of the run in progress
}

// Join connects the session with those of the other devices, if its program is for several. With
// NCCL on all of them, and a GPU for each, collectives are a part of the graphs; otherwise the
// host runs them between graphs, on copies of the buffers.
func (s *Session) Join(ctx context.Context, comm collective.Comm) error {
	if err := collective.Fits(comm, s.p); err != nil || s.p.Divided == nil {
		return err
	}
	s.team = &team{comm: comm, ctx: ctx}
	lib, err := nccl.Load("")
	all, agreed := s.eachHas(ctx, err == nil)
	if agreed != nil || !all {
		return agreed
	}
	return s.connect(func(group []int) (deviceComm, error) { return lib.Join(ctx, comm, group) })
}

// eachHas reports whether all ranks have NCCL, and a GPU that no other rank has.
func (s *Session) eachHas(ctx context.Context, nccl bool) (bool, error) {
	const size = 128
	own := make([]byte, size)
	if host, err := os.Hostname(); nccl && err == nil {
		copy(own, fmt.Sprintf("%d %s", s.d.Ordinal, host))
	}
	n := s.team.comm.Size()
	all := make([]byte, n*size)
	if err := s.team.comm.AllGather(ctx, collective.Everyone(s.team.comm), "ui8", own, all); err != nil {
		return false, err
	}
	seen := map[string]bool{}
	for i := range n {
		id := string(all[i*size : (i+1)*size])
		if id[0] == 0 || seen[id] {
			return false, nil
		}
		seen[id] = true
	}
	return true, nil
}

// connect makes the communicators of the program's groups, in the order of its steps.
func (s *Session) connect(join func(group []int) (deviceComm, error)) error {
	s.team.rings = map[string]deviceComm{}
	return s.with(func() error {
		for i := range s.p.Steps {
			k := &s.p.Steps[i].Collective
			if s.p.Steps[i].Kind != artifact.StepCollective || s.onHost(i) {
				continue
			}
			group := k.Group(s.team.comm.Rank())
			key := fmt.Sprint(group)
			if s.team.rings[key] != nil {
				continue
			}
			c, err := join(group)
			if err != nil {
				return err
			}
			s.team.rings[key] = c
		}
		return nil
	})
}

// onNCCL are the element types that NCCL combines as package collective does. It would round
// halves between the ranks.
var onNCCL = []string{"i8", "ui8", "i32", "ui32", "i64", "ui64", "index", "f32", "f64"}

// onHost reports whether step i is a collective that the host runs. A send that NCCL runs waits for its receive, and two
// devices that send to each other at once would wait for ever.
func (s *Session) onHost(i int) bool {
	step := &s.p.Steps[i]
	if step.Kind != artifact.StepCollective {
		return false
	}
	k := &step.Collective
	bits := k.Reduction == "and" || k.Reduction == "or"
	return s.team.rings == nil || k.Op.Point() || k.Reduction != "" && (bits || !slices.Contains(onNCCL, s.p.Buffers[k.From].Elem))
}

// parts are the steps [from, to) cut at collectives that the host runs, each of which is alone.
func (s *Session) parts(from, to int) (out [][2]int) {
	for i := from; i < to; {
		end := i + 1
		for ; !s.onHost(i) && end < to && !s.onHost(end); end++ {
		}
		out = append(out, [2]int{i, end})
		i = end
	}
	return out
}

// exchange runs the collective of step i on the host, when all work before it has ended.
func (s *Session) exchange(i int) error {
	t := s.team
	k := &s.p.Steps[i].Collective
	if err := s.wait(t.ctx); err != nil {
		return err
	}
	var values []collective.Value
	for _, v := range k.Values() {
		var in []byte
		if k.Op != artifact.Recv {
			var err error
			if in, err = s.copyOut(&s.p.Buffers[v.From]); err != nil {
				return err
			}
		}
		out := in
		if v.From != v.To || k.Op == artifact.Recv {
			out = make([]byte, s.p.Buffers[v.To].Size())
		}
		values = append(values, collective.Value{From: in, To: out})
	}
	if err := s.wait(t.ctx); err != nil {
		return err
	}
	if err := collective.At(t.comm, s.p, i, collective.Step(t.ctx, t.comm, s.p, k, values...)); err != nil || k.Op == artifact.Send {
		return err
	}
	for n, v := range k.Values() {
		if err := s.copyIn(&s.p.Buffers[v.To], values[n].To); err != nil {
			return err
		}
	}
	return nil
}

// enqueueCollective adds the collective of step i to a stream, or runs it.
func (s *Session) enqueueCollective(i int, on handle) error {
	if s.onHost(i) {
		return s.exchange(i)
	}
	k := &s.p.Steps[i].Collective
	c := s.team.rings[fmt.Sprint(k.Group(s.team.comm.Rank()))]
	if k.More == nil {
		return s.enqueueValue(c, k, k.From, k.To, on)
	}
	return c.Grouped(func() error {
		for _, v := range k.Values() {
			if err := s.enqueueValue(c, k, v.From, v.To, on); err != nil {
				return err
			}
		}
		return nil
	})
}

// enqueueValue adds what a collective does with one of its values to a stream.
func (s *Session) enqueueValue(c deviceComm, k *artifact.Collective, source, target int, on handle) error {
	rank := s.team.comm.Rank()
	from, to := &s.p.Buffers[source], &s.p.Buffers[target]
	n, _ := from.Len()
	m, _ := to.Len()
	in, out, stream, elem := uintptr(s.address(from)), uintptr(s.address(to)), uintptr(on), from.Elem
	switch k.Op {
	case artifact.AllReduce:
		return c.AllReduce(collective.Reduction(k.Reduction), elem, in, out, n, stream)
	case artifact.ReduceScatter:
		return c.ReduceScatter(collective.Reduction(k.Reduction), elem, in, out, m, stream)
	case artifact.AllGather:
		return c.AllGather(elem, in, out, n, stream)
	case artifact.AllToAll:
		return c.AllToAll(elem, in, out, n/int64(k.Len()), stream)
	}
	gives, gets := k.Peers(rank)
	if gets < 0 && to.Size() > 0 {
		if err := s.a.check("cuMemsetD8Async", s.a.Fill(s.address(to), 0, uint64(to.Size()), on)); err != nil {
			return err
		}
	}
	return c.Permute(gives, gets, elem, in, out, n, stream)
}

// failing is an error that NCCL has found while the device works.
func (s *Session) failing() error {
	if s.team == nil {
		return nil
	}
	for _, c := range s.team.rings {
		if err := c.Err(); err != nil {
			s.lost = true
			return errors.Join(err, s.abandon())
		}
	}
	return nil
}

// abandon ends the collectives that wait for other devices.
func (s *Session) abandon() error {
	if s.team == nil {
		return nil
	}
	var errs []error
	for _, c := range s.team.rings {
		errs = append(errs, c.Abort())
	}
	return errors.Join(errs...)
}

// disconnect frees the communicators.
func (s *Session) disconnect() error {
	if s.team == nil {
		return nil
	}
	var errs []error
	for _, c := range s.team.rings {
		errs = append(errs, c.Close())
	}
	s.team.rings = nil
	return errors.Join(errs...)
}
