package program

import (
	"fmt"
	"runtime"
	"testing"

	"dmir/syntax/source"
	"dmir/testkit/need"
)

// TestAllocationsOfOpening holds what opening a text allocates to a number for each op: ops, values, names and
// entries lie in arrays, and equal types are one.
func TestAllocationsOfOpening(t *testing.T) {
	const mostAllocs, mostBytes = 4, 2000
	for _, n := range []int{10_000, 100_000} {
		for _, size := range []int{100, n} {
			t.Run(fmt.Sprintf("%d ops in functions of %d", n, size), func(t *testing.T) {
				if n > 10_000 {
					need.Long(t)
				}
				src := source.New("x.dmir", long(n, size))
				Load(src, Options{}) // tables that are built once
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				Load(src, Options{})
				runtime.ReadMemStats(&after)
				allocs := float64(after.Mallocs-before.Mallocs) / float64(n)
				bytes := float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
				t.Logf("%.1f allocations and %.0f bytes for each op", allocs, bytes)
				if allocs > mostAllocs || bytes > mostBytes {
					t.Errorf("%.1f allocations and %.0f bytes for each op, more than %d and %d", allocs, bytes, mostAllocs, mostBytes)
				}
			})
		}
	}
}
