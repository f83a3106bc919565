package collective

import (
	"context"
	"time"
	"unsafe"
)

// at pins b and is its address.
func (m *mpiMemory) at(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	m.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// started is a call of the library that does not wait.
type started struct {
	name string
	do   func(mem *mpiMemory, q *mpiHandle) int32 // pins its buffers in mem
}

// How long the library is polled without anything else, how long without a pause, and the
// pauses after that.
const (
	pollBusy  = 20 * time.Microsecond
	pollYield = 5 * time.Millisecond
	pollPause = time.Millisecond
)

// finish starts calls of the library and waits for all of them.
func (c *mpiComm) finish(ctx context.Context, call *mpiCall, steps ...started) error {
	mem := &mpiMemory{}
	c.busy = call
	err := c.await(ctx, call, mem, steps)
	c.busy = nil
	if err != nil {
		keep(mem)
	} else {
		mem.Unpin()
	}
	return err
}

func (c *mpiComm) await(ctx context.Context, call *mpiCall, mem *mpiMemory, steps []started) error {
	open := make([]mpiHandle, len(steps))
	for i, s := range steps {
		if err := c.lib.check(s.name, s.do(mem, &open[i])); err != nil {
			return c.broken(call, err)
		}
	}
	name := steps[len(steps)-1].name
	ended := func() (bool, error) {
		for len(open) > 0 {
			done, code := c.lib.Test(&open[0])
			if err := c.lib.check(name, code); err != nil {
				return true, c.broken(call, err)
			}
			if !done {
				return false, nil
			}
			open = open[1:]
		}
		return true, nil
	}
	for begin := time.Now(); ; {
		if done, err := ended(); done {
			return err
		}
		waited := time.Since(begin)
		if waited < pollBusy {
			continue
		}
		if c.control.poll(); c.control.over != nil {
			return c.control.over
		}
		if f := c.aborted.Load(); f != nil {
			c.control.fail(c.others(), c.rank, f.Error())
			return f.error
		}
		if why := call.over(ctx); why != nil {
			return c.gaveUp(why, call, ended)
		}
		if waited < pollYield {
			yield()
		} else {
			time.Sleep(pollPause)
		}
	}
}

// start makes the calls of the library for a request.
func (c *mpiComm) start(ctx context.Context, call *mpiCall) error {
	m, r := c.lib, call.request
	c.progress()
	switch r.op {
	case opPermute:
		return c.permute(ctx, call)
	case opSend:
		return c.post(call)
	case opRecv:
		return chunks(len(r.out), c.limit, func(lo, hi int) error {
			return c.finish(ctx, call, started{"MPI_Irecv", func(mem *mpiMemory, q *mpiHandle) int32 {
				return m.IReceive(mem.at(r.out[lo:hi]), int32(hi-lo), m.bytes, int32(r.from), int32(tagPoint+r.tag%points), m.world, q)
			}})
		})
	}
	g, err := c.group(ctx, call)
	if err != nil {
		return err
	}
	switch r.op {
	case opBarrier:
		return c.finish(ctx, call, started{"MPI_Ibarrier", func(_ *mpiMemory, q *mpiHandle) int32 { return m.IBarrier(g.comm, q) }})
	case opBroadcast:
		return chunks(len(r.out), c.limit, func(lo, hi int) error {
			return c.finish(ctx, call, started{"MPI_Ibcast", func(mem *mpiMemory, q *mpiHandle) int32 {
				return m.IBroadcast(mem.at(r.out[lo:hi]), int32(hi-lo), m.bytes, int32(r.root), g.comm, q)
			}})
		})
	case opAllReduce:
		w := wireOf(r.how, r.elem)
		return chunks(len(r.out)/width(r.elem), c.most(w), func(lo, hi int) error {
			part := r.out[lo*width(r.elem) : hi*width(r.elem)]
			buf := w.encode(part)
			err := c.finish(ctx, call, started{"MPI_Iallreduce", func(mem *mpiMemory, q *mpiHandle) int32 {
				return m.IAllReduce(m.inPlace, mem.at(buf), w.count(buf), m.types[w.elem], m.ops[w.how], g.comm, q)
			}})
			if err == nil {
				w.decode(buf, part)
			}
			return err
		})
	case opReduceScatter:
		return c.reduceScatter(ctx, call, g)
	case opAllGather:
		return c.parted(call, len(r.in), func(from, to []byte) error {
			return c.finish(ctx, call, started{"MPI_Iallgather", func(mem *mpiMemory, q *mpiHandle) int32 {
				n := int32(len(from))
				return m.IAllGather(mem.at(from), n, m.bytes, mem.at(to), n, m.bytes, g.comm, q)
			}})
		})
	default:
		parts := len(r.group)
		return c.parted(call, len(r.in)/parts, func(from, to []byte) error {
			return c.finish(ctx, call, started{"MPI_Ialltoall", func(mem *mpiMemory, q *mpiHandle) int32 {
				n := int32(len(from) / parts)
				return m.IAllToAll(mem.at(from), n, m.bytes, mem.at(to), n, m.bytes, g.comm, q)
			}})
		})
	}
}

// chunks splits n elements into ranges of most of them. There is one at least, so that ranks
// meet even over nothing.
func chunks(n, most int, f func(lo, hi int) error) error {
	for lo := 0; ; lo += most {
		if err := f(lo, min(lo+most, n)); err != nil || lo+most >= n {
			return err
		}
	}
}

// most is how many elements are reduced at a time: what the library takes, or fewer that are
// converted, for the memory that this needs.
func (c *mpiComm) most(w *wire) int {
	if w.read == nil {
		return c.limit
	}
	return min(c.limit, 1<<24)
}

// parted does an all-gather or all-to-all with parts of n bytes, of larger ones piece by
// piece.
func (c *mpiComm) parted(call *mpiCall, n int, do func(from, to []byte) error) error {
	if n <= c.limit {
		return do(call.in, call.out)
	}
	return chunks(n, c.limit, func(lo, hi int) error {
		to := make([]byte, len(call.out)/n*(hi-lo))
		if err := do(pieces(call.in, n, lo, hi), to); err != nil {
			return err
		}
		for i := range len(call.out) / n {
			copy(call.out[i*n+lo:i*n+hi], to[i*(hi-lo):])
		}
		return nil
	})
}

// pieces are the bytes lo to hi of each part of n bytes.
func pieces(b []byte, n, lo, hi int) []byte {
	out := make([]byte, 0, len(b)/n*(hi-lo))
	for at := 0; at < len(b); at += n {
		out = append(out, b[at+lo:at+hi]...)
	}
	return out
}

func (c *mpiComm) reduceScatter(ctx context.Context, call *mpiCall, g *mpiGroup) error {
	m, w, unit := c.lib, wireOf(call.how, call.elem), width(call.elem)
	reduce := func(from, to []byte) error {
		return c.finish(ctx, call, started{"MPI_Ireduce_scatter_block", func(mem *mpiMemory, q *mpiHandle) int32 {
			return m.IReduceBlocks(mem.at(from), mem.at(to), int32(w.count(to)), m.types[w.elem], m.ops[w.how], g.comm, q)
		}})
	}
	return chunks(len(call.out)/unit, c.most(w), func(lo, hi int) error {
		from, part := call.in, call.out[lo*unit:hi*unit]
		if len(part) < len(call.out) {
			from = pieces(call.in, len(call.out), lo*unit, hi*unit)
		}
		to := part
		if w.read != nil {
			to = make([]byte, w.size(part))
		}
		err := reduce(w.encode(from), to)
		if err == nil {
			w.decode(to, part)
		}
		return err
	})
}

// permute exchanges messages. Ranks exchange the same sizes, so their chunks match.
func (c *mpiComm) permute(ctx context.Context, call *mpiCall) error {
	m := c.lib
	if call.from < 0 {
		clear(call.out)
	}
	if call.to == c.rank {
		copy(call.out, call.in)
		return nil
	}
	return chunks(len(call.in), c.limit, func(lo, hi int) error {
		var steps []started
		if call.from >= 0 {
			steps = append(steps, started{"MPI_Irecv", func(mem *mpiMemory, q *mpiHandle) int32 {
				return m.IReceive(mem.at(call.out[lo:hi]), int32(hi-lo), m.bytes, int32(call.from), tagPermute, m.world, q)
			}})
		}
		if call.to >= 0 {
			steps = append(steps, started{"MPI_Isend", func(mem *mpiMemory, q *mpiHandle) int32 {
				return m.ISend(mem.at(call.in[lo:hi]), int32(hi-lo), m.bytes, int32(call.to), tagPermute, m.world, q)
			}})
		}
		if steps == nil {
			return nil
		}
		return c.finish(ctx, call, steps...)
	})
}

// posting is a send that has started.
type posting struct {
	mem  mpiMemory
	open []*mpiHandle
}

// post starts a send of a copy of the buffer.
func (c *mpiComm) post(call *mpiCall) error {
	m, p := c.lib, &posting{}
	buf := append([]byte(nil), call.in...)
	c.posted = append(c.posted, p)
	if !c.pushing {
		c.pushing = true
		go c.push()
	}
	return chunks(len(buf), c.limit, func(lo, hi int) error {
		q := new(mpiHandle)
		code := m.ISend(p.mem.at(buf[lo:hi]), int32(hi-lo), m.bytes, int32(call.to), int32(tagPoint+call.tag%points), m.world, q)
		if err := m.check("MPI_Isend", code); err != nil {
			return c.broken(call, err)
		}
		p.open = append(p.open, q)
		return nil
	})
}

// push calls the library, which moves data in calls only, until all sends have ended.
func (c *mpiComm) push() {
	for again := true; again; {
		time.Sleep(pollPause)
		c.turn.Lock()
		if !c.closed.Load() {
			c.progress()
		}
		again = len(c.posted) > 0 && !c.closed.Load()
		c.pushing = again
		c.turn.Unlock()
	}
}

// progress lets go of the sends that have ended. One whose receiver has failed never does.
func (c *mpiComm) progress() {
	kept := c.posted[:0]
	for _, p := range c.posted {
		for len(p.open) > 0 {
			if done, code := c.lib.Test(p.open[0]); code != 0 || !done {
				break
			}
			p.open = p.open[1:]
		}
		if len(p.open) > 0 {
			kept = append(kept, p)
			continue
		}
		p.mem.Unpin()
	}
	clear(c.posted[len(kept):])
	c.posted = kept
}
