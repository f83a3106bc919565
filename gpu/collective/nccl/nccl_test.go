package nccl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"dmir/gpu/collective"
	"dmir/gpu/dylib"
	"dmir/testkit/need"
)

// stream is the stream that the stand-in expects.
const stream = 0x5eed

// standIn is a library with NCCL's interface that works on the host, of testdata/nccl.c.
type standIn struct {
	*Library
	FailNext func(call string, rank int32, code result) `c:"fail_next"`
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	if runtime.GOOS == "windows" {
		need.OK(t, errors.New("the library is built for a Unix"))
	}
	cc := need.Tool(t, "cc", "apt-get install gcc")
	path := filepath.Join(t.TempDir(), "libnccl.so.2")
	if out, err := exec.Command(cc, "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", path, "testdata/nccl.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lib, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{Library: lib}
	raw, err := dylib.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.BindAll(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// onRanks runs f on n ranks with communicators of all of them, and returns their errors.
func (s *standIn) onRanks(t *testing.T, n int, f func(host collective.Comm, c *Comm) error) []error {
	errs := make([]error, n)
	all := make([]int, n)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = i
	}
	for i, host := range collective.Local(n) {
		wg.Go(func() {
			c, err := s.Join(t.Context(), host, all)
			if err == nil {
				err = errors.Join(f(host, c), c.Close())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errs
}

// pinned are addresses of Go's memory for C.
type pinned struct{ runtime.Pinner }

func (p *pinned) at(b []byte) uintptr {
	p.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// encode are small whole numbers of a type.
func encode(elem string, values ...int) (b []byte) {
	for _, v := range values {
		switch elem {
		case "f64":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
		case "f32":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case "bf16":
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
		case "i64", "ui64", "index":
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		case "i32", "ui32":
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		default:
			b = append(b, byte(v))
		}
	}
	return b
}

// values are the numbers of a rank, 2 for each of n parts.
func values(elem string, rank, n int) []int {
	all := make([]int, 2*n)
	for i := range all {
		all[i] = (rank*5+i*3)%4 + 1
		if elem == "i1" {
			all[i] %= 2
		}
	}
	return all
}

func combined(how collective.Reduction, elem string, n int) []int {
	sum := values(elem, 0, n)
	for rank := 1; rank < n; rank++ {
		for i, v := range values(elem, rank, n) {
			switch {
			case how == collective.Max || elem == "i1" && (how == collective.Add || how == collective.Or):
				sum[i] = max(sum[i], v)
			case how == collective.Min || elem == "i1":
				sum[i] = min(sum[i], v)
			case how == collective.Add:
				sum[i] += v
			default:
				sum[i] *= v
			}
		}
	}
	return sum
}

func TestReductions(t *testing.T) {
	s := newStandIn(t)
	for n := 1; n <= 4; n++ {
		err := errors.Join(s.onRanks(t, n, func(_ collective.Comm, c *Comm) error {
			for _, elem := range []string{"f64", "f32", "bf16", "i64", "index", "ui64", "i32", "ui32", "i8", "ui8", "i1"} {
				for _, how := range []collective.Reduction{"add", "mul", "max", "min", "and", "or"} {
					if (how == "and" || how == "or") && elem != "i1" {
						continue
					}
					if err := reduceCase(c, n, how, elem); err != nil {
						return fmt.Errorf("%d ranks: %s %s: %w", n, how, elem, err)
					}
				}
			}
			return nil
		})...)
		if err != nil {
			t.Error(err)
		}
	}
}

func reduceCase(c *Comm, n int, how collective.Reduction, elem string) error {
	var p pinned
	defer p.Unpin()
	in := encode(elem, values(elem, c.rank, n)...)
	want := encode(elem, combined(how, elem, n)...)
	part := len(want) / n
	out := make([]byte, part)
	if err := c.ReduceScatter(how, elem, p.at(in), p.at(out), 2, stream); err != nil {
		return err
	}
	if !bytes.Equal(out, want[c.rank*part:(c.rank+1)*part]) {
		return fmt.Errorf("reduce-scatter: %x, want a part of %x", out, want)
	}
	if err := c.AllReduce(how, elem, p.at(in), p.at(in), int64(2*n), stream); err != nil {
		return err
	}
	if !bytes.Equal(in, want) {
		return fmt.Errorf("all-reduce: %x, want %x", in, want)
	}
	return nil
}

func TestMoves(t *testing.T) {
	s := newStandIn(t)
	for n := 1; n <= 4; n++ {
		err := errors.Join(s.onRanks(t, n, func(_ collective.Comm, c *Comm) error {
			for _, part := range []struct {
				elem  string
				count int64
			}{{"f32", 1}, {"i16", 2}, {"i4", 8}, {"f8E5M2", 4}} {
				if err := moveCase(c, n, part.elem, part.count); err != nil {
					return fmt.Errorf("%d ranks: %s: %w", n, part.elem, err)
				}
			}
			return nil
		})...)
		if err != nil {
			t.Error(err)
		}
	}
}

// moveCase moves parts of 4 bytes.
func moveCase(c *Comm, n int, elem string, count int64) error {
	var p pinned
	defer p.Unpin()
	part := func(rank, i int) []byte { return []byte{byte(rank), byte(i), 'o', 'k'} }
	var own, gathered, turned []byte
	for i := range n {
		own = append(own, part(c.rank, i)...)
		gathered = append(gathered, part(i, 0)...)
		turned = append(turned, part(i, c.rank)...)
	}
	next, last := (c.rank+1)%n, (c.rank+n-1)%n
	up, down := next, last
	if next == 0 { // the chain's ends
		up = -1
	}
	if c.rank == 0 {
		down = -1
	}
	received, kept := part(last, 0), part(c.rank-1, 0)
	if down == -1 {
		kept = make([]byte, 4)
	}
	for _, move := range []struct {
		name string
		call func(in, out uintptr) error
		want []byte
	}{
		{"all-gather", func(in, out uintptr) error { return c.AllGather(elem, in, out, count, stream) }, gathered},
		{"all-to-all", func(in, out uintptr) error { return c.AllToAll(elem, in, out, count, stream) }, turned},
		{"ring", func(in, out uintptr) error { return c.Permute(next, last, elem, in, out, count, stream) }, received},
		{"chain", func(in, out uintptr) error { return c.Permute(up, down, elem, in, out, count, stream) }, kept},
		{"two as one", func(in, out uintptr) error {
			second := make([]byte, len(gathered))
			err := c.Grouped(func() error {
				return errors.Join(c.AllGather(elem, in, out, count, stream), c.AllGather(elem, in, p.at(second), count, stream))
			})
			if err == nil && !bytes.Equal(second, gathered) {
				err = fmt.Errorf("the second is %v, want %v", second, gathered)
			}
			return err
		}, gathered},
		{"broadcast", func(in, out uintptr) error { return c.Broadcast(n-1, elem, in, out, count, stream) }, part(n-1, 0)},
	} {
		out := make([]byte, len(move.want))
		if err := move.call(p.at(own), p.at(out)); err != nil {
			return fmt.Errorf("%s: %w", move.name, err)
		}
		if !bytes.Equal(out, move.want) {
			return fmt.Errorf("%s: %v, want %v", move.name, out, move.want)
		}
	}
	return nil
}

// Groups have communicators of their own, in which peers are still ranks of the run.
func TestGroups(t *testing.T) {
	s := newStandIn(t)
	err := errors.Join(s.onRanks(t, 4, func(host collective.Comm, c *Comm) error {
		group := []int{host.Rank() % 2, host.Rank()%2 + 2}
		part, err := s.Join(t.Context(), host, group)
		if err != nil {
			return err
		}
		var p pinned
		defer p.Unpin()
		other := group[1-slices.Index(group, host.Rank())]
		in, out := []byte{byte(host.Rank())}, []byte{99}
		if err := part.Permute(other, other, "ui8", p.at(in), p.at(out), 1, stream); err != nil {
			return err
		}
		if int(out[0]) != other {
			return fmt.Errorf("rank %d received %d, want %d", host.Rank(), out[0], other)
		}
		if err := part.Permute(1-host.Rank()%2, -1, "ui8", p.at(in), p.at(out), 1, stream); err == nil || !strings.Contains(err.Error(), "is not in the group") {
			return fmt.Errorf("a message out of the group: %v", err)
		}
		return part.Close()
	})...)
	if err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	reduce := func(how collective.Reduction, elem string) func(c *Comm) error {
		return func(c *Comm) error {
			var p pinned
			defer p.Unpin()
			b := make([]byte, 8)
			return c.AllReduce(how, elem, p.at(b), p.at(b), 1, stream)
		}
	}
	for _, c := range []struct {
		name, fail string
		code       result
		call       func(c *Comm) error
		want       string
	}{
		{"a call", "ncclAllReduce", 1, reduce("add", "f32"), "rank 0: ncclAllReduce: unhandled cuda error: injected in ncclAllReduce"},
		{"a message", "ncclSend", 2, func(c *Comm) error {
			var p pinned
			defer p.Unpin()
			b := make([]byte, 8)
			return c.Permute(0, 0, "i8", p.at(b), p.at(b), 4, stream)
		}, "rank 0: ncclSend: unhandled system error: injected in ncclSend"},
		{"the id", "ncclGetUniqueId", 3, nil, "rank 0: ncclGetUniqueId: internal error: injected"},
		{"the start", "ncclCommInitRank", 2, nil, "rank 0: ncclCommInitRank: unhandled system error: injected"},
		{"what another rank did", "async", 6, func(c *Comm) error { return c.Err() }, "rank 0: a collective: remote process exited or there was a network error"},
		{"an unknown code", "ncclAllReduce", 77, reduce("add", "f32"), "rank 0: ncclAllReduce: unknown result code"},
		{"a type", "", 0, reduce("add", "i16"), `rank 0: ncclAllReduce: NCCL has no reduction "add" of i16`},
		{"a reduction", "", 0, reduce("or", "i32"), `rank 0: ncclAllReduce: NCCL has no reduction "or" of i32`},
		{"no memory", "", 0, func(c *Comm) error { return c.AllReduce("add", "f32", 0, 0, 4, stream) }, "rank 0: ncclAllReduce: invalid argument: no memory"},
		{"another stream", "", 0, func(c *Comm) error { return c.AllGather("f32", 0, 0, 0, 1) }, "rank 0: ncclAllGather: invalid argument: not the stream"},
		{"no element type", "", 0, func(c *Comm) error { return c.AllGather("f7", 0, 0, 1, stream) }, `rank 0: ncclAllGather: there are no 1 elements of "f7"`},
		{"after the end", "", 0, func(c *Comm) error { return errors.Join(c.Abort(), reduce("add", "f32")(c), c.Err(), c.Abort()) }, "rank 0: ncclAllReduce: the communicator is closed"},
		{"it closes", "ncclCommDestroy", 1, func(c *Comm) error { return nil }, "rank 0: ncclCommDestroy: unhandled cuda error"},
		{"nothing", "", 0, reduce("add", "f32"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStandIn(t)
			if c.fail != "" {
				s.FailNext(c.fail, 0, c.code)
			}
			err := s.onRanks(t, 1, func(_ collective.Comm, comm *Comm) error { return c.call(comm) })[0]
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Ranks that make other calls get errors, and a rank that waits ends when it is aborted.
func TestRanksDiffer(t *testing.T) {
	s := newStandIn(t)
	b := make([]byte, 8)
	var p pinned
	defer p.Unpin()
	at := p.at(b)
	for _, err := range s.onRanks(t, 2, func(_ collective.Comm, c *Comm) error {
		return c.Broadcast(c.rank, "f32", at, at, 1, stream)
	}) {
		if err == nil || !strings.Contains(err.Error(), "ncclBroadcast: invalid argument") {
			t.Errorf("other roots: %v", err)
		}
	}
	for rank, err := range s.onRanks(t, 2, func(host collective.Comm, c *Comm) error {
		if c.rank == 1 {
			return host.Barrier(t.Context()) // makes no call
		}
		done := make(chan error)
		go func() { done <- c.Broadcast(0, "f32", at, at, 1, stream) }()
		err := errors.Join(c.Abort(), <-done)
		return errors.Join(err, host.Barrier(t.Context()))
	}) {
		if rank == 0 && err == nil || rank == 1 && err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "libnccl.so.2"))
	if err == nil || !strings.HasPrefix(err.Error(), "NCCL is missing, install") {
		t.Error(err)
	}
}
