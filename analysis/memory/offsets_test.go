package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every way to place buffers keeps those apart that live together, whatever
// their lifetimes and sizes.
func TestPlacing(t *testing.T) {
	ways := map[string]func([]*Buffer) int64{
		"in time":   inTime,
		"by size":   func(bs []*Buffer) int64 { return inOrder(bs, bySize) },
		"by area":   func(bs []*Buffer) int64 { return inOrder(bs, byArea) },
		"by length": func(bs []*Buffer) int64 { return inOrder(bs, byLength) },
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var bs []*Buffer
		first := 0
		for range 1 + r.IntN(150) {
			first += r.IntN(3)
			bs = append(bs, &Buffer{First: first, Last: first + r.IntN(1+r.IntN(60)), Bytes: 1 + r.Int64N(1+r.Int64N(5000))})
		}
		var sum int64
		for _, b := range bs {
			sum += b.Bytes
		}
		for name, place := range ways {
			peak := place(bs)
			var top int64
			for i, a := range bs {
				top = max(top, a.Offset+a.Bytes)
				for _, b := range bs[:i] {
					if a.First <= b.Last && b.First <= a.Last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
						t.Fatalf("seed %d, %s: %+v and %+v overlap", seed, name, *a, *b)
					}
				}
			}
			if top != peak || peak > sum {
				t.Fatalf("seed %d, %s: the peak is %d, not %d", seed, name, top, peak)
			}
		}
	}
}

// The tree gives what a search through a list would.
func TestTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tr tree
	var list []chunk
	for i := range 4000 {
		if len(list) > 0 && r.IntN(3) == 0 {
			j := r.IntN(len(list))
			tr.remove(list[j])
			list = slices.Delete(list, j, j+1)
		} else {
			c := chunk{1 + r.Int64N(200), int64(i) * 1000}
			tr.insert(c)
			list = append(list, c)
		}
		n := 1 + r.Int64N(210)
		want, found := chunk{}, false
		for _, c := range list {
			if c.size >= n && (!found || c.compare(want) < 0) {
				want, found = c, true
			}
		}
		if got, ok := tr.ceiling(n); got != want || ok != found {
			t.Fatalf("step %d: %d bytes: got %v, %v; want %v, %v", i, n, got, ok, want, found)
		}
	}
}
