package solve

import (
	"container/heap"
	"context"
	"math"
	"slices"
)

// A search is one call of Solve.
type search struct {
	ctx context.Context
	err error
	p   *Problem
	o   Options
	m   *model
	out Solution

	open   nodes
	exact  *eliminator // of m, if its tables are small
	pruned float64     // the least bound of what was given up as no better than the cutoff
	seq    int
}

// A node of branch and bound is the model with some of its choices.
type node struct {
	alive [][]bool
	w     []float64 // multipliers of the node it came from
	seeds []column  // choices of that node that may serve this one
	bound float64
	seq   int
}

// A column is a choice of the problem with the sums of the layers.
type column struct {
	choice []int
	sums   []float64
}

type nodes []*node

func (h nodes) Len() int { return len(h) }
func (h nodes) Less(i, j int) bool {
	if h[i].bound != h[j].bound {
		return h[i].bound < h[j].bound
	}
	return h[i].seq > h[j].seq
}
func (h nodes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nodes) Push(x any)   { *h = append(*h, x.(*node)) }
func (h *nodes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newSearch(ctx context.Context, p *Problem, o Options) *search {
	s := &search{ctx: ctx, p: p, o: o, pruned: math.Inf(1)}
	s.out.Value, s.out.Bound, s.out.Method = math.Inf(1), math.Inf(-1), Elimination
	return s
}

// offer takes a choice of the problem if it is the best so far.
func (s *search) offer(choice []int) {
	if value := s.p.Value(choice); value < s.out.Value {
		s.out.Value = value
		s.out.Choice = slices.Clone(choice)
	}
}

// cutoff is the bound from which a node cannot hold a choice that is better by more than the gap.
func (s *search) cutoff() float64 {
	if math.IsInf(s.out.Value, 1) {
		return s.o.Below
	}
	return min(s.o.Below, s.out.Value-s.o.Gap*math.Abs(s.out.Value))
}

func (s *search) ended() bool {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	return s.err != nil
}

func (s *search) infeasible(limit int, least float64) {
	s.out.Infeasible = &Infeasible{Limit: limit, Least: least}
	s.out.Value, s.out.Bound = math.Inf(1), math.Inf(1)
}

// solution completes what is reported.
func (s *search) solution() *Solution {
	out := &s.out
	if out.Infeasible != nil {
		return out
	}
	if math.IsInf(out.Value, 1) && math.IsInf(out.Bound, 1) {
		s.infeasible(-1, 0)
		return out
	}
	out.Bound = min(out.Bound, out.Value)
	if !math.IsInf(out.Value, 1) && out.Value-out.Bound <= 1e-9*math.Abs(out.Value) {
		out.Bound = out.Value
	}
	return out
}

func (s *search) run() {
	if s.ended() {
		return
	}
	if o := s.o.Start; len(o) == len(s.p.Unary) && s.inRange(o) {
		s.offer(o)
	}
	m, ok := reduce(compile(s.p), false, &s.out.Stats)
	if !ok {
		s.out.Choice = nil
		s.infeasible(-1, 0)
		return
	}
	s.m = m
	if s.meet() {
		s.stages()
	}
}

func (s *search) inRange(choice []int) bool {
	for v, i := range choice {
		if i < 0 || i >= len(s.p.Unary[v]) {
			return false
		}
	}
	return true
}

func (s *search) setUp() {
	st := &s.out.Stats
	for v := range s.m.vars {
		if d := s.m.size(v); d > 1 {
			st.Variables++
			st.Choices += d
		}
	}
	st.Edges = len(s.m.edges)
}

// meet finds out whether each limit can be met, and takes the choices that exceed one in any case out
// of the model. It reports false if there are no others.
func (s *search) meet() bool {
	if s.m.limits == 0 {
		return true
	}
	for l := range s.p.Limits {
		if s.ended() {
			return false
		}
		if !s.above(l) {
			continue
		}
		o := s.o
		o.Gap, o.Below = 1e-9, 0
		sub := newSearch(s.ctx, s.p.leastUse(l), o)
		sub.run()
		least := sub.solution()
		s.out.Stats.add(least.Stats)
		if sub.err != nil {
			s.err = sub.err
			return false
		}
		if least.Bound > s.p.Limits[l].Max {
			s.out.Choice = least.Choice
			s.infeasible(l, least.Bound)
			return false
		}
		if least.Choice != nil {
			s.offer(least.Choice)
			s.polish(least.Choice)
		}
	}
	m, ok := reduce(s.m, true, &s.out.Stats)
	if !ok {
		s.out.Choice = nil
		s.infeasible(-1, 0)
		return false
	}
	s.m = m
	return true
}

// above reports whether a choice of the model may exceed a limit.
func (s *search) above(l int) bool {
	layer := 1 + s.m.excess + l
	most := s.m.base[layer]
	for v := range s.m.vars {
		if c := s.m.vars[v].cost[layer]; c != nil {
			most += slices.Max(c)
		}
	}
	return most > 0
}

// leastUse is the problem of using the least of a limit.
func (p *Problem) leastUse(l int) *Problem {
	q := &Problem{Unary: make([][]float64, len(p.Unary))}
	for v, cost := range p.Unary {
		q.Unary[v] = make([]float64, len(cost))
		if v < len(p.Limits[l].Use) {
			copy(q.Unary[v], p.Limits[l].Use[v])
		}
		for i, c := range cost {
			if math.IsInf(c, 1) {
				q.Unary[v][i] = c
			}
		}
	}
	for _, e := range p.Edges {
		if !slices.ContainsFunc(e.Cost, func(c float64) bool { return math.IsInf(c, 1) }) {
			continue
		}
		hard := make([]float64, len(e.Cost))
		for i, c := range e.Cost {
			if math.IsInf(c, 1) {
				hard[i] = c
			}
		}
		q.Edges = append(q.Edges, Edge{e.U, e.V, hard})
	}
	return q
}

func (s *Stats) add(t Stats) {
	s.Evaluations += t.Evaluations
	s.Computed += t.Computed
	s.Reused += t.Reused
	s.Sweeps += t.Sweeps
	s.Nodes += t.Nodes
	s.Compared += t.Compared
}

// polish offers what climbing makes of a choice of the problem, or of a similar one that the model has.
func (s *search) polish(choice []int) {
	x := make([]int, len(choice))
	for v, i := range choice {
		at, ok := slices.BinarySearch(s.m.vars[v].choices, i)
		if !ok {
			at = 0
		}
		x[v] = at
	}
	newClimber(s.m).climb(x)
	s.offer(s.m.choice(x))
}

// branch searches the open nodes, the one of least bound first.
func (s *search) branch() {
	s.out.Method = Branching
	for s.open.Len() > 0 && s.open[0].bound < s.cutoff() {
		if s.out.Stats.Nodes >= s.o.Nodes || s.ended() {
			break
		}
		n := heap.Pop(&s.open).(*node)
		s.out.Stats.Nodes++
		s.process(n)
	}
	s.out.Bound = s.pruned
	for _, n := range s.open {
		s.out.Bound = min(s.out.Bound, n.bound)
	}
}
