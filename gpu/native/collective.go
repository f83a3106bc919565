package native

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"dmir/gpu/collective"
	"dmir/gpu/dylib"
)

// exchange is the collectives of one run, which C code asks for: at once, or in the background, in the order in which they are
// begun. One runs at a time, as the methods of a Comm require.
type exchange struct {
	ctx  context.Context
	n    *instance
	comm collective.Comm

	mu      sync.Mutex
	changed sync.Cond
	queue   []exchanged // begun, and not ended
	begun   int         // in all
	ended   int
	last    map[int32]int // of steps: the number of the last one begun, from 1
	over    bool          // the run has ended
	err     error         // of the first that failed
}

// exchanged is a collective and its values.
type exchanged struct {
	step   int32
	values []collective.Value
}

// exchanges are those of the runs in progress, by the number that C code has.
var exchanges struct {
	sync.Map
	last atomic.Uintptr
}

// callbacks are dmir_exchange, at once and in the background, and dmir_finish for all instances: a process has few callbacks.
var callbacks = sync.OnceValue(func() (c struct{ exchange, begin, finish uintptr }) {
	buffers := func(f func(*exchange, exchanged) bool) uintptr {
		return dylib.Callback(func(user uintptr, step int32, from unsafe.Pointer, fromBytes int64, to unsafe.Pointer, toBytes int64) int32 {
			return status(user, func(x *exchange) bool {
				return f(x, x.all(step, collective.Value{From: unsafe.Slice((*byte)(from), fromBytes), To: unsafe.Slice((*byte)(to), toBytes)}))
			})
		})
	}
	c.exchange = buffers((*exchange).run)
	c.begin = buffers((*exchange).begin)
	c.finish = dylib.Callback(func(user uintptr, step int32) int32 {
		return status(user, func(x *exchange) bool { return x.finish(step) })
	})
	return c
})

// all are the values of a step, whose first one C code has given.
func (x *exchange) all(step int32, first collective.Value) exchanged {
	e := exchanged{step, []collective.Value{first}}
	for i := range x.n.p.Steps[step].Collective.More {
		var from, to unsafe.Pointer
		var fromBytes, toBytes int64
		if x.n.lib.Exchanged(x.n.at, step, int32(i+1), &from, &fromBytes, &to, &toBytes) != statusOK {
			panic("a step of the program is none of its machine code")
		}
		e.values = append(e.values, collective.Value{From: unsafe.Slice((*byte)(from), fromBytes), To: unsafe.Slice((*byte)(to), toBytes)})
	}
	return e
}

// status is what C code gets of a call: 0, unless a collective has failed.
func status(user uintptr, f func(*exchange) bool) int32 {
	if x, ok := exchanges.Load(user); ok && f(x.(*exchange)) {
		return 0
	}
	return 1
}

// run runs a collective and reports whether it has succeeded. It is called with nothing in the background.
func (x *exchange) run(e exchanged) bool {
	err := collective.Step(x.ctx, x.comm, x.n.p, &x.n.p.Steps[e.step].Collective, e.values...)
	if err == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = collective.At(x.comm, x.n.p, int(e.step), err)
	}
	return false
}

// begin lets a collective run in the background. After one that has failed nothing does.
func (x *exchange) begin(e exchanged) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return false
	}
	if x.begun == 0 {
		go x.background()
	}
	x.begun++
	x.last[e.step] = x.begun
	x.queue = append(x.queue, e)
	x.changed.Broadcast()
	return true
}

// finish waits for the last collective of a step that was begun and those before it, -1: for all.
func (x *exchange) finish(step int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	number := x.begun
	if step >= 0 {
		number = x.last[step]
	}
	for x.ended < number && x.err == nil {
		x.changed.Wait()
	}
	for step < 0 && len(x.queue) > 0 { // one that still runs uses its buffers until the end
		x.changed.Wait()
	}
	return x.err == nil
}

// background runs what is begun until the run has ended.
func (x *exchange) background() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		for len(x.queue) == 0 && !x.over {
			x.changed.Wait()
		}
		if len(x.queue) == 0 {
			return
		}
		e, failed := x.queue[0], x.err != nil
		x.mu.Unlock()
		if !failed {
			x.run(e)
		}
		x.mu.Lock()
		x.queue = x.queue[1:]
		x.ended++
		x.changed.Broadcast()
	}
}

// join makes the instance run collectives with c until leave; a program for one device has
// none. failed is the error of a collective that ended the run.
func (n *instance) join(ctx context.Context) (leave func(), failed func() error) {
	if n.p.Divided == nil {
		return func() {}, func() error { return nil }
	}
	x := &exchange{ctx: ctx, n: n, comm: n.comm, last: map[int32]int{}}
	x.changed.L = &x.mu
	id := exchanges.last.Add(1)
	exchanges.Store(id, x)
	n.lib.OnCollective(n.at, callbacks().exchange, id)
	if n.lib.OnBackground != nil {
		n.lib.OnBackground(n.at, callbacks().begin, callbacks().finish, id)
	}
	leave = func() {
		exchanges.Delete(id)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.over = true
		x.changed.Broadcast()
	}
	failed = func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.err
	}
	return leave, failed
}
