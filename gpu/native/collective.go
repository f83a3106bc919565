package native

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"dmir/gpu/collective"
	"dmir/gpu/dylib"
)

// exchange is the collectives of one run, which C code asks for.
type exchange struct {
	ctx  context.Context
	n    *instance
	comm collective.Comm
	err  error // of the first that failed
}

// exchanges are those of the runs in progress, by the number that C code has.
var exchanges struct {
	sync.Map
	last atomic.Uintptr
}

// exchanged is dmir_exchange for all instances: a process has few callbacks.
var exchanged = sync.OnceValue(func() uintptr {
	return dylib.Callback(func(user uintptr, step int32, from unsafe.Pointer, fromBytes int64, to unsafe.Pointer, toBytes int64) int32 {
		v, ok := exchanges.Load(user)
		if !ok {
			return 1
		}
		x := v.(*exchange)
		s := &x.n.p.Steps[step]
		in, out := unsafe.Slice((*byte)(from), fromBytes), unsafe.Slice((*byte)(to), toBytes)
		err := collective.Step(x.ctx, x.comm, x.n.p, &s.Collective, in, out)
		if err != nil {
			x.err = collective.At(x.comm, x.n.p, int(step), err)
			return 1
		}
		return 0
	})
})

// join makes the instance run collectives with c until leave; a program for one device has
// none. failed is the error of a collective that ended the run.
func (n *instance) join(ctx context.Context) (leave func(), failed func() error) {
	if n.p.Divided == nil {
		return func() {}, func() error { return nil }
	}
	x := &exchange{ctx: ctx, n: n, comm: n.comm}
	id := exchanges.last.Add(1)
	exchanges.Store(id, x)
	n.lib.OnCollective(n.at, exchanged(), id)
	return func() { exchanges.Delete(id) }, func() error { return x.err }
}
