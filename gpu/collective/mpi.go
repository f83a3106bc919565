package collective

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mpiComm is the membership in a run over MPI. Who makes a call makes the library's calls of it, one
// goroutine at a time; the thread that has initialised the library is kept, and ends it. Collectives
// are started without waiting and polled, so that a time-out or the end of a context ends them. Calls
// that differ between ranks are found when they do not end; Open makes sure that all ranks run one
// program.
type mpiComm struct {
	member
	lib     *mpiLibrary
	jobs    chan func() // what the thread that has initialised the library calls
	timeout time.Duration
	limit   int // elements of one call of the library

	turn sync.Mutex // held by who calls the library, for what follows
	// What is held by the turn.
	control mpiControl
	posted  []*posting // sends that may not have ended
	pushing bool       // a goroutine sees to them
	groups  map[string]*mpiGroup
	busy    *mpiCall // for answers to other ranks

	failed  atomic.Pointer[failure]
	aborted atomic.Pointer[failure] // why this rank has called Abort
	closed  atomic.Bool
}

// failure is why the run ended, for this rank.
type failure struct{ error }

// mpiGroup is a communicator and how many calls were made on it.
type mpiGroup struct {
	comm  mpiHandle
	calls int
}

// mpiCall is a call that waits for other ranks.
type mpiCall struct {
	*request
	number int       // among those of its group; not of a permute
	until  time.Time // not later; zero: no end
}

// over is why the call must end now: its context has ended, or its time.
func (c *mpiCall) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil || c.until.IsZero() || time.Now().Before(c.until) {
		return err
	}
	return context.DeadlineExceeded
}

// String is the same on all ranks of a collective.
func (c *mpiCall) String() string {
	return fmt.Sprintf("%s (number %d of its group)", c.request, c.number)
}

// work makes calls of the library on a thread of its own. It ends with the process: a thread that
// has initialised MPI must not exit before.
func (c *mpiComm) work() {
	runtime.LockOSThread()
	for job := range c.jobs {
		c.turn.Lock()
		job()
		c.turn.Unlock()
	}
}

// on runs f on the thread that initialises the library, and returns its error. If the library hangs the end of ctx
// does not stop it; then on returns and leaves f behind.
func (c *mpiComm) on(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case c.jobs <- func() { done <- f() }:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openMPIComm initialises the library.
func openMPIComm(ctx context.Context, l Launch, timeout time.Duration) (*mpiComm, error) {
	lib, err := openLibrary(l)
	if err != nil {
		return nil, err
	}
	c := &mpiComm{lib: lib, jobs: make(chan func()), timeout: timeout, limit: 1 << 30, groups: map[string]*mpiGroup{}}
	c.member = member{rank: l.Rank, size: l.Size, do: c.run}
	go c.work()
	err = c.on(ctx, func() error { return c.init(l) })
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, fmt.Errorf("MPI did not start within the time given, since some of the %d ranks did not: %w", l.Size, err)
	}
	return c, err
}

func (c *mpiComm) init(l Launch) error {
	m := c.lib
	const serialized = 2 // any thread makes calls, one at a time
	var provided, rank, size int32
	if err := m.check("MPI_Init_thread", m.InitThread(0, 0, serialized, &provided)); err != nil {
		return err
	}
	if provided < serialized {
		return fmt.Errorf("the library of %s was built for one thread: install one that provides MPI_THREAD_SERIALIZED", l.By)
	}
	m.CommRank(m.world, &rank)
	m.CommSize(m.world, &size)
	if int(rank) != l.Rank || int(size) != l.Size {
		return fmt.Errorf("%s has started rank %d of %d, and MPI has rank %d of %d: start with the mpirun of the library that is installed", l.By, l.Rank, l.Size, rank, size)
	}
	m.OnError(m.world, m.returnErrors)
	c.groups[""] = &mpiGroup{comm: m.world}
	return c.control.start(c)
}

// run makes a call within the time given. After a failure every call fails.
func (c *mpiComm) run(ctx context.Context, r *request) error {
	call := &mpiCall{request: r}
	if c.timeout > 0 { // no context, whose timer takes as long as a small call
		call.until = time.Now().Add(c.timeout)
	}
	if c.closed.Load() {
		return fmt.Errorf("rank %d: %s after Close", c.rank, r)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if f := c.failed.Load(); f != nil {
		return f.error
	}
	var err error
	if errors.Is(ctx.Err(), context.Canceled) {
		err = c.broken(call, ctx.Err())
	} else { // a rank that was stopped until its time was over asks the others, as one does that has waited
		err = c.start(ctx, call)
	}
	if err != nil {
		c.failed.Store(&failure{err})
	}
	return err
}

// keep holds the memory of failed calls until the process ends: the library may still
// write to it, and a Pinner must not be collected before it is unpinned.
func keep(mem *mpiMemory) {
	keptMemory.Lock()
	defer keptMemory.Unlock()
	keptMemory.all = append(keptMemory.all, mem)
}

var keptMemory struct {
	sync.Mutex
	all []*mpiMemory
}

// mpiMemory pins what the library works on.
type mpiMemory struct{ runtime.Pinner }

// group is the communicator of a group. The first call on it makes it, after all members
// have reached it: MPI_Comm_create_group itself cannot be given up.
func (c *mpiComm) group(ctx context.Context, call *mpiCall) (*mpiGroup, error) {
	ranks := call.members(c.size)
	key := ""
	if len(ranks) < c.size {
		key = fmt.Sprint(ranks)
	}
	if g := c.groups[key]; g != nil {
		g.calls++
		call.number = g.calls
		return g, nil
	}
	call.number = 1
	if err := c.meet(ctx, call, ranks); err != nil {
		return nil, err
	}
	m := c.lib
	list := make([]int32, len(ranks))
	for i, r := range ranks {
		list[i] = int32(r)
	}
	var all, part mpiHandle
	g := &mpiGroup{calls: 1}
	for _, step := range []struct {
		call string
		do   func() int32
	}{
		{"MPI_Comm_group", func() int32 { return m.CommGroup(m.world, &all) }},
		{"MPI_Group_incl", func() int32 { return m.GroupOf(all, int32(len(list)), &list[0], &part) }},
		{"MPI_Comm_create_group", func() int32 { return m.CommMake(m.world, part, tagMake, &g.comm) }},
		{"MPI_Comm_set_errhandler", func() int32 { return m.OnError(g.comm, m.returnErrors) }},
		{"MPI_Group_free", func() int32 { return m.GroupFree(&part) }},
		{"MPI_Group_free", func() int32 { return m.GroupFree(&all) }},
	} {
		if err := m.check(step.call, step.do()); err != nil {
			return nil, c.broken(call, err)
		}
	}
	c.groups[key] = g
	return g, nil
}

// Tags of messages on the communicator of all ranks.
const (
	tagPermute = 1 + iota
	tagMeet
	tagMake
	tagPoint // the first of those of sends
)

// points is how many tags sends have: MPI guarantees tags up to 32767. What has the same one arrives
// in the order in which it was sent.
const points = 30000

// meet returns when all ranks of a group have called it: each tells the first one, which
// tells each.
func (c *mpiComm) meet(ctx context.Context, call *mpiCall, ranks []int) error {
	m := c.lib
	peers := ranks[1:]
	if c.rank != ranks[0] {
		peers = ranks[:1]
	}
	token := make([]byte, 1)
	receive := func(peer int) started {
		return started{"MPI_Irecv", func(mem *mpiMemory, q *mpiHandle) int32 {
			return m.IReceive(mem.at(token), 1, m.bytes, int32(peer), tagMeet, m.world, q)
		}}
	}
	send := func(peer int) started {
		return started{"MPI_Isend", func(mem *mpiMemory, q *mpiHandle) int32 {
			return m.ISend(mem.at(token), 1, m.bytes, int32(peer), tagMeet, m.world, q)
		}}
	}
	for _, peer := range peers {
		steps := []started{receive(peer)}
		if c.rank != ranks[0] {
			steps = []started{send(peer), receive(peer)}
		}
		if err := c.finish(ctx, call, steps...); err != nil {
			return err
		}
	}
	if c.rank == ranks[0] {
		for _, peer := range peers {
			if err := c.finish(ctx, call, send(peer)); err != nil {
				return err
			}
		}
	}
	return nil
}

// forward is the time in which the launcher can read what this process has printed: now and
// then mpirun of MPICH 4.0 loses output that comes just before MPI_Abort.
const forward = time.Second

// Abort ends the processes of all ranks. The other ranks get the reason if they are in a
// call.
func (c *mpiComm) Abort(reason error) {
	Hold(reason) // so that what was printed has been read
	c.aborted.CompareAndSwap(nil, &failure{fmt.Errorf("rank %d: %w", c.rank, reason)})
	c.jobs <- func() { // a call that waits ends, since it sees aborted
		if c.failed.Load() == nil {
			c.control.fail(c.others(), c.rank, c.aborted.Load().Error())
		}
		c.lib.Abort(c.lib.world, 1)
	}
	select {}
}

// Direct is a Comm whose engine can be called without what surrounds it here, to measure
// what that costs.
type Direct interface {
	// DirectAllReduce makes blocking calls of MPI_Allreduce of all ranks on f32, one after the
	// other, and is how long they took. They cannot be interrupted.
	DirectAllReduce(buf []byte, calls int) (time.Duration, error)
}

// DirectAllReduce is described at Direct.
func (c *mpiComm) DirectAllReduce(buf []byte, calls int) (took time.Duration, err error) {
	err = c.on(context.Background(), func() error {
		if f := c.failed.Load(); f != nil {
			return f.error
		}
		mem := &mpiMemory{}
		defer mem.Unpin()
		m, at := c.lib, mem.at(buf)
		begin := time.Now()
		for range calls {
			code := m.AllReduce(m.inPlace, at, int32(len(buf)/4), m.types["f32"], m.ops[Add], m.world)
			if err := m.check("MPI_Allreduce", code); err != nil {
				return err
			}
		}
		took = time.Since(begin)
		return nil
	})
	return took, err
}

// others are all ranks but this one.
func (c *mpiComm) others() []int {
	all := (&request{}).members(c.size)
	return slices.Delete(all, c.rank, c.rank+1)
}

// finalizeMost is how long the library may take to end, after all ranks have reached that.
const finalizeMost = time.Minute

// Close waits for all ranks and finalises MPI.
func (c *mpiComm) Close() error {
	if f := c.failed.Load(); f != nil {
		return f.error
	}
	if c.closed.Load() {
		return nil
	}
	if err := c.Barrier(context.Background()); err != nil {
		return err
	}
	c.closed.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), finalizeMost)
	defer cancel()
	err := c.on(ctx, func() error {
		for c.progress(); len(c.posted) > 0 && ctx.Err() == nil; c.progress() {
			time.Sleep(pollPause)
		}
		c.control.stop(c)
		return c.lib.check("MPI_Finalize", c.lib.Finalize())
	})
	if err != nil {
		return fmt.Errorf("rank %d: MPI did not end well: %w", c.rank, err)
	}
	return nil
}
