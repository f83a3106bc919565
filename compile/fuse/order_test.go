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

// After random merges, splits and copies the order of a partition is one exactly where its kernels do not wait for each other, and
// what is undone is as it was.
func TestReorder(t *testing.T) {
	ordered, cyclic := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		g := graphOf(t, dag(seed, 30), limits{most: 30, twice: true})
		l := newPartition(g, g.singles(nil), nil)
		for range 60 {
			start, before := len(l.changes), slices.Clone(l.order)
			a, b := r.IntN(len(l.in)), r.IntN(len(l.in))
			if a == b || l.shape[a] == nil || l.shape[b] == nil {
				continue
			}
			switch r.IntN(4) {
			case 0:
				l.split(a)
			case 1:
				l.add(l.in[b][r.IntN(len(l.in[b]))], a)
			default:
				l.merge(a, b)
			}
			ok := l.reorder(l.settle(start))
			waits := make([][]int, len(l.in))
			for k, s := range l.shape {
				if s != nil {
					l.waits(k, func(w int) { waits[k] = append(waits[k], w) })
				}
			}
			if want := acyclic(waits); ok != want {
				t.Fatalf("seed %d: there is an order: %t, want %t, of %v", seed, ok, want, waits)
			}
			if !ok {
				cyclic++
				l.undo(start)
				if !slices.Equal(l.order, before) {
					t.Fatalf("seed %d: undone, the order is %v, not %v", seed, l.order, before)
				}
				continue
			}
			ordered++
			for k, w := range waits {
				if l.order[l.rank[k]] != k || slices.ContainsFunc(w, func(w int) bool { return l.rank[w] >= l.rank[k] }) {
					t.Fatalf("seed %d: kernel %d at %d waits for %v in the order %v", seed, k, l.rank[k], w, l.order)
				}
			}
		}
	}
	if ordered < 100 || cyclic < 100 {
		t.Errorf("%d with an order, %d without one", ordered, cyclic)
	}
}
