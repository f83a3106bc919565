package interp

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// pool runs loops on several goroutines until its context ends. After that
// loops do nothing and the results of ops are discarded, so executors need not
// check.
type pool struct {
	threads int
	stop    atomic.Bool
	tick    func(fraction float64) // called with the progress of the current op, from one goroutine at a time

	mu    sync.Mutex
	crash error
}

func newPool(ctx context.Context, threads int) (p *pool, release func() bool) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p = &pool{threads: threads}
	if ctx.Err() != nil {
		p.stop.Store(true)
	}
	return p, context.AfterFunc(ctx, func() { p.stop.Store(true) })
}

// stopped reports whether the run is cancelled.
func (p *pool) stopped() bool { return p.stop.Load() }

// elements is a grain for loops with a few cheap operations an element.
const elements = 1 << 14

// parallel calls f for consecutive parts of [0, n), each of at most about
// grain, on all threads. f must not depend on how the range is split.
func (p *pool) parallel(n, grain int, f func(lo, hi int)) {
	if n <= 0 || p.stopped() {
		return
	}
	parts := (n + grain - 1) / grain
	if parts == 1 {
		f(0, n)
		return
	}
	var next atomic.Int64
	work := func(first bool) {
		for !p.stopped() {
			i := int(next.Add(1)) - 1
			if i >= parts {
				return
			}
			f(i*grain, min((i+1)*grain, n))
			if first && p.tick != nil {
				p.tick(float64(i+1) / float64(parts))
			}
		}
	}
	var wg sync.WaitGroup
	for range min(p.threads, parts) - 1 {
		wg.Go(func() {
			defer p.caught()
			work(false)
		})
	}
	func() {
		defer wg.Wait()
		work(true)
	}()
	p.mu.Lock()
	err := p.crash
	p.mu.Unlock()
	if err != nil {
		panic(err)
	}
}

// caught recovers a panic of a worker; parallel raises it again in the
// goroutine that called it, where Run turns it into an error.
func (p *pool) caught() {
	if r := recover(); r != nil {
		p.mu.Lock()
		p.crash = fmt.Errorf("%v\n%s", r, debug.Stack())
		p.mu.Unlock()
		p.stop.Store(true)
	}
}

// each calls f for every i in [0, n) in parallel; for tasks that are long in themselves.
func (p *pool) each(n int, f func(i int)) {
	p.parallel(n, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}
