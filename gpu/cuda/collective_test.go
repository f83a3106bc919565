package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/collective"
)

// ring is NCCL on fakes: a collective is an operation of a stream, like a kernel.
type ring struct {
	f      *fake
	comm   collective.Comm
	group  []int
	err    error
	closed bool
	groups int
}

func (r *ring) AllReduce(how collective.Reduction, elem string, in, out uintptr, count int64, stream uintptr) error {
	r.f.add(handle(stream), "all-reduce", func() {
		b := r.f.bytes(deviceVA(out), uint64(count)*4)
		copy(b, r.f.bytes(deviceVA(in), uint64(count)*4))
		if err := r.comm.AllReduce(context.Background(), r.group, how, elem, b); err != nil {
			r.f.problem("%v", err)
		}
	})
	return nil
}

func (r *ring) ReduceScatter(collective.Reduction, string, uintptr, uintptr, int64, uintptr) error {
	return errors.ErrUnsupported
}

func (r *ring) AllGather(string, uintptr, uintptr, int64, uintptr) error {
	return errors.ErrUnsupported
}

func (r *ring) AllToAll(string, uintptr, uintptr, int64, uintptr) error { return errors.ErrUnsupported }

func (r *ring) Permute(int, int, string, uintptr, uintptr, int64, uintptr) error {
	return errors.ErrUnsupported
}

func (r *ring) Grouped(calls func() error) error {
	r.groups++
	return calls()
}
func (r *ring) Err() error   { return r.err }
func (r *ring) Abort() error { r.closed = true; return nil }
func (r *ring) Close() error { r.closed = true; return nil }

// TestCollectives: two devices add their values between graphs, by the host, or within one, by
// NCCL, one or two as one, in runs, steps and measured runs.
func TestCollectives(t *testing.T) {
	for k := range 4 {
		onDevice, together := k%2 == 1, k >= 2
		p, z := artifacttest.Divided(), -1.0 // of %z
		if together {
			p, z = artifacttest.Bucketed(), -2
		}
		comms := collective.Local(2)
		var both sync.WaitGroup
		for rank, comm := range comms {
			f := newFake(t)
			s := load(t, f, p)
			if _, err := s.Run(t.Context(), power(0, 0)[:1]); err == nil || !strings.Contains(err.Error(), "2 devices together") {
				t.Errorf("alone: %v", err)
			}
			both.Go(func() {
				var r *ring
				if onDevice {
					s.team = &team{comm: comm, ctx: t.Context()}
					err := s.connect(func(group []int) (deviceComm, error) {
						r = &ring{f: f, comm: comm, group: group}
						return r, nil
					})
					if err != nil {
						t.Error(err)
					}
				} else if err := s.Join(t.Context(), comm); err != nil {
					t.Error(err)
				}
				check := func(what string, outputs [][]byte, err error) {
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
					total := 6.0 * artifacttest.N * (artifacttest.N - 1) / 2
					for i, v := range floats(outputs[0]) {
						if want := float32(6*float64(i) + z*float64(i) + total); math.Abs(float64(v-want)) > 1e-6*total {
							t.Errorf("%s, rank %d: element %d is %v, want %v", what, rank, i, v, want)
							return
						}
					}
				}
				in := power(0, 0)[:1]
				outputs, err := s.Run(t.Context(), in)
				check("run", outputs, err)
				outputs, err = s.Step(t.Context(), in)
				check("step", outputs, err)
				if _, err := s.Time(t.Context(), in, 2, false); err != nil {
					t.Error(err)
				}
				if want := map[bool]int{false: 2, true: 1}[onDevice]; len(graphs(s.course)) != want {
					t.Errorf("%d graphs, want %d", len(graphs(s.course)), want)
				}
				if onDevice && (r.groups > 0) != together {
					t.Errorf("%d times values were exchanged as one", r.groups)
				}
				if err := s.Close(); err != nil || onDevice && !r.closed || f.left() != "" {
					t.Errorf("closed: %v; left %s", err, f.left())
				}
			})
		}
		both.Wait()
	}
}

// TestStages: what a device of one stage computes, one of the next gets, by the host with NCCL or without.
func TestStages(t *testing.T) {
	p := artifacttest.InStages()
	for _, onDevice := range []bool{false, true} {
		var all sync.WaitGroup
		for rank, comm := range collective.Local(4) {
			f := newFake(t)
			s := load(t, f, p.Of(rank).Program)
			all.Go(func() {
				if err := s.Join(t.Context(), comm); err != nil {
					t.Error(err)
				}
				if onDevice {
					s.team.rings = map[string]deviceComm{}
				}
				var x []byte // another one for each pair of devices
				for i := range artifacttest.N {
					x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(i+rank/2)))
				}
				in := [][]byte{x}[:len(p.Of(rank).Program.Inputs)]
				for range 2 {
					outputs, err := s.Run(t.Context(), in)
					if err != nil {
						t.Errorf("rank %d: %v", rank, err)
						return
					}
					for i, v := range floats(outputs[0]) {
						if want := 3 * float32(i+rank/2); v != want {
							t.Errorf("rank %d: element %d is %v, want %v", rank, i, v, want)
							return
						}
					}
				}
				if err := s.Close(); err != nil || f.left() != "" {
					t.Errorf("closed: %v; left %s", err, f.left())
				}
			})
		}
		all.Wait()
	}
}

// TestCollectiveFailures: a device that hangs since another one failed ends with what NCCL
// reports; a program is refused on another number of devices.
func TestCollectiveFailures(t *testing.T) {
	f := newFake(t)
	s := load(t, f, artifacttest.Divided())
	if err := s.Join(t.Context(), collective.Local(3)[0]); err == nil || !strings.Contains(err.Error(), "2 devices") {
		t.Errorf("three devices: %v", err)
	}
	if err := s.Join(t.Context(), nil); err == nil {
		t.Error("it is connected with nothing")
	}
	s.team = &team{comm: collective.Local(2)[0], ctx: t.Context()}
	r := &ring{f: f, comm: s.team.comm, err: errors.New("rank 1 has ended")}
	if err := s.connect(func([]int) (deviceComm, error) { return r, nil }); err != nil {
		t.Fatal(err)
	}
	f.hangs = true
	if _, err := s.Run(t.Context(), power(0, 0)[:1]); !errors.Is(err, r.err) || !r.closed || !s.Lost() {
		t.Errorf("error %v, aborted: %v", err, r.closed)
	}
}
