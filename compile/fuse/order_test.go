package fuse

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The order has, at every place, the least index that can be there; what is on a cycle or behind one is left out.
func TestTopological(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		waits := make([][]int, r.IntN(24))
		for i := range waits {
			for range r.IntN(4) {
				if j := r.IntN(len(waits)); seed%2 == 0 || j > i {
					waits[i] = append(waits[i], j)
				}
			}
		}
		var want []int
		for {
			next := slices.IndexFunc(waits, func(w []int) bool {
				return !slices.ContainsFunc(w, func(j int) bool { return !slices.Contains(want, j) })
			})
			for i := next; i >= 0 && i < len(waits); i++ {
				if next = i; !slices.Contains(want, i) && !slices.ContainsFunc(waits[i], func(j int) bool { return !slices.Contains(want, j) }) {
					break
				}
				next = -1
			}
			if next < 0 {
				break
			}
			want = append(want, next)
		}
		if got := topological(waits); !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", waits, got, want)
		}
	}
}
