package calibrate

import (
	"context"
	"errors"
	"math"
	"os"
	"regexp"
	"testing"
)

// fake is a processor of four threads that is as its figures say.
type fake struct {
	jobs   int
	cancel func()
}

func (f *fake) threads() int  { return 4 }
func (f *fake) vector() int64 { return 32 }

func (f *fake) time(job int, bytes, repeats int64) float64 {
	if f.jobs++; f.jobs == 50 && f.cancel != nil {
		f.cancel()
	}
	each := 0.0
	switch size := float64(bytes); job {
	case empty:
		each = 2e-6
	case copied, read, gathered, gatheredRows:
		each = size / 10e9
		switch {
		case size <= 4*32*kib:
			each = size / 800e9
		case size <= 4*mib:
			each = size / 200e9
		case size <= 48*mib:
			each = size / 50e9
		}
		switch job {
		case read:
			each /= 1.5
		case gathered:
			each *= 3
		case gatheredRows:
			each *= 2
		}
	case fma32, fma64, add32, add64:
		lanes := map[int]float64{fma32: 8, add32: 8, fma64: 4, add64: 4}[job]
		each = chains * lanes * 4 / 100e9
	}
	return each * float64(repeats)
}

var quiet = func(string, int, int) {}

func TestMeasure(t *testing.T) {
	found := processor{memory: 64 << 30, caches: []cache{{1, 32 * kib, true}, {2, mib, true}, {3, 64 * mib, false}}}
	last := 0
	m, err := measure(t.Context(), &fake{}, found, func(what string, done, total int) {
		if what == "" || done < last || done >= total {
			t.Errorf("progress: %q, %d of %d after %d", what, done, total, last)
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	near("memory", m.Move.Both, 10e9)
	near("reads", m.Move.Read, 15e9)
	near("lines at random", m.Move.Random, 10e9/3)
	near("rows at random", m.Move.Rows, 10e9/2)
	near("products", m.F32.FMA, 200e9)
	near("additions", m.F64.Add, 100e9)
	near("launch", m.Launch, 2e-6)
	if m.Threads != 4 || m.Grain != grain || m.Memory != 64<<30 || m.Call >= m.Launch || len(m.Caches) != 3 {
		t.Fatalf("got %+v", m)
	}
	for i, want := range []Cache{{1, 32 * kib, true, Bandwidths{800e9, 1200e9, 800e9 / 3.0, 400e9}}, {2, mib, true, Bandwidths{200e9, 300e9, 200e9 / 3.0, 100e9}}, {3, 48 * mib, false, Bandwidths{50e9, 75e9, 50e9 / 3.0, 25e9}}} {
		c := m.Caches[i]
		near("cache", c.Move.Both, want.Move.Both)
		near("cache, reads", c.Move.Read, want.Move.Read)
		near("cache, lines at random", c.Move.Random, want.Move.Random)
		near("cache, rows at random", c.Move.Rows, want.Move.Rows)
		if c.Level != want.Level || c.PerCore != want.PerCore || math.Abs(float64(c.Size)/float64(want.Size)-1) > 0.15 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// Where the system says nothing about caches, the one that can be found is measured.
func TestUnknownCaches(t *testing.T) {
	m, err := measure(t.Context(), &fake{}, processor{}, quiet)
	if err != nil || len(m.Caches) != 1 || m.Caches[0].Level != 1 || m.Memory != 0 {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{cancel: cancel}
	if _, err := measure(ctx, f, processor{}, quiet); !errors.Is(err, context.Canceled) || f.jobs > 60 {
		t.Errorf("after %d jobs: %v", f.jobs, err)
	}
}

func TestCachesOf(t *testing.T) {
	got := cachesOf([]found{{3, 32 * mib, 8, 32}, {1, 32 * kib, 2, 32}, {2, 512 * kib, 2, 32}, {2, 0, 1, 32}})
	want := []cache{{1, 16 * kib, true}, {2, 256 * kib, true}, {3, 128 * mib, false}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	for _, p := range []processor{{}, {memory: 1 << 30}, {memory: 64 << 30, caches: got}} {
		if n := p.large(); n < 64*mib || n > 1024*mib || p.memory > 0 && n > p.memory/4 {
			t.Errorf("%+v: a working set of %d", p, n)
		}
	}
}

// The runtime has the grain that the machine is written with.
func TestGrain(t *testing.T) {
	text, err := os.ReadFile("../native/runtime/pool.h")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`GRAIN = 1 << 16,`).Match(text) || grain != 1<<16 {
		t.Error("GRAIN of the runtime is not the grain of the machine")
	}
}
