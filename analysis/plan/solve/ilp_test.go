package solve

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"dmir/base/milp"
)

// A standIn solves the programs of problems with few choices by trying them: it knows the formulation only by
// its rows and columns. Continuous columns are what the rows with one of them as the only unknown require.
type standIn struct {
	calls int
	err   error
	gap   float64 // subtracted from the bound
}

func (s *standIn) Name() string { return "stand-in" }

func (s *standIn) Solve(_ context.Context, p *milp.Program, _ milp.Limits) (milp.Result, error) {
	s.calls++
	if s.err != nil {
		return milp.Result{Bound: math.Inf(-1)}, s.err
	}
	best := milp.Result{Bound: math.Inf(1), Infeasible: true}
	groups := oneOf(p)
	x := make([]float64, len(p.Cost))
	var try func(g int)
	try = func(g int) {
		if g < len(groups) {
			for _, c := range groups[g] {
				if p.Upper[c] == 1 {
					x[c] = 1
					try(g + 1)
					x[c] = 0
				}
			}
			return
		}
		y, ok := complete(p, x)
		if value := valueOf(p, y); ok && value < best.Bound {
			best = milp.Result{X: y, Bound: value, Optimal: true}
		}
	}
	try(0)
	best.Bound -= s.gap
	best.Optimal = s.gap == 0
	return best, nil
}

// oneOf lists the rows that say that one of some integer columns is 1.
func oneOf(p *milp.Program) [][]int32 {
	var groups [][]int32
	for r := range p.RowLower {
		columns := p.Index[p.Start[r]:p.Start[r+1]]
		if p.RowLower[r] == 1 && p.RowUpper[r] == 1 && (len(columns) == 0 || p.Integer[columns[0]]) {
			groups = append(groups, columns)
		}
	}
	return groups
}

// complete sets the columns of pairs to products, and those of excess terms to the least that the rows allow,
// and reports whether every row then holds.
func complete(p *milp.Program, x []float64) ([]float64, bool) {
	y := append([]float64(nil), x...)
	// A pair's column lies in the rows of two choices, whose column has the entry −1.
	ends := make([][]int32, len(y))
	for r := range p.RowLower {
		at, end := p.Start[r], p.Start[r+1]
		if p.RowLower[r] != 0 || p.RowUpper[r] != 0 {
			continue
		}
		for k := at; k < end-1; k++ {
			ends[p.Index[k]] = append(ends[p.Index[k]], p.Index[end-1])
		}
	}
	for c, two := range ends {
		if len(two) == 2 {
			y[c] = y[two[0]] * y[two[1]]
		}
	}
	sum := func(r int) float64 {
		total := 0.0
		for k := p.Start[r]; k < p.Start[r+1]; k++ {
			total += p.Value[k] * y[p.Index[k]]
		}
		return total
	}
	for r := range p.RowLower {
		if at, end := p.Start[r], p.Start[r+1]; end > at && math.IsInf(p.Upper[p.Index[end-1]], 1) {
			y[p.Index[end-1]] = max(0, sum(r)-p.RowUpper[r])
		}
	}
	for c := range y {
		if y[c] > p.Upper[c] {
			return nil, false
		}
	}
	for r := range p.RowLower {
		if s := sum(r); s < p.RowLower[r]-1e-9 || s > p.RowUpper[r]+1e-9 {
			return nil, false
		}
	}
	return y, true
}

func valueOf(p *milp.Program, x []float64) float64 {
	value := p.Offset
	for c := range x {
		value += p.Cost[c] * x[c]
	}
	return value
}

// The integer program of a problem has the problem's minimum, and the program's guess is the choice that it is
// made of.
func TestFormulation(t *testing.T) {
	for _, s := range shapes {
		for seed := range uint64(60) {
			s.vars, s.choices = min(s.vars, 5), min(s.choices, 3)
			p := s.random(rand.New(rand.NewPCG(seed, 5)))
			want, _ := brute(p)
			ilp := NewILP(p)
			r, err := (&standIn{}).Solve(context.Background(), ilp.Program, milp.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Infeasible != math.IsInf(want, 1) {
				t.Fatalf("%s %d: infeasible %v, want the value %v", s.name, seed, r.Infeasible, want)
			}
			if r.Infeasible {
				continue
			}
			choice := ilp.Choice(r.X)
			if got := r.Bound * ilp.Unit; math.Abs(got-want) > 1e-8*(1+math.Abs(want)) || math.Abs(p.cost(choice)-want) > 1e-8*(1+math.Abs(want)) {
				t.Fatalf("%s %d: value %v of %v, want %v", s.name, seed, got, choice, want)
			}
			ilp.Start(choice)
			if got := valueOf(ilp.Program, ilp.Program.Guess); math.Abs(got-r.Bound) > 1e-9*(1+math.Abs(got)) {
				t.Fatalf("%s %d: the guess has the value %v, want %v", s.name, seed, got, r.Bound)
			}
		}
	}
}

// Solve asks the solver for what elimination has no tables for, and takes its answer, its bound and its error.
func TestSolver(t *testing.T) {
	calls, improved := 0, 0
	for seed := range uint64(300) {
		s := shape{vars: 6, choices: 3, density: 1, limits: 1, excess: 1}
		p := s.random(rand.New(rand.NewPCG(seed, 6)))
		o := Options{Entries: 10, Sweeps: 1, MILP: &standIn{}}
		got := check(t, p, o, true)
		n := o.MILP.(*standIn).calls
		calls += n
		if n > 0 && got.Method != "stand-in" && got.Infeasible == nil {
			t.Fatalf("method %q", got.Method)
		}
		if n == 0 {
			continue
		}
		// A bound that is too low leaves the rest to branch and bound.
		o.MILP = &standIn{gap: 1e6}
		if check(t, p, o, true).Method == Branching {
			improved++
		}
		want := errors.New("out of order")
		o.MILP = &standIn{err: want}
		if s, err := Solve(context.Background(), p, o); !errors.Is(err, want) || s.Bound > s.Value {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if calls == 0 || improved == 0 {
		t.Errorf("%d calls, %d searches after them", calls, improved)
	}
}
