package highs

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dmir/base/milp"
	"dmir/testkit/need"
)

func library(t *testing.T) *Library {
	t.Helper()
	lib, err := Find()
	need.OK(t, err)
	return lib
}

// knapsack is a program of n binary columns that weigh about as much as they are worth, which takes
// branch and bound long.
func knapsack(n, rows int) *milp.Program {
	p := &milp.Program{}
	r := rand.New(rand.NewPCG(1, 1))
	for range n {
		p.Column(-100-float64(r.IntN(20)), 0, 1, true)
	}
	for range rows {
		for i := range n {
			p.Entry(int32(i), 100+float64(r.IntN(20)))
		}
		p.Row(math.Inf(-1), float64(n)*50)
	}
	return p
}

func TestSolve(t *testing.T) {
	lib := library(t)
	if !strings.HasPrefix(lib.Version, "HiGHS 1.") {
		t.Errorf("version %q", lib.Version)
	}
	inf := math.Inf(1)
	// Maximise 5a + 4b + 3c under 2a + 3b + c ≤ 5 and 4a + b + 2c ≤ 11, a ≥ 0, b and c integers: a = 2, b = 0, c = 1.
	p := &milp.Program{Offset: 100}
	p.Column(-5, 0, inf, false)
	p.Column(-4, 0, inf, true)
	p.Column(-3, 0, inf, true)
	p.Entry(0, 2)
	p.Entry(1, 3)
	p.Entry(2, 1)
	p.Row(-inf, 5)
	p.Entry(0, 4)
	p.Entry(1, 1)
	p.Entry(2, 2)
	p.Row(-inf, 11)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	for _, guess := range [][]float64{nil, {2, 0, 1}, {0, 0, 0}} {
		p.Guess = guess
		r, err := lib.Solve(t.Context(), p, milp.Limits{})
		if err != nil || !r.Optimal || r.Infeasible || !near(r.Bound, 100-15) {
			t.Fatalf("%+v, %v", r, err)
		}
		if value := 5*r.X[0] + 4*r.X[1] + 3*r.X[2]; !near(value, 15) {
			t.Errorf("value %v of %v", value, r.X)
		}
	}
	p.Guess = nil
	p.Integer = []bool{false, false, false}
	if r, err := lib.Solve(t.Context(), p, milp.Limits{}); err != nil || !r.Optimal || !near(r.Bound, 100-15) && r.Bound > 100-15 {
		t.Errorf("as a linear program: %+v, %v", r, err)
	}
	p.Entry(0, 1)
	p.Row(10, 20)
	if r, err := lib.Solve(t.Context(), p, milp.Limits{}); err != nil || !r.Infeasible || r.X != nil {
		t.Errorf("infeasible: %+v, %v", r, err)
	}
	if r, err := lib.Solve(t.Context(), &milp.Program{Offset: 3}, milp.Limits{}); err != nil || r.Infeasible {
		t.Errorf("without columns: %+v, %v", r, err)
	}
}

// A solution that ends early has a bound that holds: here of the relaxed program, and of what was found.
func TestEnds(t *testing.T) {
	lib := library(t)
	p := knapsack(400, 30)
	holds := func(t *testing.T, r milp.Result) {
		t.Helper()
		if r.Optimal || r.Infeasible {
			t.Fatalf("%+v", r)
		}
		value := 0.0
		for i, x := range r.X {
			value += p.Cost[i] * x
		}
		if r.X != nil && r.Bound > value+1e-6 {
			t.Errorf("bound %v above value %v", r.Bound, value)
		}
	}
	t.Run("by time", func(t *testing.T) {
		r, err := lib.Solve(t.Context(), p, milp.Limits{Time: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, r)
	})
	t.Run("by its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r, err := lib.Solve(ctx, p, milp.Limits{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%+v, %v", r, err)
		}
		holds(t, r)
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := lib.Solve(ctx, p, milp.Limits{}); !errors.Is(err, context.Canceled) || r.X != nil || !math.IsInf(r.Bound, -1) {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

func TestConcurrent(t *testing.T) {
	lib := library(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			p := knapsack(12, 2)
			r, err := lib.Solve(t.Context(), p, milp.Limits{})
			if err != nil || !r.Optimal {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
}

// Files that are no HiGHS give an error that names them.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DMIR_CACHE", filepath.Join(dir, "cache"))
	name := filepath.Join(dir, names()[0])
	find := func(t *testing.T, path, want string) {
		t.Helper()
		t.Setenv(envLibrary, path)
		lib, err := find()
		var none *NotFound
		if !errors.As(err, &none) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v, %v; want %q", lib, err, want)
		}
	}
	find(t, filepath.Join(dir, "nothing"), "names no HiGHS library")
	find(t, dir, "names no HiGHS library")
	if err := os.WriteFile(name, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	find(t, name, "cannot open "+name)
	find(t, dir, "cannot open "+name)
	if runtime.GOOS != "linux" {
		return
	}
	cc := need.Tool(t, "cc", "apt-get install gcc")
	other := filepath.Join(dir, "other.so")
	build := func(file, source string) {
		t.Helper()
		c := filepath.Join(dir, "other.c")
		if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", file, c).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build(other, "void *Highs_create(void) { return 0; }\n")
	find(t, other, "has no Highs_destroy")
}

// pip is called for the wheel by its hashes, and what is in the folder stays if it fails. A script replaces
// Python.
func TestInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	bin, cache := t.TempDir(), t.TempDir()
	log := filepath.Join(bin, "log")
	script := "#!/bin/sh\nfor a; do :; done; cat \"$a\" >" + log + "\necho 'no such wheel' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	t.Setenv("DMIR_CACHE", cache)
	kept := filepath.Join(cache, "highs", "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context()); err == nil || !strings.Contains(err.Error(), "pip could not install HiGHS") || !strings.Contains(err.Error(), "no such wheel") {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != string(wheels) || strings.Count(string(b), "--hash=sha256:") != 4 {
		t.Errorf("pip gets %s, %v", b, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
