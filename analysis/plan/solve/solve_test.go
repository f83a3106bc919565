package solve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A shape is what random problems look like.
type shape struct {
	name           string
	vars, choices  int     // at most
	density        float64 // of edges
	limits, excess int     // at most
	infinite       float64 // share of costs
	integers       bool    // costs are small integers, so that there are ties
	repeated       bool    // parallel edges in both directions
}

func (s shape) random(r *rand.Rand) *Problem {
	p := &Problem{}
	number := func() float64 {
		if s.integers {
			return float64(r.IntN(5))
		}
		return r.Float64() * 10
	}
	cost := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = number()
			if r.Float64() < s.infinite {
				out[i] = math.Inf(1)
			}
		}
		return out
	}
	finite := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = number() - 3
		}
		return out
	}
	for range 1 + r.IntN(s.vars) {
		p.Unary = append(p.Unary, cost(1+r.IntN(s.choices)))
	}
	n := len(p.Unary)
	edge := func(u, v int) {
		p.Edges = append(p.Edges, Edge{u, v, cost(len(p.Unary[u]) * len(p.Unary[v]))})
	}
	for u := range n {
		for v := u + 1; v < n; v++ {
			if r.Float64() < s.density {
				edge(u, v)
				if s.repeated && r.IntN(2) == 0 {
					edge(v, u)
				}
			}
		}
	}
	if s.limits > 0 {
		for range r.IntN(s.limits + 1) {
			l := Limit{Use: make([][]float64, r.IntN(n+1))}
			low, high := 0.0, 0.0
			for v := range l.Use {
				if r.IntN(5) > 0 {
					l.Use[v] = finite(len(p.Unary[v]))
					a, b := l.Use[v][0], l.Use[v][0]
					for _, c := range l.Use[v] {
						a, b = min(a, c), max(b, c)
					}
					low, high = low+a, high+b
				}
			}
			l.Max = low + (high-low)*(r.Float64()*1.1-0.05)
			if s.integers {
				l.Max = math.Round(l.Max)
			}
			p.Limits = append(p.Limits, l)
		}
	}
	if s.excess > 0 {
		for range r.IntN(s.excess + 1) {
			x := Excess{Base: (number() - 4) * 2, Unary: make([][]float64, r.IntN(n+1)), Edges: make([][]float64, r.IntN(len(p.Edges)+1))}
			for v := range x.Unary {
				if r.IntN(3) > 0 {
					x.Unary[v] = finite(len(p.Unary[v]))
				}
			}
			for e := range x.Edges {
				if r.IntN(3) == 0 {
					x.Edges[e] = finite(len(p.Edges[e].Cost))
				}
			}
			p.Excess = append(p.Excess, x)
		}
	}
	return p
}

// brute returns the least value of all choices, and the least use of each limit by choices of finite cost.
func brute(p *Problem) (value float64, least []float64) {
	value = math.Inf(1)
	least = make([]float64, len(p.Limits))
	for l := range least {
		least[l] = math.Inf(1)
	}
	choice := make([]int, len(p.Unary))
	var try func(v int)
	try = func(v int) {
		if v == len(choice) {
			value = min(value, p.Value(choice))
			if !math.IsInf(p.cost(choice), 1) {
				for l := range least {
					least[l] = min(least[l], p.Uses(l, choice))
				}
			}
			return
		}
		for i := range p.Unary[v] {
			choice[v] = i
			try(v + 1)
		}
	}
	try(0)
	return value, least
}

var shapes = []shape{
	{name: "sparse", vars: 7, choices: 4, density: 0.3},
	{name: "clique", vars: 6, choices: 4, density: 1},
	{name: "ties", vars: 6, choices: 4, density: 0.6, integers: true},
	{name: "parallel edges", vars: 6, choices: 4, density: 0.6, repeated: true},
	{name: "infinities", vars: 7, choices: 4, density: 0.5, infinite: 0.3},
	{name: "mostly infinite", vars: 6, choices: 4, density: 0.7, infinite: 0.6},
	{name: "limit", vars: 6, choices: 4, density: 0.4, limits: 1},
	{name: "limits", vars: 6, choices: 4, density: 0.5, limits: 3, infinite: 0.1},
	{name: "limits and ties", vars: 6, choices: 4, density: 0.5, limits: 2, integers: true},
	{name: "excess", vars: 6, choices: 4, density: 0.5, excess: 1},
	{name: "two excess terms", vars: 6, choices: 4, density: 0.7, excess: 2, infinite: 0.1},
	{name: "all", vars: 6, choices: 4, density: 0.6, limits: 2, excess: 2, infinite: 0.15, repeated: true},
	{name: "all with ties", vars: 6, choices: 4, density: 0.6, limits: 1, excess: 2, infinite: 0.1, integers: true},
}

// check compares an answer with the best one.
func check(t *testing.T, p *Problem, o Options, exact bool) *Solution {
	t.Helper()
	value, least := brute(p)
	s, err := Solve(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-8*(1+math.Abs(b)) }
	switch {
	case s.Bound > s.Value:
		t.Fatalf("bound %v above value %v", s.Bound, s.Value)
	case s.Bound > value && !same(s.Bound, value):
		t.Fatalf("bound %v above the least value %v (%s)", s.Bound, value, s.Method)
	case s.Choice != nil && s.Infeasible == nil && p.Value(s.Choice) != s.Value:
		t.Fatalf("value %v of a choice of value %v", s.Value, p.Value(s.Choice))
	case s.Infeasible != nil && !math.IsInf(value, 1):
		t.Fatalf("infeasible %+v with a choice of value %v", *s.Infeasible, value)
	case s.Infeasible != nil && s.Infeasible.Limit >= 0:
		l := s.Infeasible.Limit
		if !same(s.Infeasible.Least, least[l]) || s.Infeasible.Least <= p.Limits[l].Max {
			t.Fatalf("least use %v of limit %d of %v; want %v", s.Infeasible.Least, l, p.Limits[l].Max, least[l])
		}
		if s.Choice == nil || !same(p.Uses(l, s.Choice), least[l]) {
			t.Fatalf("choice %v is not that of least use", s.Choice)
		}
	}
	if !exact {
		return s
	}
	if !same(s.Value, value) || s.Gap() > 1e-9 && s.Infeasible == nil {
		t.Fatalf("value %v, bound %v (%s, %+v); want %v", s.Value, s.Bound, s.Method, s.Stats, value)
	}
	if math.IsInf(value, 1) && s.Infeasible == nil {
		t.Fatalf("no proof of infeasibility")
	}
	return s
}

func TestAgainstAllChoices(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(400) {
				p := s.random(rand.New(rand.NewPCG(seed, 1)))
				ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
					check(t, p, Options{}, true)
					// Elimination fits only after a search by message passing.
					check(t, p, Options{Entries: 20}, true)
					check(t, p, Options{Entries: 20, Nodes: -1, Sweeps: 3}, false)
					if value, _ := brute(p); value > 0 && !math.IsInf(value, 1) {
						check(t, p, Options{Entries: 20, Below: 1.01 * value}, true)
						below := 0.9 * value
						if best := check(t, p, Options{Entries: 20, Below: below}, false); best.Bound < below {
							t.Fatalf("bound %v, and no choice costs less than %v", best.Bound, below)
						}
					}
				})
				if !ok {
					return
				}
			}
		})
	}
}

func TestDegenerate(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		p     Problem
		value float64
		want  *Infeasible
	}{
		{name: "no variables"},
		{name: "no variables, excess", p: Problem{Excess: []Excess{{Base: 2}, {Base: -3}}}, value: 2},
		{name: "no variables, limit below 0", p: Problem{Limits: []Limit{{Max: -1}}}, value: inf, want: &Infeasible{0, 0}},
		{name: "a variable without choices", p: Problem{Unary: [][]float64{{1}, {}}}, value: inf, want: &Infeasible{-1, 0}},
		{name: "one choice", p: Problem{Unary: [][]float64{{3}}}, value: 3},
		{name: "no finite choice", p: Problem{Unary: [][]float64{{inf, inf}}}, value: inf, want: &Infeasible{-1, 0}},
		{
			name: "no finite pair",
			p: Problem{
				Unary: [][]float64{{1, 2}, {3, 4}},
				Edges: []Edge{{0, 1, []float64{inf, inf, inf, inf}}},
			},
			value: inf, want: &Infeasible{-1, 0},
		},
		{
			name: "odd cycle of inequalities",
			p: Problem{
				Unary: [][]float64{{0, 0}, {0, 0}, {0, 0}},
				Edges: []Edge{{0, 1, []float64{inf, 0, 0, inf}}, {1, 2, []float64{inf, 0, 0, inf}}, {0, 2, []float64{inf, 0, 0, inf}}},
			},
			value: inf, want: &Infeasible{-1, 0},
		},
		{
			name: "a limit out of reach",
			p: Problem{
				Unary:  [][]float64{{1, 2}, {3, 4}},
				Limits: []Limit{{Max: 10, Use: [][]float64{{5, 1}}}, {Max: 6, Use: [][]float64{{5, 4}, {7, 3}}}},
			},
			value: inf, want: &Infeasible{1, 7},
		},
		{
			name: "limits that exclude each other",
			p: Problem{
				Unary:  [][]float64{{1, 2}},
				Limits: []Limit{{Max: 1, Use: [][]float64{{0, 2}}}, {Max: 1, Use: [][]float64{{2, 0}}}},
			},
			value: inf, want: &Infeasible{-1, 0},
		},
		{
			name:  "no limit",
			p:     Problem{Unary: [][]float64{{1, 2}}, Limits: []Limit{{Max: inf, Use: [][]float64{{5, 1}}}}},
			value: 1,
		},
		{
			name:  "a limit met exactly",
			p:     Problem{Unary: [][]float64{{1, 2}, {1, 2}}, Limits: []Limit{{Max: 0.75, Use: [][]float64{{1, 0.5}, {1, 0.25}}}}},
			value: 4,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Solve(context.Background(), &c.p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Value != c.value || s.Bound != c.value {
				t.Errorf("value %v, bound %v, want %v", s.Value, s.Bound, c.value)
			}
			switch {
			case (c.want == nil) != (s.Infeasible == nil):
				t.Errorf("infeasible: %+v, want %+v", s.Infeasible, c.want)
			case c.want != nil && *c.want != *s.Infeasible:
				t.Errorf("infeasible: %+v, want %+v", *s.Infeasible, *c.want)
			case c.want == nil && len(s.Choice) != len(c.p.Unary):
				t.Errorf("choice %v", s.Choice)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	nan := math.NaN()
	for want, p := range map[string]Problem{
		"solve: Unary, variable 0 has cost NaN at 1":                   {Unary: [][]float64{{1, nan}}},
		"solve: Unary, variable 0 has cost -Inf at 0":                  {Unary: [][]float64{{math.Inf(-1)}}},
		"solve: edge 0 joins variables 0 and 2 of 2":                   {Unary: [][]float64{{1}, {1}}, Edges: []Edge{{0, 2, nil}}},
		"solve: edge 0 joins variables 1 and 1 of 2":                   {Unary: [][]float64{{1}, {1}}, Edges: []Edge{{1, 1, []float64{1}}}},
		"solve: edge 0 has 3 costs for 2 pairs of choices":             {Unary: [][]float64{{1, 2}, {1}}, Edges: []Edge{{0, 1, []float64{1, 2, 3}}}},
		"solve: limit 0 is NaN":                                        {Limits: []Limit{{Max: nan}}},
		"solve: limit 0 has lists for 1 variables of 0":                {Limits: []Limit{{Use: [][]float64{{1}}}}},
		"solve: limit 0 has 2 numbers for the 1 choices of variable 0": {Unary: [][]float64{{1}}, Limits: []Limit{{Use: [][]float64{{1, 2}}}}},
		"solve: limit 0, variable 0 has cost +Inf at 0":                {Unary: [][]float64{{1}}, Limits: []Limit{{Use: [][]float64{{math.Inf(1)}}}}},
		"solve: excess 0 has base +Inf":                                {Excess: []Excess{{Base: math.Inf(1)}}},
		"solve: excess 0 has lists for 1 edges of 0":                   {Excess: []Excess{{Edges: [][]float64{{1}}}}},
		"solve: excess 0 has 2 costs for 1 pairs of choices of edge 0": {
			Unary: [][]float64{{1}, {1}}, Edges: []Edge{{0, 1, []float64{1}}}, Excess: []Excess{{Edges: [][]float64{{1, 2}}}},
		},
	} {
		s, err := Solve(context.Background(), &p, Options{})
		if err == nil || err.Error() != want || s != nil {
			t.Errorf("%v, %v; want the error %q", s, err, want)
		}
	}
}

func FuzzSolve(f *testing.F) {
	for i := range shapes {
		f.Add(uint64(i), uint8(i), uint8(20))
	}
	f.Fuzz(func(t *testing.T, seed uint64, of, entries uint8) {
		s := shapes[int(of)%len(shapes)]
		p := s.random(rand.New(rand.NewPCG(seed, 2)))
		check(t, p, Options{Entries: int(entries)}, true)
	})
}
