package parallel_test

import (
	"sync/atomic"
	"testing"

	"dmir/base/parallel"
)

func TestParts(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100, 1001} {
		calls := make([]atomic.Int32, n)
		parallel.Parts(n, 10, func(from, to int) {
			for i := from; i < to; i++ {
				calls[i].Add(1)
			}
		})
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("%d numbers: %d calls for %d", n, got, i)
			}
		}
	}
}

func TestEach(t *testing.T) {
	for _, c := range []struct{ workers, n int }{{1, 5}, {4, 0}, {4, 1}, {3, 1000}, {8, 3}} {
		calls := make([]atomic.Int32, c.n)
		parallel.Each(c.workers, c.n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("%d workers, %d numbers: %d calls for %d", c.workers, c.n, got, i)
			}
		}
	}
}

func TestEachPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "at 7" {
			t.Errorf("recovered %v", r)
		}
	}()
	parallel.Each(4, 100, func(i int) {
		if i == 7 {
			panic("at 7")
		}
	})
	t.Error("the panic is lost")
}
