package reuse

import (
	"math"
	"math/rand/v2"
	"testing"
)

// missed is how many of the reads miss a cache of so many lines that replaces the least recently used one: by definition.
func missed(at []int64, grain int64, size int) (n int) {
	var cache []int64 // the last one used first
	for _, x := range at {
		line, found := x/grain, false
		for i, y := range cache {
			if y == line {
				copy(cache[1:i+1], cache[:i])
				cache[0], found = line, true
				break
			}
		}
		if found {
			continue
		}
		n++
		if len(cache) < size {
			cache = append(cache, 0)
		}
		copy(cache[1:], cache)
		cache[0] = line
	}
	return n
}

// patterns are reads of 640 rows, with the formula of each.
func patterns() map[string]struct {
	at []int64
	by Profile
} {
	const rows = 640
	r := rand.New(rand.NewPCG(1, 2))
	type pattern = struct {
		at []int64
		by Profile
	}
	out := map[string]pattern{}
	add := func(name string, by func(reads int64) Profile, row func(i int64) []int64) {
		var at []int64
		for i := range int64(rows) {
			at = append(at, row(i)...)
		}
		out[name] = pattern{at, by(int64(len(at)))}
	}
	add("uniform", func(n int64) Profile { return Uniform(rows, n) }, func(int64) (c []int64) {
		for range 12 {
			c = append(c, r.Int64N(rows))
		}
		return c
	})
	add("band", func(n int64) Profile { return Band(rows, rows, n, 5) }, func(i int64) (c []int64) {
		for j := max(0, i-5); j <= min(rows-1, i+5); j++ {
			c = append(c, j)
		}
		return c
	})
	add("blocks", func(n int64) Profile { return Blocks(rows, rows, n, 32) }, func(i int64) (c []int64) {
		chosen := rand.New(rand.NewPCG(3, uint64(i/32))).Perm(20)[:5]
		for _, b := range chosen {
			for j := range int64(32) {
				c = append(c, int64(b)*32+j)
			}
		}
		return c
	})
	add("in order", func(n int64) Profile { return InOrder(rows, n) }, func(i int64) []int64 { return []int64{i, i, i, i} })
	return out
}

// What a profile says of caches of any size is what such a cache misses, where it was counted and where it follows from a distribution.
func TestMisses(t *testing.T) {
	for name, p := range patterns() {
		counted, ok := Count(p.at, 1<<20)
		if !ok || counted.Reads != p.by.Reads {
			t.Fatal(name, ok, counted.Reads, p.by.Reads)
		}
		for g, grain := range Grains {
			if got, want := float64(p.by.By[g].Touched), float64(counted.By[g].Touched); math.Abs(got-want) > 0.12*want+2 {
				t.Errorf("%s: lines of %d: %g are touched by the formula, %g counted", name, grain, got, want)
			}
			for _, size := range []int{2, 16, 64, 200, 500, 2000} {
				want := float64(missed(p.at, grain, size))
				if size == 2 && name == "band" && grain > 1 || want == 0 {
					continue // a window of one row of the matrix, which the doublings of a profile are too wide for
				}
				near := func(what string, by *Profile, within float64) {
					if got := by.Misses(g, float64(size), 0); math.Abs(got-want) > within*want+float64(counted.By[g].Touched)/10 {
						t.Errorf("%s: %s: a cache of %d lines of %d misses %.0f, by definition %.0f of %d", name, what, size, grain, got, want, counted.Reads)
					}
				}
				near("counted", &counted, 0.25)
				near("by formula", &p.by, 0.35)
			}
		}
	}
}

// What else a read brings leaves less of the cache.
func TestBeside(t *testing.T) {
	p := Uniform(1000, 100000)
	alone, beside := p.Misses(0, 500, 0), p.Misses(0, 500, 1)
	if beside <= alone || beside > 100000 {
		t.Errorf("%g reads miss alone, %g with as much beside", alone, beside)
	}
	if n := p.Misses(0, 1e9, 0); n != float64(p.By[0].Touched) {
		t.Errorf("%g reads miss a cache that holds all", n)
	}
}

// Counting looks at each read once for each grain, and needs no more memory than the limit.
func TestCountLimit(t *testing.T) {
	if _, ok := Count([]int64{3, 1 << 40}, 1<<20); ok {
		t.Error("a table of 2^40 rows is counted")
	}
	if p, ok := Count(nil, 1); !ok || p.Reads != 0 || p.Misses(0, 1, 0) != 0 {
		t.Error("no reads", p, ok)
	}
}
