// Package parallel runs a function for a range of numbers on several goroutines.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f for every number from 0 to n-1, on at most workers goroutines, and
// returns when all calls have. A panic of f ends the work: Each raises it in the
// caller, which can keep it from ending the process.
func Each(workers, n int, f func(i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var (
		next  atomic.Int64
		crash atomic.Pointer[any]
		wg    sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					crash.Store(&r)
					next.Store(int64(n))
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
	if r := crash.Load(); r != nil {
		panic(*r)
	}
}

// Parts calls f for parts of the numbers from 0 to n-1, from and to each, on all cores if there are more
// than a part has at least, and returns when all calls have.
func Parts(n, least int, f func(from, to int)) {
	parts := max(1, min(runtime.GOMAXPROCS(0), n/max(1, least)))
	Each(parts, parts, func(i int) { f(n*i/parts, n*(i+1)/parts) })
}
