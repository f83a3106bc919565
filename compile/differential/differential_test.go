package differential

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"dmir/internal/randprog"
)

func env(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// Random programs agree.
func TestPrograms(t *testing.T) {
	n, first := env("DMIR_PROGRAMS", 64), uint64(env("DMIR_SEED", 0))
	start := time.Now()
	for from := 0; from < n; from += Batch {
		var cases []Case
		for i := from; i < min(n, from+Batch); i++ {
			cases = append(cases, caseOf(first+uint64(i)))
		}
		finds, err := Check(t.Context(), cases)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range finds {
			if f != nil {
				t.Errorf("%v\n", f)
				if d := os.Getenv("DMIR_FINDS"); d != "" {
					os.WriteFile(d+"/"+f.Case.Name+".dmir", []byte(f.Case.Text), 0o644)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "%d programs, %.1f s\n", from+len(cases), time.Since(start).Seconds())
	}
}

func caseOf(seed uint64) Case {
	c := Case{Name: fmt.Sprintf("program%d", seed), Seed: 7}
	gradient := seed%3 == 2
	c.Text = randprog.Program(seed, randprog.Options{Gradient: gradient})
	if gradient {
		text, err := Derive(c.Text)
		if err == nil {
			c.Text = text
		}
	}
	c.Arch = []string{"", "", "sm_80", "sm_90a"}[seed/3%4]
	c.Unfused = seed%16 == 5
	return c
}
