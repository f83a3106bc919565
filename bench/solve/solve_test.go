package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dmir/analysis/plan/solve"
	"dmir/analysis/plan/solve/solvetest"
	"dmir/base/milp"
	"dmir/gpu/highs"
	"dmir/testkit/need"
)

func library(t *testing.T) *highs.Library {
	t.Helper()
	lib, err := highs.Find()
	need.OK(t, err)
	return lib
}

// TestAgainstHiGHS compares the search with HiGHS's solution of the integer program of the same problem.
func TestAgainstHiGHS(t *testing.T) {
	lib := library(t)
	r := rand.New(rand.NewPCG(7, 7))
	var problems []*solve.Problem
	for range 25 {
		p := &solve.Problem{}
		numbers := func(n int, low, infinite float64) []float64 {
			out := make([]float64, n)
			for i := range out {
				out[i] = low + 10*r.Float64()
				if r.Float64() < infinite {
					out[i] = math.Inf(1)
				}
			}
			return out
		}
		limit := solve.Limit{Max: 35}
		excess := solve.Excess{Base: -5}
		for range 10 {
			p.Unary = append(p.Unary, numbers(4, 0, 0.05))
			limit.Use = append(limit.Use, numbers(4, 0, 0))
			excess.Unary = append(excess.Unary, numbers(4, -5, 0))
		}
		for u := range p.Unary {
			for v := range u {
				if r.IntN(3) == 0 {
					p.Edges = append(p.Edges, solve.Edge{U: u, V: v, Cost: numbers(16, 0, 0.1)})
					excess.Edges = append(excess.Edges, numbers(16, -5, 0))
				}
			}
		}
		p.Limits, p.Excess = []solve.Limit{limit}, []solve.Excess{excess}
		problems = append(problems, p)
	}
	for i, p := range problems {
		own, err := solve.Solve(t.Context(), p, solve.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ilp := solve.NewILP(p)
		if i%2 == 0 && own.Choice != nil && own.Infeasible == nil {
			ilp.Start(own.Choice)
		}
		got, err := lib.Solve(t.Context(), ilp.Program, milp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Infeasible != (own.Infeasible != nil) {
			t.Fatalf("%d: HiGHS: infeasible %v; own: %+v", i, got.Infeasible, own)
		}
		if got.Infeasible {
			continue
		}
		value := p.Value(ilp.Choice(got.X))
		if !got.Optimal || math.Abs(value-own.Value) > 1e-6*own.Value || own.Gap() > 1e-9 || math.Abs(got.Bound*ilp.Unit-value) > 1e-6*value {
			t.Errorf("%d: HiGHS finds %v with the bound %v, own search %v with %v", i, value, got.Bound*ilp.Unit, own.Value, own.Bound)
		}
	}
}

// TestSolver solves what elimination has no tables for with HiGHS.
func TestSolver(t *testing.T) {
	lib := library(t)
	p := solvetest.Layered(solvetest.Shape{Layers: 1, Axes: 2, Memory: 0.1, Hidden: true, Vary: 0.2})
	want, err := solve.Solve(t.Context(), p, solve.Options{})
	if err != nil || want.Gap() != 0 {
		t.Fatalf("%+v, %v", want, err)
	}
	got, err := solve.Solve(t.Context(), p, solve.Options{Entries: 1, Sweeps: 1, MILP: lib})
	if err != nil || got.Method != lib.Name() || math.Abs(got.Value-want.Value) > 1e-6*want.Value || got.Gap() > 1e-6 {
		t.Errorf("%+v, %v; want %v", got, err, want.Value)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err = solve.Solve(ctx, p, solve.Options{Entries: 1, Sweeps: 1, MILP: ending{lib, cancel}})
	if !errors.Is(err, context.Canceled) || got.Bound > want.Value || got.Value < want.Value {
		t.Errorf("canceled: %+v, %v", got, err)
	}
}

// ending cancels the context when it is asked.
type ending struct {
	milp.Solver
	cancel func()
}

func (e ending) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (milp.Result, error) {
	e.cancel()
	return e.Solver.Solve(ctx, p, l)
}

// TestTable measures an instance, and one that HiGHS does not solve in time.
func TestTable(t *testing.T) {
	lib := library(t)
	var rows []row
	for _, in := range []instance{
		{"small", solvetest.Layered(solvetest.Shape{Layers: 1, Axes: 1}), solve.Options{}},
		{"large", solvetest.Layered(solvetest.Shape{Layers: 1, Axes: 2, Memory: 0.08, Hidden: true}), solve.Options{}},
	} {
		r, err := measure(t.Context(), in, lib, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if !rows[0].InTime || math.Abs(rows[0].Ratio-1) > 1e-6 {
		t.Errorf("%+v", rows[0])
	}
	text := table(rows, lib.Version, 2*time.Second)
	if strings.Count(text, "\n") != 6 || !strings.Contains(text, "| small | 41 |") {
		t.Error(text)
	}
}
