// Package collective has the collectives that a partitioned program runs on: among
// goroutines of one process (Local), and among processes over an MPI library that is
// opened at run time (Open). Package nccl below it has those between GPUs.
//
// The rank that finds out why a run cannot go on gets the reason as its error; all
// others get an *Ended with the same reason, so that a run has one report. A process
// whose run failed reports the error unless it is an *Ended, and then calls Abort, or
// exits with a status other than zero, by which the launcher ends the other processes.
package collective

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmir/gpu/artifact"
)

// Comm is the membership of one rank in all ranks of a run. Its methods must be called
// from one goroutine at a time, except for Abort.
//
// A group lists the ranks that take part in ascending order, which is that of parts;
// each of them calls with the same group. Buffers hold elements as devices do
// (artifact.ElemBytes), little-endian; parts are equal and contiguous. Buffers of one call
// do not overlap.
type Comm interface {
	Rank() int
	Size() int
	// AllReduce combines the ranks' buffers in place. Floating-point types below f32 are
	// combined in f32 and rounded once. Integers wrap.
	AllReduce(ctx context.Context, group []int, how Reduction, elem string, buf []byte) error
	// ReduceScatter combines as AllReduce does; each rank gets its part in out.
	ReduceScatter(ctx context.Context, group []int, how Reduction, elem string, in, out []byte) error
	// AllGather fills out with the parts of all ranks.
	AllGather(ctx context.Context, group []int, elem string, in, out []byte) error
	// AllToAll sends part i of in to group[i].
	AllToAll(ctx context.Context, group []int, elem string, in, out []byte) error
	// Permute sends in to the rank to and fills out from the rank from, which may be the own
	// one. -1 is none: nothing is sent, or out is zeros. Both buffers are of one size, which is
	// that of all ranks that exchange.
	Permute(ctx context.Context, to, from int, in, out []byte) error
	// Send hands buf, which the caller may change afterwards, to the rank to and does not wait for
	// it. Recv waits for what the rank from has sent with the same tag and fills buf, whose size is
	// that of what was sent. Between two ranks, what has one tag arrives in the order in which it was
	// sent. A rank sends nothing to itself. Tags are not negative.
	Send(ctx context.Context, to, tag int, buf []byte) error
	Recv(ctx context.Context, from, tag int, buf []byte) error
	// Barrier returns when all ranks have called it.
	Barrier(ctx context.Context) error
	// Broadcast fills buf from that of the rank root.
	Broadcast(ctx context.Context, root int, buf []byte) error
	// Abort ends the run of every rank with this reason. Over MPI it ends the processes, this
	// one too, and does not return.
	Abort(reason error)
	// Close leaves the run. It waits for the other ranks where the engine needs that; after a
	// failure it returns the failure and does not wait.
	Close() error
}

// Everyone is the group of all ranks.
func Everyone(c Comm) []int {
	all := make([]int, c.Size())
	for i := range all {
		all[i] = i
	}
	return all
}

// Reduction is how elements are combined.
type Reduction string

// The reductions. A maximum or minimum with a NaN is NaN, and +0 is above -0. Add, Max and
// Or are the same for i1, and so are Mul, Min and And.
const (
	Add Reduction = "add"
	Mul Reduction = "mul"
	Max Reduction = "max"
	Min Reduction = "min"
	And Reduction = "and" // of bits
	Or  Reduction = "or"
)

// Ended is the error of the ranks whose run another rank ended, which reports why.
type Ended struct {
	Rank   int // the rank that reports
	Reason error
	remote bool // that rank is another process
}

// Error is the reason.
func (e *Ended) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e *Ended) Unwrap() error { return e.Reason }

// The calls, as diagnostics name them.
const (
	opAllReduce     = "all_reduce"
	opReduceScatter = "reduce_scatter"
	opAllGather     = "all_gather"
	opAllToAll      = "all_to_all"
	opPermute       = "collective_permute"
	opBarrier       = "barrier"
	opBroadcast     = "broadcast"
	opSend          = "send"
	opRecv          = "recv"
)

// request is one call of one rank.
type request struct {
	op       string
	group    []int // nil for all ranks; not of a permute
	how      Reduction
	elem     string
	in, out  []byte // the same buffer where the call is in place
	to, from int    // of a permute, a send (to) or a recv (from)
	tag      int    // of a send or a recv
	root     int    // of a broadcast
}

// String is all that ranks must agree on; of a permute, what they exchange.
func (r *request) String() string {
	switch r.op {
	case opBarrier:
		return r.op
	case opBroadcast:
		return fmt.Sprintf("%s of %d bytes from rank %d", r.op, len(r.out), r.root)
	case opPermute:
		return fmt.Sprintf("%s of %d bytes to %s from %s", r.op, len(r.in), place(r.to), place(r.from))
	case opSend:
		return fmt.Sprintf("%s of %d bytes to rank %d with tag %d", r.op, len(r.in), r.to, r.tag)
	case opRecv:
		return fmt.Sprintf("%s of %d bytes from rank %d with tag %d", r.op, len(r.out), r.from, r.tag)
	}
	how := string(r.how)
	if how != "" {
		how += " "
	}
	return fmt.Sprintf("%s %s%s of %d bytes on ranks %s", r.op, how, r.elem, len(r.in), list(r.group))
}

func place(rank int) string {
	if rank < 0 {
		return "none"
	}
	return fmt.Sprintf("rank %d", rank)
}

// list writes ranks as "0, 1, 4".
func list(ranks []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ", "), "[]")
}

// includes reports whether the rank takes part in the call.
func (r *request) includes(rank int) bool {
	switch r.op {
	case opPermute:
		return r.to == rank || r.from == rank
	case opSend:
		return r.to == rank
	case opRecv:
		return r.from == rank
	}
	return r.group == nil || slices.Contains(r.group, rank)
}

// meets reports whether the rank must make the same call for this one to return. What a recv waits
// for is sent between other calls.
func (r *request) meets(rank int) bool { return r.op != opRecv && r.includes(rank) }

// members are the ranks of a call that is no permute.
func (r *request) members(size int) []int {
	if r.group != nil {
		return r.group
	}
	all := make([]int, size)
	for i := range all {
		all[i] = i
	}
	return all
}

// check is why a rank must not make the call.
func (r *request) check(rank, size int) error {
	switch r.op {
	case opBarrier:
		return nil
	case opBroadcast:
		if r.root < 0 || r.root >= size {
			return fmt.Errorf("there is no rank %d to broadcast from: the run has %d ranks", r.root, size)
		}
		return nil
	case opPermute:
		return r.checkPermute(rank, size)
	case opSend:
		return r.checkPoint(r.to, rank, size)
	case opRecv:
		return r.checkPoint(r.from, rank, size)
	}
	for i, m := range r.group {
		if m < 0 || m >= size || i > 0 && m <= r.group[i-1] {
			return fmt.Errorf("the group %v must list ranks from 0 to %d in ascending order", r.group, size-1)
		}
	}
	if !slices.Contains(r.group, rank) {
		return fmt.Errorf("rank %d is not in the group %v that it calls with", rank, r.group)
	}
	n, ok := artifact.ElemBytes(r.elem)
	if !ok {
		return fmt.Errorf("buffers do not hold elements of %q", r.elem)
	}
	small, large, parts := r.in, r.out, len(r.group)
	switch r.op {
	case opReduceScatter:
		small, large = r.out, r.in
	case opAllReduce:
		parts = 1
	case opAllToAll:
		small = small[:len(small)/parts]
	}
	if len(large) != parts*len(small) || int64(len(small))%n != 0 || r.op == opAllToAll && len(r.in) != len(r.out) {
		return fmt.Errorf("buffers of %d and %d bytes do not have %d equal parts of %s", len(r.in), len(r.out), parts, r.elem)
	}
	if r.op != opAllReduce && r.op != opReduceScatter {
		return nil
	}
	return r.how.check(r.elem)
}

func (r *request) checkPermute(rank, size int) error {
	for _, peer := range []int{r.to, r.from} {
		if peer < -1 || peer >= size {
			return fmt.Errorf("there is no rank %d to exchange with: the run has %d ranks", peer, size)
		}
	}
	if (r.to == rank) != (r.from == rank) {
		return fmt.Errorf("rank %d must both send to itself and receive from itself, or neither", rank)
	}
	if len(r.in) != len(r.out) {
		return fmt.Errorf("%d bytes to send and %d to receive: both must be of one size", len(r.in), len(r.out))
	}
	return nil
}

// checkPoint checks a send to, or a recv from, peer.
func (r *request) checkPoint(peer, rank, size int) error {
	switch {
	case peer < 0 || peer >= size:
		return fmt.Errorf("there is no rank %d: the run has %d ranks", peer, size)
	case peer == rank:
		return fmt.Errorf("rank %d sends nothing to itself", rank)
	case r.tag < 0:
		return fmt.Errorf("the tag %d is negative", r.tag)
	}
	return nil
}

// check is why elements cannot be combined so.
func (how Reduction) check(elem string) error {
	switch how {
	case Add, Mul, Max, Min:
		return nil
	case And, Or:
		if isFloat(elem) {
			return fmt.Errorf("the reduction %q is of integers, not of %s", how, elem)
		}
		return nil
	}
	return fmt.Errorf("there is no reduction %q", how)
}

// member has the methods of Comm that end in one call of an engine.
type member struct {
	rank, size int
	do         func(ctx context.Context, r *request) error
}

func (m *member) Rank() int { return m.rank }
func (m *member) Size() int { return m.size }

func (m *member) call(ctx context.Context, r *request) error {
	if err := r.check(m.rank, m.size); err != nil {
		return fmt.Errorf("rank %d: %s: %w", m.rank, r.op, err)
	}
	return m.do(ctx, r)
}

func (m *member) AllReduce(ctx context.Context, group []int, how Reduction, elem string, buf []byte) error {
	return m.call(ctx, &request{op: opAllReduce, group: group, how: how, elem: elem, in: buf, out: buf})
}

func (m *member) ReduceScatter(ctx context.Context, group []int, how Reduction, elem string, in, out []byte) error {
	return m.call(ctx, &request{op: opReduceScatter, group: group, how: how, elem: elem, in: in, out: out})
}

func (m *member) AllGather(ctx context.Context, group []int, elem string, in, out []byte) error {
	return m.call(ctx, &request{op: opAllGather, group: group, elem: elem, in: in, out: out})
}

func (m *member) AllToAll(ctx context.Context, group []int, elem string, in, out []byte) error {
	return m.call(ctx, &request{op: opAllToAll, group: group, elem: elem, in: in, out: out})
}

func (m *member) Permute(ctx context.Context, to, from int, in, out []byte) error {
	return m.call(ctx, &request{op: opPermute, to: to, from: from, in: in, out: out})
}

func (m *member) Send(ctx context.Context, to, tag int, buf []byte) error {
	return m.call(ctx, &request{op: opSend, to: to, tag: tag, in: buf})
}

func (m *member) Recv(ctx context.Context, from, tag int, buf []byte) error {
	return m.call(ctx, &request{op: opRecv, from: from, tag: tag, out: buf})
}

func (m *member) Barrier(ctx context.Context) error { return m.call(ctx, &request{op: opBarrier}) }

func (m *member) Broadcast(ctx context.Context, root int, buf []byte) error {
	return m.call(ctx, &request{op: opBroadcast, root: root, in: buf, out: buf})
}
