package solve_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"dmir/analysis/plan/solve"
	"dmir/analysis/plan/solve/solvetest"
	"dmir/testkit/need"
)

// TestLayered solves problems of the shape of a transformer to proved optima, in two ways that must agree:
// with and without tables that are large enough to eliminate the whole problem.
func TestLayered(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape solvetest.Shape
		long  bool
	}{
		{"one axis", solvetest.Shape{Layers: 3, Axes: 1}, false},
		{"one axis, deep", solvetest.Shape{Layers: 96, Axes: 1}, false},
		{"two axes", solvetest.Shape{Layers: 3, Axes: 2}, false},
		{"layers that differ", solvetest.Shape{Layers: 6, Axes: 2, Vary: 0.3}, false},
		{"memory", solvetest.Shape{Layers: 3, Axes: 1, Memory: 0.27}, false},
		{"memory and hidden communication", solvetest.Shape{Layers: 3, Axes: 1, Memory: 0.27, Hidden: true, Vary: 0.1}, false},
		{"memory, two axes", solvetest.Shape{Layers: 2, Axes: 2, Memory: 0.08, Vary: 0.1}, true},
		{"hidden communication, two axes", solvetest.Shape{Layers: 3, Axes: 2, Hidden: true}, true},
		{"both, two axes", solvetest.Shape{Layers: 3, Axes: 2, Memory: 0.08, Hidden: true, Vary: 0.1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				need.Long(t)
			}
			p := solvetest.Layered(c.shape)
			var first *solve.Solution
			for _, o := range []solve.Options{{}, {Entries: 1 << 12}, {Entries: 1 << 12, Nodes: -1}} {
				s, err := solve.Solve(context.Background(), p, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%v %v %.3g %s %+v", s.Value, s.Bound, s.Gap(), s.Method, s.Stats)
				if s.Choice == nil || p.Value(s.Choice) != s.Value || s.Bound > s.Value {
					t.Fatalf("%+v", s)
				}
				if first == nil {
					first = s
					if s.Gap() != 0 {
						t.Errorf("gap %v", s.Gap())
					}
				}
				if s.Bound > first.Value*(1+1e-9) || first.Bound > s.Value*(1+1e-9) {
					t.Errorf("bounds %v and %v, values %v and %v", first.Bound, s.Bound, first.Value, s.Value)
				}
			}
			again, err := solve.Solve(context.Background(), p, solve.Options{})
			if err != nil || !reflect.DeepEqual(again, first) {
				t.Errorf("the same problem again: %+v, %v; first %+v", again, err, first)
			}
		})
	}
}

// TestRepeatedLayers holds that equal layers are eliminated once.
func TestRepeatedLayers(t *testing.T) {
	const layers = 96
	p := &solve.Problem{}
	r := rand.New(rand.NewPCG(1, 2))
	table := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(r.IntN(100))
		}
		return out
	}
	// A layer is a ring of 4 variables with a chord; it is joined to the next by an edge.
	const width, choices = 4, 6
	var unary [width][]float64
	for i := range unary {
		unary[i] = table(choices)
	}
	inside := [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}}
	var tables [6][]float64
	for i := range tables {
		tables[i] = table(choices * choices)
	}
	for l := range layers {
		p.Unary = append(p.Unary, unary[:]...)
		for i, e := range inside {
			p.Edges = append(p.Edges, solve.Edge{U: l*width + e[0], V: l*width + e[1], Cost: tables[i]})
		}
		if l > 0 {
			p.Edges = append(p.Edges, solve.Edge{U: l*width - 1, V: l * width, Cost: tables[5]})
		}
	}
	s, err := solve.Solve(context.Background(), p, solve.Options{})
	if err != nil || s.Gap() != 0 || s.Method != solve.Elimination {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Stats.Computed > layers {
		t.Errorf("%d eliminations of %d variables", s.Stats.Computed, len(p.Unary))
	}
	// The minimum by dynamic programming over the layers' last variables.
	best := make([]float64, choices)
	for l := range layers {
		next := make([]float64, choices)
		for i := range next {
			next[i] = math.Inf(1)
		}
		var x [width]int
		var try func(k int, cost float64)
		try = func(k int, cost float64) {
			if k == width {
				for i, e := range inside {
					cost += tables[i][x[e[0]]*choices+x[e[1]]]
				}
				before := 0.0
				if l > 0 {
					before = math.Inf(1)
					for d, c := range best {
						before = min(before, c+tables[5][d*choices+x[0]])
					}
				}
				next[x[width-1]] = min(next[x[width-1]], cost+before)
				return
			}
			for x[k] = range choices {
				try(k+1, cost+unary[k][x[k]])
			}
		}
		try(0, 0)
		best = next
	}
	want := math.Inf(1)
	for _, c := range best {
		want = min(want, c)
	}
	if s.Value != want {
		t.Errorf("value %v, want %v", s.Value, want)
	}
}

// TestWide solves random dense problems that elimination is too wide for.
func TestWide(t *testing.T) {
	need.Long(t)
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := &solve.Problem{}
		for range 25 {
			c := make([]float64, 6)
			for i := range c {
				c[i] = r.Float64()
			}
			p.Unary = append(p.Unary, c)
		}
		for u := range p.Unary {
			for v := range u {
				c := make([]float64, 36)
				for i := range c {
					c[i] = r.Float64() * 0.2
				}
				p.Edges = append(p.Edges, solve.Edge{U: u, V: v, Cost: c})
			}
		}
		s, err := solve.Solve(context.Background(), p, solve.Options{Entries: 1 << 16, Nodes: 50})
		if err != nil || s.Bound > s.Value || s.Bound <= 0 || p.Value(s.Choice) != s.Value {
			t.Fatalf("%+v, %v", s, err)
		}
		t.Logf("%v %v %.3g %s %+v", s.Value, s.Bound, s.Gap(), s.Method, s.Stats)
		// No random choice that is improved step by step is below the bound.
		x := make([]int, len(p.Unary))
		for range 200 {
			for v := range x {
				x[v] = r.IntN(6)
			}
			for changed := true; changed; {
				changed = false
				for v := range x {
					now, best := x[v], p.Value(x)
					at := now
					for i := range 6 {
						x[v] = i
						if c := p.Value(x); c < best {
							best, at = c, i
						}
					}
					x[v] = at
					changed = changed || at != now
				}
			}
			if c := p.Value(x); c < s.Bound {
				t.Fatalf("value %v of %v is below the bound %v", c, x, s.Bound)
			}
		}
	}
}

// countdown is a context that ends after a number of looks at it.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestEndAtAnyTime ends the search after each number of looks at the context: what it returns holds.
func TestEndAtAnyTime(t *testing.T) {
	p := solvetest.Layered(solvetest.Shape{Layers: 2, Axes: 1, Memory: 0.27, Hidden: true, Vary: 0.2})
	best, err := solve.Solve(context.Background(), p, solve.Options{})
	if err != nil || best.Gap() != 0 {
		t.Fatalf("%+v, %v", best, err)
	}
	for looks := range 200 {
		left := looks
		s, err := solve.Solve(countdown{context.Background(), &left}, p, solve.Options{Entries: 500})
		if err == nil {
			if looks == 0 || s.Value != best.Value {
				t.Fatalf("after %d looks: %+v", looks, s)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if s.Infeasible != nil || s.Bound > s.Value || s.Bound > best.Value || s.Value < best.Value ||
			(s.Choice != nil && p.Value(s.Choice) != s.Value) {
			t.Fatalf("after %d looks: %+v; best %v", looks, s, best.Value)
		}
	}
}

// Few pairs of choices are compared with all that neighbours choose: numbers of each choice alone rule most of them out.
func TestComparedChoices(t *testing.T) {
	p := solvetest.Layered(solvetest.Shape{Layers: 3, Axes: 2})
	s, err := solve.Solve(t.Context(), p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for _, choices := range p.Unary {
		pairs += len(choices) * (len(choices) - 1)
	}
	if got := s.Stats.Compared; got == 0 || 2*got > pairs {
		t.Errorf("%d of %d pairs of choices are compared", got, pairs)
	}
}
