// Package solve chooses one value for each of many variables so that a sum of costs is least: of
// single choices, of pairs of choices, of what exceeds a free amount, and under limits. It knows
// nothing of programs. An answer comes with a lower bound of all answers, so that its gap is known.
package solve

import (
	"context"
	"fmt"
	"math"
	"time"

	"dmir/base/milp"
)

// A Problem is what is minimised. Costs may be +Inf, which forbids a choice.
type Problem struct {
	Unary  [][]float64 // by variable, by choice
	Edges  []Edge
	Limits []Limit  // what must not be exceeded, as memory
	Excess []Excess // what costs only as far as it is above 0, as communication that computation hides
}

// An Edge is a cost of two choices.
type Edge struct {
	U, V int
	Cost []float64 // of choice i of U and j of V at i·len(Unary[V]) + j
}

// A Limit is a bound on a sum over variables: Σ Use[v][choice of v] ≤ Max. Variables without a
// list use nothing.
type Limit struct {
	Use [][]float64
	Max float64
}

// An Excess adds max(0, sum) to the cost, where sum is Base + Σ Unary + Σ Edges; variables and
// edges without a list add nothing.
type Excess struct {
	Base  float64
	Unary [][]float64
	Edges [][]float64 // as Problem.Edges
}

// Options bound the work. The zero value suits problems of a few hundred variables.
type Options struct {
	Entries int     // of the tables of one elimination; 0: 4 million
	Nodes   int     // of branch and bound; 0: 2000; negative: the root alone
	Sweeps  int     // of message passing where elimination needs more than Entries; 0: 200
	Gap     float64 // relative distance of Value and Bound at which the search ends; 0: 1e-9
	Start   []int   // a choice to start from, as that of a similar problem; nil: none
	Below   float64 // choices that cost as much or more are not asked for: the search ends where none costs less; 0: all are

	// MILP solves what is left of a problem that elimination takes more than Entries for, before branch and
	// bound; nil: none. What it proves holds within its tolerances.
	MILP      milp.Solver
	MILPLimit time.Duration // 0: a minute
}

func (o Options) filled() Options {
	if o.Entries <= 0 {
		o.Entries = 4 << 20
	}
	if o.Nodes == 0 {
		o.Nodes = 2000
	}
	o.Nodes = max(o.Nodes, 1)
	if o.Sweeps <= 0 {
		o.Sweeps = 200
	}
	if o.Gap <= 0 {
		o.Gap = 1e-9
	}
	if o.Below <= 0 {
		o.Below = math.Inf(1)
	}
	if o.MILPLimit <= 0 {
		o.MILPLimit = time.Minute
	}
	return o
}

// Methods by which the bound of a Solution was proved; another is the name of Options.MILP.
const (
	Elimination = "elimination"      // exact elimination, of what message passing left if it was tried first
	Messages    = "message passing"  // soft arc consistency
	Branching   = "branch and bound" // a search, which those two bound, as far as Options.Nodes allow
)

// A Solution is the best choice found. Bound ≤ the value of every choice that meets the limits, and
// Bound = Value if Choice was proved to be within Options.Gap of the best.
type Solution struct {
	Choice     []int // by variable; nil if none was found, as where none costs less than Options.Below
	Value      float64
	Bound      float64
	Method     string
	Infeasible *Infeasible // a proof that no choice meets the limits, or nil; Value and Bound are then +Inf
	Stats      Stats
}

// Gap returns (Value − Bound) / |Value|: 0 for a proved optimum, +Inf without a choice.
func (s *Solution) Gap() float64 {
	switch {
	case math.IsInf(s.Value, 1):
		return math.Inf(1)
	case s.Value == s.Bound:
		return 0
	}
	return (s.Value - s.Bound) / math.Abs(s.Value)
}

// An Infeasible proves that no choice is allowed. With Limit ≥ 0, every choice of finite cost uses
// Least or more of that limit, which is above its Max; the solution's Choice, if it is not nil, uses
// Least, or more if Options.Nodes ended the search for it. With Limit −1, every choice has infinite
// cost or exceeds one of the limits.
type Infeasible struct {
	Limit int
	Least float64
}

// Stats count what a solution took.
type Stats struct {
	Variables   int // with more than one choice after the reductions
	Choices     int // of these variables
	Edges       int // between these variables
	Entries     int // of the tables of one elimination
	Evaluations int // of the relaxed problem
	Computed    int // eliminations of a variable
	Reused      int // eliminations of a variable that equal an earlier one
	Sweeps      int // of message passing
	Nodes       int // of branch and bound
	Compared    int // pairs of choices of a variable, with all choices of its neighbours
}

// Solve minimises p. It returns an error for a malformed problem, and ctx's error together with the
// best choice and bound until then if ctx ends. Equal arguments give equal results unless ctx ends.
func Solve(ctx context.Context, p *Problem, o Options) (*Solution, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	s := newSearch(ctx, p, o.filled())
	s.run()
	return s.solution(), s.err
}

// Value returns the cost of a choice: +Inf if one of its costs is, or if it exceeds a limit.
func (p *Problem) Value(choice []int) float64 {
	if !p.Meets(choice) {
		return math.Inf(1)
	}
	return p.cost(choice)
}

// Meets reports whether a choice exceeds no limit.
func (p *Problem) Meets(choice []int) bool {
	for l := range p.Limits {
		if p.Uses(l, choice) > p.Limits[l].Max {
			return false
		}
	}
	return true
}

// Uses returns what a choice uses of a limit.
func (p *Problem) Uses(limit int, choice []int) float64 {
	sum := 0.0
	for v, use := range p.Limits[limit].Use {
		if use != nil {
			sum += use[choice[v]]
		}
	}
	return sum
}

func (p *Problem) cost(choice []int) float64 {
	sum := 0.0
	for v, c := range p.Unary {
		sum += c[choice[v]]
	}
	for _, e := range p.Edges {
		sum += e.Cost[p.at(&e, choice)]
	}
	for i := range p.Excess {
		sum += max(0, p.above(i, choice))
	}
	return sum
}

// above is the sum of an excess term.
func (p *Problem) above(excess int, choice []int) float64 {
	x := &p.Excess[excess]
	sum := x.Base
	for v, c := range x.Unary {
		if c != nil {
			sum += c[choice[v]]
		}
	}
	for e, c := range x.Edges {
		if c != nil {
			sum += c[p.at(&p.Edges[e], choice)]
		}
	}
	return sum
}

func (p *Problem) at(e *Edge, choice []int) int {
	return choice[e.U]*len(p.Unary[e.V]) + choice[e.V]
}

// check returns what is malformed about the problem.
func (p *Problem) check() error {
	if err := p.checkLists("Unary", p.Unary, true); err != nil {
		return err
	}
	for i, e := range p.Edges {
		if e.U < 0 || e.V < 0 || e.U >= len(p.Unary) || e.V >= len(p.Unary) || e.U == e.V {
			return fmt.Errorf("solve: edge %d joins variables %d and %d of %d", i, e.U, e.V, len(p.Unary))
		}
		if want := len(p.Unary[e.U]) * len(p.Unary[e.V]); len(e.Cost) != want {
			return fmt.Errorf("solve: edge %d has %d costs for %d pairs of choices", i, len(e.Cost), want)
		}
		if err := checkCosts(fmt.Sprintf("edge %d", i), e.Cost, true); err != nil {
			return err
		}
	}
	for i, l := range p.Limits {
		name := fmt.Sprintf("limit %d", i)
		if math.IsNaN(l.Max) {
			return fmt.Errorf("solve: %s is NaN", name)
		}
		if err := p.checkLists(name, l.Use, false); err != nil {
			return err
		}
	}
	for i, x := range p.Excess {
		name := fmt.Sprintf("excess %d", i)
		if math.IsNaN(x.Base) || math.IsInf(x.Base, 0) {
			return fmt.Errorf("solve: %s has base %v", name, x.Base)
		}
		if err := p.checkLists(name, x.Unary, false); err != nil {
			return err
		}
		if len(x.Edges) > len(p.Edges) {
			return fmt.Errorf("solve: %s has lists for %d edges of %d", name, len(x.Edges), len(p.Edges))
		}
		for e, c := range x.Edges {
			if c == nil {
				continue
			}
			if len(c) != len(p.Edges[e].Cost) {
				return fmt.Errorf("solve: %s has %d costs for %d pairs of choices of edge %d", name, len(c), len(p.Edges[e].Cost), e)
			}
			if err := checkCosts(name, c, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Problem) checkLists(name string, lists [][]float64, infinite bool) error {
	if len(lists) > len(p.Unary) {
		return fmt.Errorf("solve: %s has lists for %d variables of %d", name, len(lists), len(p.Unary))
	}
	for v, c := range lists {
		if c == nil {
			continue
		}
		if len(c) != len(p.Unary[v]) {
			return fmt.Errorf("solve: %s has %d numbers for the %d choices of variable %d", name, len(c), len(p.Unary[v]), v)
		}
		if err := checkCosts(fmt.Sprintf("%s, variable %d", name, v), c, infinite); err != nil {
			return err
		}
	}
	return nil
}

func checkCosts(name string, costs []float64, infinite bool) error {
	for i, c := range costs {
		if math.IsNaN(c) || math.IsInf(c, -1) || (!infinite && math.IsInf(c, 1)) {
			return fmt.Errorf("solve: %s has cost %v at %d", name, c, i)
		}
	}
	return nil
}
