package cuda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/gpu/artifact"
)

// nested are n steps at most of a random program: launches and decisions in one another.
func nested(r *rand.Rand, n, depth int) (out []artifact.Step) {
	for range r.IntN(n + 1) {
		kind := artifact.StepLaunch
		if depth > 0 && r.IntN(3) == 0 {
			kind = []artifact.StepKind{artifact.StepLoop, artifact.StepRepeat, artifact.StepBranch}[r.IntN(3)]
		}
		if kind == artifact.StepLaunch {
			out = append(out, artifact.Step{Kind: kind})
			continue
		}
		var first []artifact.Step
		if kind != artifact.StepRepeat {
			first = nested(r, n, depth-1)
		}
		second := nested(r, n, depth-1)
		d := artifact.Decision{Parts: [2]int{len(first), len(second)}}
		if kind == artifact.StepRepeat {
			d.Trips = []int64{0, 1, 2, 7, 300}[r.IntN(5)]
		}
		out = append(append(append(out, artifact.Step{Kind: kind, Decision: d}), first...), second...)
	}
	return out
}

// The course of any program runs the steps that a walk of it does, in that order, and launches no more graphs than that has
// stretches: one, where the host reads no predicate and its steps fit into one.
func TestCourse(t *testing.T) {
	const most = 10000 // steps of a run that are looked at
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &artifact.Program{Steps: nested(r, 5, 3)}
		said := make([]bool, 60)
		for i := range said {
			said[i] = r.IntN(2) == 0
		}
		over := errors.New("enough")
		decisions := func(trace *[]string) func(step int) (bool, error) {
			n := 0
			return func(step int) (bool, error) {
				*trace = append(*trace, fmt.Sprintf("decide %d", step))
				if n++; n > len(said) {
					return false, over
				}
				return said[n-1], nil
			}
		}
		var want []string
		stretches := 0
		_, ended := p.Walk(func(from, to int) error {
			stretches++
			for i := from; i < to; i++ {
				if want = append(want, fmt.Sprint(i)); len(want) > most {
					return over
				}
			}
			return nil
		}, decisions(&want))

		// The fake's graph is the number of the act, plus one.
		s := &Session{p: p}
		course := s.planned()
		acts := graphs(course)
		for i, g := range acts {
			g.exec = handle(i + 1)
			stretch := 0
			for _, x := range g.graph {
				stretch = max(stretch, x[1]-x[0])
			}
			if g.steps > max(graphSteps, stretch) || g.steps == 0 || g.times < 1 {
				t.Fatalf("seed %d: a graph of %d steps, %d times", seed, g.steps, g.times)
			}
		}
		var got []string
		launches := 0
		ctx, cancel := context.WithCancelCause(t.Context())
		s.streams = []handle{1}
		s.a = &api{StreamQuery: func(handle) status { return success }, GraphLaunch: func(g, _ handle) status {
			if launches++; len(got) > most {
				cancel(over)
			}
			for _, x := range acts[g-1].graph {
				for i := x[0]; i < x[1]; i++ {
					got = append(got, fmt.Sprint(i))
				}
			}
			return success
		}}
		err := s.follow(ctx, course, decisions(&got))
		cancel(nil)
		n := min(len(want), len(got), most)
		if (err == nil) != (ended == nil) || !slices.Equal(got[:n], want[:n]) || err == nil && len(got) != len(want) {
			t.Fatalf("seed %d: the course is\n%v,\nthe walk\n%v; %v, %v", seed, got, want, err, ended)
		}
		if err != nil || len(want) > graphSteps {
			continue
		}
		if launches > stretches || stretches > 0 && !slices.ContainsFunc(want, func(x string) bool { return x[0] == 'd' }) && launches != 1 {
			t.Errorf("seed %d: %d graphs are launched for %d stretches: %v", seed, launches, stretches, want)
		}
	}
}
