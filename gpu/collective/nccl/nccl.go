// Package nccl has collectives between GPUs by NCCL, which is opened at run time. They work on
// memory of devices, and are put on a CUDA stream like kernels: a call returns before the
// elements are there, and can be captured into a CUDA graph. NCCL sums f16 and bf16 in their
// own type between some of the ranks; where that matters, widen them first.
package nccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/dylib"
)

// uniqueID is ncclUniqueId, by which the ranks of a communicator find each other. It is
// passed by value.
type uniqueID struct{ internal [128]byte }

// result is ncclResult_t.
type result int32

const (
	success    result = 0
	inProgress result = 7
)

// api is the functions of NCCL that are called. Tests open a library of their own.
type api struct {
	ErrorString   func(r result) string                                                              `c:"ncclGetErrorString"`
	LastError     func(comm uintptr) string                                                          `c:"ncclGetLastError,optional"`
	GetUniqueID   func(id *uniqueID) result                                                          `c:"ncclGetUniqueId"`
	Init          func(comm *uintptr, ranks int32, id uniqueID, rank int32) result                   `c:"ncclCommInitRank"`
	Destroy       func(comm uintptr) result                                                          `c:"ncclCommDestroy"`
	Abort         func(comm uintptr) result                                                          `c:"ncclCommAbort"`
	AsyncError    func(comm uintptr, r *result) result                                               `c:"ncclCommGetAsyncError"`
	GroupStart    func() result                                                                      `c:"ncclGroupStart"`
	GroupEnd      func() result                                                                      `c:"ncclGroupEnd"`
	AllReduce     func(in, out uintptr, count uint64, elem, how int32, comm, stream uintptr) result  `c:"ncclAllReduce"`
	ReduceScatter func(in, out uintptr, count uint64, elem, how int32, comm, stream uintptr) result  `c:"ncclReduceScatter"`
	AllGather     func(in, out uintptr, count uint64, elem int32, comm, stream uintptr) result       `c:"ncclAllGather"`
	Broadcast     func(in, out uintptr, count uint64, elem, root int32, comm, stream uintptr) result `c:"ncclBroadcast"`
	Send          func(in uintptr, count uint64, elem, peer int32, comm, stream uintptr) result      `c:"ncclSend"`
	Receive       func(out uintptr, count uint64, elem, peer int32, comm, stream uintptr) result     `c:"ncclRecv"`
}

// Library is an open NCCL.
type Library struct{ api }

// Load opens NCCL, by its path or where the system's linker finds it.
func Load(path string) (*Library, error) {
	if path == "" {
		path = "libnccl.so.2"
	}
	lib, err := dylib.Open(path)
	if err != nil {
		return nil, fmt.Errorf("NCCL is missing, install libnccl2 of NVIDIA's repository, or the package nvidia-nccl-cu13 for Python and put its lib folder on LD_LIBRARY_PATH: %w", err)
	}
	l := &Library{}
	if err := lib.BindAll(&l.api); err != nil {
		return nil, fmt.Errorf("NCCL 2.7 or newer is needed: %w", err)
	}
	return l, nil
}

// Comm is the membership of one rank in a group of ranks with a GPU each. Counts are elements; of
// calls with parts those of a part. Its calls must be made with the rank's device current, by
// one goroutine at a time, except for Abort.
type Comm struct {
	lib    *Library
	group  []int // ranks of the run
	rank   int   // of the run
	handle uintptr
	over   atomic.Bool
}

// Join makes a communicator of a group, of which each rank calls it with the GPU that it uses
// current. host connects the processes. NCCL itself cannot be given up while it connects: ctx
// ends the wait for the other ranks before that.
func (l *Library) Join(ctx context.Context, host collective.Comm, group []int) (*Comm, error) {
	c := &Comm{lib: l, group: slices.Clone(group), rank: host.Rank()}
	at := slices.Index(group, host.Rank())
	if at < 0 {
		return nil, fmt.Errorf("rank %d is not in the group %v that it calls with", host.Rank(), group)
	}
	// A failure of the first rank reaches the others as an id that is missing.
	var id uniqueID
	var failed error
	mine := make([]byte, 1+len(id.internal))
	if at == 0 {
		failed = c.check("ncclGetUniqueId", l.GetUniqueID(&id))
		if failed == nil {
			mine[0] = 1
			copy(mine[1:], id.internal[:])
		}
	}
	all := make([]byte, len(group)*len(mine))
	if err := host.AllGather(ctx, group, "ui8", mine, all); err != nil {
		return nil, errors.Join(failed, err)
	}
	if failed != nil {
		return nil, failed
	}
	if all[0] == 0 {
		return nil, fmt.Errorf("rank %d got no id for NCCL from rank %d", c.rank, group[0])
	}
	copy(id.internal[:], all[1:])
	if err := c.check("ncclCommInitRank", l.Init(&c.handle, int32(len(group)), id, int32(at))); err != nil {
		return nil, err
	}
	return c, nil
}

// check is the error that a result stands for.
func (c *Comm) check(call string, r result) error {
	if r == success {
		return nil
	}
	text := c.lib.ErrorString(r)
	if c.lib.LastError != nil {
		if last := c.lib.LastError(c.handle); last != "" {
			text += ": " + last
		}
	}
	return fmt.Errorf("rank %d: %s: %s", c.rank, call, text)
}

// elems are the types that NCCL reduces, by MLIR's names.
var elems = map[string]int32{
	"i8": 0, "ui8": uint8s, "i32": 2, "ui32": 3, "i64": 4, "index": 4, "ui64": 5,
	"f16": 6, "f32": 7, "f64": 8, "bf16": 9, "f8E4M3FN": 10, "f8E5M2": 11, "i1": uint8s,
}

// uint8s is ncclUint8, as which elements are moved.
const uint8s = 1

var reductions = map[collective.Reduction]int32{
	collective.Add: 0, collective.Mul: 1, collective.Max: 2, collective.Min: 3,
}

// reduction is how NCCL combines elements of a type.
func reduction(how collective.Reduction, elem string) (kind, op int32, err error) {
	if elem == "i1" { // one of 0 and 1
		switch how {
		case collective.Add, collective.Or:
			how = collective.Max
		case collective.Mul, collective.And:
			how = collective.Min
		}
	}
	kind, ok := elems[elem]
	op, known := reductions[how]
	if !ok || !known {
		return 0, 0, fmt.Errorf("NCCL has no reduction %q of %s", how, elem)
	}
	return kind, op, nil
}

// sizeOf is the bytes of a number of elements.
func sizeOf(elem string, count int64) (uint64, error) {
	b := artifact.Buffer{Elem: elem, Shape: []int64{count}}
	if _, ok := artifact.ElemBytes(elem); !ok || count < 0 {
		return 0, fmt.Errorf("there are no %d elements of %q", count, elem)
	}
	return uint64(b.Size()), nil
}

// AllReduce combines in of all ranks; out may be in.
func (c *Comm) AllReduce(how collective.Reduction, elem string, in, out uintptr, count int64, stream uintptr) error {
	kind, op, err := reduction(how, elem)
	if err != nil {
		return c.refuse("ncclAllReduce", err)
	}
	return c.call("ncclAllReduce", func() result {
		return c.lib.AllReduce(in, out, uint64(count), kind, op, c.handle, stream)
	})
}

// ReduceScatter combines in of all ranks, and gives each its part of count elements.
func (c *Comm) ReduceScatter(how collective.Reduction, elem string, in, out uintptr, count int64, stream uintptr) error {
	kind, op, err := reduction(how, elem)
	if err != nil {
		return c.refuse("ncclReduceScatter", err)
	}
	return c.call("ncclReduceScatter", func() result {
		return c.lib.ReduceScatter(in, out, uint64(count), kind, op, c.handle, stream)
	})
}

// AllGather fills out with the parts of all ranks.
func (c *Comm) AllGather(elem string, in, out uintptr, count int64, stream uintptr) error {
	n, err := sizeOf(elem, count)
	if err != nil {
		return c.refuse("ncclAllGather", err)
	}
	return c.call("ncclAllGather", func() result { return c.lib.AllGather(in, out, n, uint8s, c.handle, stream) })
}

// Broadcast fills out from in of the rank root of the run.
func (c *Comm) Broadcast(root int, elem string, in, out uintptr, count int64, stream uintptr) error {
	n, err := sizeOf(elem, count)
	at := slices.Index(c.group, root)
	if err == nil && at < 0 {
		err = fmt.Errorf("rank %d is not in the group %v", root, c.group)
	}
	if err != nil {
		return c.refuse("ncclBroadcast", err)
	}
	return c.call("ncclBroadcast", func() result { return c.lib.Broadcast(in, out, n, uint8s, int32(at), c.handle, stream) })
}

// AllToAll sends part i of in to the i-th rank of the group.
func (c *Comm) AllToAll(elem string, in, out uintptr, count int64, stream uintptr) error {
	n, err := sizeOf(elem, count)
	if err != nil {
		return c.refuse("ncclSend", err)
	}
	return c.Grouped(func() error {
		for i := range c.group {
			at := uintptr(i) * uintptr(n)
			if err := c.send(i, in+at, n, stream); err != nil {
				return err
			}
			if err := c.receive(i, out+at, n, stream); err != nil {
				return err
			}
		}
		return nil
	})
}

// Permute sends in to the rank to of the run and fills out from the rank from; -1 is none, and
// then out stays as it is.
func (c *Comm) Permute(to, from int, elem string, in, out uintptr, count int64, stream uintptr) error {
	n, err := sizeOf(elem, count)
	toAt, fromAt := slices.Index(c.group, to), slices.Index(c.group, from)
	switch {
	case err != nil:
	case toAt < 0 && to != -1:
		err = fmt.Errorf("rank %d is not in the group %v", to, c.group)
	case fromAt < 0 && from != -1:
		err = fmt.Errorf("rank %d is not in the group %v", from, c.group)
	case (to == c.rank) != (from == c.rank):
		err = fmt.Errorf("rank %d must both send to itself and receive from itself, or neither", c.rank)
	}
	if err != nil {
		return c.refuse("ncclSend", err)
	}
	return c.Grouped(func() error {
		if to != -1 {
			if err := c.send(toAt, in, n, stream); err != nil {
				return err
			}
		}
		if from != -1 {
			return c.receive(fromAt, out, n, stream)
		}
		return nil
	})
}

func (c *Comm) send(peer int, in uintptr, n uint64, stream uintptr) error {
	return c.call("ncclSend", func() result { return c.lib.Send(in, n, uint8s, int32(peer), c.handle, stream) })
}

func (c *Comm) receive(peer int, out uintptr, n uint64, stream uintptr) error {
	return c.call("ncclRecv", func() result { return c.lib.Receive(out, n, uint8s, int32(peer), c.handle, stream) })
}

// Grouped makes calls that NCCL starts together: their latency is taken once. It keeps them apart by thread.
func (c *Comm) Grouped(calls func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.call("ncclGroupStart", c.lib.GroupStart); err != nil {
		return err
	}
	err := calls()
	end := c.call("ncclGroupEnd", c.lib.GroupEnd) // also after an error, or the thread stays in the group
	if err != nil {
		return err
	}
	return end
}

func (c *Comm) call(name string, f func() result) error {
	if c.over.Load() && name != "ncclGroupEnd" {
		return c.refuse(name, errors.New("the communicator is closed"))
	}
	return c.check(name, f())
}

func (c *Comm) refuse(call string, err error) error {
	return fmt.Errorf("rank %d: %s: %w", c.rank, call, err)
}

// Err is an error that has occurred on the device or in another rank since the calls
// returned. What waits for a stream asks for it, and calls Abort then.
func (c *Comm) Err() error {
	if c.over.Load() {
		return nil
	}
	var r result
	if err := c.check("ncclCommGetAsyncError", c.lib.AsyncError(c.handle, &r)); err != nil {
		return err
	}
	if r == inProgress {
		return nil
	}
	return c.check("a collective", r)
}

// Abort ends what the communicator does and frees it, without the other ranks.
func (c *Comm) Abort() error {
	if c.over.Swap(true) {
		return nil
	}
	return c.check("ncclCommAbort", c.lib.Abort(c.handle))
}

// Close frees the communicator. The work on its streams must have ended.
func (c *Comm) Close() error {
	if c.over.Swap(true) {
		return nil
	}
	return c.check("ncclCommDestroy", c.lib.Destroy(c.handle))
}
