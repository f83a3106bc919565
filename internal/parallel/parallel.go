// Package parallel runs a function for a range of numbers on several goroutines.
package parallel

import (
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
