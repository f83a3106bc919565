package differential

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/base/parallel"
	"dmir/gpu/emulator"
	"dmir/gpu/native"
	"dmir/testkit/need"
)

var (
	programs   = flag.Uint64("programs", 192, "how many random programs to run")
	first      = flag.Uint64("seed", 0, "of the first of them")
	onCPU      = flag.Uint64("cpu", 32, "how many random programs to run on the processor")
	scattered  = flag.Uint64("scatters", 64, "how many random programs of scatters to run")
	transposed = flag.Uint64("transposes", 48, "how many random programs of transpositions to run")
	every      = flag.Int("every", 9, "run one of this many programs with views and without elements; 1: all")
	folder     = flag.String("finds", "", "folder for failing programs, reduced")
)

// needEmulator skips a test where no compiler is here for it, but not in CI.
func needEmulator(t *testing.T) {
	t.Helper()
	need.OK(t, emulator.Check())
}

// needCPU is needEmulator for the compiler of programs for the processor.
func needCPU(t *testing.T) {
	t.Helper()
	_, err := native.Find(t.Context())
	need.OK(t, err)
}

// Random programs, a third of them in turn, compute on every device what they compute in the reference
// executor. scripts/differential.sh runs more of them.
func TestRandomPrograms(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var seeds []uint64
	for i := range *programs {
		if *folder != "" || need.Turn(t, int(i/32), 3) { // 32 seeds have all that Random makes
			seeds = append(seeds, *first+i)
		}
	}
	batches := slices.Collect(slices.Chunk(seeds, Batch))
	var mu sync.Mutex
	done, found := 0, 0
	parallel.Each(runtime.GOMAXPROCS(0), len(batches), func(k int) {
		mu.Lock()
		enough := found >= 50
		mu.Unlock()
		if enough {
			return
		}
		var cases []Case
		for _, seed := range batches[k] {
			cases = append(cases, Random(seed))
		}
		finds, err := Check(t.Context(), cases)
		if err != nil {
			t.Error(err)
			return
		}
		for _, f := range finds {
			if f != nil && report(t, f) {
				mu.Lock()
				found++
				mu.Unlock()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if done += len(cases); *folder != "" {
			fmt.Fprintf(os.Stderr, "\r%d of %d programs, %d finds ", done, len(seeds), found)
		}
	})
}

// Random programs, half of them in turn, compute on the processor what they compute in the reference
// executor.
func TestRandomProgramsCPU(t *testing.T) {
	need.Long(t)
	needCPU(t)
	var cases []Case
	for i := range *onCPU {
		if !need.Turn(t, int(i/8), 2) {
			continue
		}
		c := Random(*first + i)
		c.Device, c.Arch = "cpu", ""
		cases = append(cases, c)
	}
	for _, f := range found(t, cases) {
		report(t, f)
	}
}

// found is what is wrong with the cases.
func found(t *testing.T, cases []Case) []*Find {
	t.Helper()
	finds, err := Check(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(finds, func(f *Find) bool { return f == nil })
}

// report tells of a find and, where finds are kept, makes its program small
// first. It is none where only some inputs show it.
func report(t *testing.T, f *Find) bool {
	t.Helper()
	settled, err := Settled(t.Context(), f)
	if err != nil {
		t.Error(err)
	}
	if !settled {
		t.Logf("%v (with other inputs it agrees)", f)
		return false
	}
	if *folder == "" {
		t.Errorf("%v\n%s", f, f.Case.Text)
		return true
	}
	if f, err = Shrunk(t.Context(), f); err != nil {
		t.Error(err)
	}
	path, err := f.Write(*folder)
	if err != nil {
		t.Error(err)
	}
	t.Errorf("%s: %s", path, f.Msg)
	return true
}

// Scans and counted loops, and their gradients, agree, fused and not.
func TestRecurrences(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	data, err := os.ReadFile("testdata/recurrences.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	for i, f := range txtar.Parse(data).Files {
		for k, gradient := range []bool{false, true} {
			cases = append(cases, kinds(t, Case{Name: f.Name, Text: string(f.Data), Func: "f", Seed: 7, Gradient: gradient}, 2*i+k)...)
		}
	}
	agree(t, cases)
}

// kinds are c in turn as portable code, or for an architecture or, every second n, unfused, and in turn, of five, on the
// processor, for which each program is compiled alone; with -every 1 all. Callers may take every second n in turn.
func kinds(t *testing.T, c Case, n int) []Case {
	t.Helper()
	arch, unfused, cpu := c, c, c
	arch.Arch, unfused.Unfused, cpu.Device = "sm_90a", true, "cpu"
	if *every == 1 {
		return []Case{c, arch, unfused, cpu}
	}
	var of []Case
	if need.Turn(t, n, 4) || need.Turn(t, n+1, 4) {
		of = append(of, c)
	}
	if need.Turn(t, n+2, 4) || need.Turn(t, n+3, 4) {
		of = append(of, []Case{arch, unfused}[n%2])
	}
	if need.Turn(t, n, 5) {
		of = append(of, cpu)
	}
	return of
}

func agree(t *testing.T, cases []Case) {
	t.Helper()
	for _, f := range found(t, cases) {
		t.Error(f)
	}
}

// Programs that once went wrong agree, fused and not.
func TestReproducers(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	files, err := filepath.Glob("testdata/repro/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	var cases []Case
	for i, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := Case{Name: strings.TrimSuffix(filepath.Base(path), ".dmir"), Text: string(text), Seed: 7}
		if strings.Contains(c.Text, "func.func @g") {
			c.Func = "g"
		}
		cases = append(cases, kinds(t, c, i)...)
	}
	agree(t, cases)
}
