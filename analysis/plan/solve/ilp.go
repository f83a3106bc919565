package solve

import (
	"math"

	"dmir/base/milp"
)

// An ILP is the integer linear program of a problem: that of Alpa (Zheng et al., "Alpa: Automating inter-
// and intra-operator parallelism for distributed deep learning", OSDI 2022, section 4.2). A column in
// {0, 1} is 1 if a variable has a choice, and a column in [0, 1] is 1 if an edge's two variables have a
// pair of choices; the columns of an edge's pairs that have a choice add up to the choice's column,
// which makes them products of the columns of choices. Each limit is a row, and each excess term a column
// ≥ 0 that is at least the sum.
type ILP struct {
	Program *milp.Program
	Unit    float64 // cost that is 1 in the program

	p       *Problem
	choices []int32 // by variable: the column of its first choice
	pairs   []int32 // by edge: the column of its first pair
	excess  []int32
}

// NewILP formulates p, which must be well-formed. Costs are scaled by a power of two so that the largest
// finite one is near 1000, and limits so that Max is, since tolerances of solvers are absolute.
func NewILP(p *Problem) *ILP {
	out := &ILP{Program: &milp.Program{}, Unit: 1, p: p}
	largest := 0.0
	each(p, func(c float64) { largest = max(largest, c) })
	if largest > 0 {
		out.Unit = powerOf2(largest / 1000)
	}
	q := out.Program
	column := func(c float64, integer bool) int32 {
		if math.IsInf(c, 1) {
			return q.Column(0, 0, 0, integer)
		}
		return q.Column(c/out.Unit, 0, 1, integer)
	}
	for _, costs := range p.Unary {
		out.choices = append(out.choices, int32(len(q.Cost)))
		for _, c := range costs {
			column(c, true)
		}
	}
	for _, e := range p.Edges {
		out.pairs = append(out.pairs, int32(len(q.Cost)))
		for _, c := range e.Cost {
			column(c, false)
		}
	}
	for range p.Excess {
		out.excess = append(out.excess, q.Column(1, 0, math.Inf(1), false))
	}
	for v, costs := range p.Unary {
		for i := range costs {
			q.Entry(out.choices[v]+int32(i), 1)
		}
		q.Row(1, 1)
	}
	for k, e := range p.Edges {
		nu, nv := len(p.Unary[e.U]), len(p.Unary[e.V])
		for i := range nu {
			for j := range nv {
				q.Entry(out.pairs[k]+int32(i*nv+j), 1)
			}
			q.Entry(out.choices[e.U]+int32(i), -1)
			q.Row(0, 0)
		}
		for j := range nv {
			for i := range nu {
				q.Entry(out.pairs[k]+int32(i*nv+j), 1)
			}
			q.Entry(out.choices[e.V]+int32(j), -1)
			q.Row(0, 0)
		}
	}
	out.limits()
	out.excesses()
	return out
}

// each calls f with the absolute values of the finite costs.
func each(p *Problem, f func(float64)) {
	of := func(costs []float64) {
		for _, c := range costs {
			if c = math.Abs(c); c <= math.MaxFloat64 {
				f(c)
			}
		}
	}
	for _, c := range p.Unary {
		of(c)
	}
	for _, e := range p.Edges {
		of(e.Cost)
	}
}

func powerOf2(x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, e)
}

func (l *ILP) limits() {
	q := l.Program
	for _, limit := range l.p.Limits {
		if math.IsInf(limit.Max, 1) {
			continue
		}
		unit := 1.0
		if limit.Max != 0 && !math.IsInf(limit.Max, -1) {
			unit = powerOf2(math.Abs(limit.Max) / 1000)
		}
		for v, use := range limit.Use {
			for i, c := range use {
				if c != 0 {
					q.Entry(l.choices[v]+int32(i), c/unit)
				}
			}
		}
		q.Row(math.Inf(-1), limit.Max/unit)
	}
}

func (l *ILP) excesses() {
	q := l.Program
	for k, x := range l.p.Excess {
		for v, costs := range x.Unary {
			for i, c := range costs {
				if c != 0 {
					q.Entry(l.choices[v]+int32(i), c/l.Unit)
				}
			}
		}
		for e, costs := range x.Edges {
			for i, c := range costs {
				if c != 0 {
					q.Entry(l.pairs[e]+int32(i), c/l.Unit)
				}
			}
		}
		q.Entry(l.excess[k], -1)
		q.Row(math.Inf(-1), -x.Base/l.Unit)
	}
}

// Start sets the program's guess to a choice.
func (l *ILP) Start(choice []int) {
	x := make([]float64, len(l.Program.Cost))
	for v, i := range choice {
		x[l.choices[v]+int32(i)] = 1
	}
	for k := range l.p.Edges {
		x[l.pairs[k]+int32(l.p.at(&l.p.Edges[k], choice))] = 1
	}
	for k := range l.p.Excess {
		x[l.excess[k]] = max(0, l.p.above(k, choice)) / l.Unit
	}
	l.Program.Guess = x
}

// Choice returns the choice that a solution of the program makes.
func (l *ILP) Choice(x []float64) []int {
	choice := make([]int, len(l.p.Unary))
	for v, costs := range l.p.Unary {
		first := l.choices[v]
		for i := range costs {
			if x[first+int32(i)] > x[first+int32(choice[v])] {
				choice[v] = i
			}
		}
	}
	return choice
}
