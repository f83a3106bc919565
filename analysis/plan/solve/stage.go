package solve

import (
	"container/heap"
	"math"
	"slices"

	"dmir/base/milp"
)

// A stage is a model that has every choice of the problem whose value is below the cutoff, with what is
// known of it.
type stage struct {
	m       *model
	w       []float64 // multipliers
	seeds   []column
	bound   float64
	margins [][]float64 // at w, by variable and choice, above at
	at      float64
}

// stages bounds the problem, and searches what the bound leaves.
func (s *search) stages() {
	s.setUp()
	t := &stage{m: s.m, w: make([]float64, s.m.layers()), bound: math.Inf(-1)}
	t.w[0] = 1
	if s.narrow(t) {
		s.out.Bound = min(t.bound, s.pruned)
		return
	}
	m, ok := reduce(t.m.restrict(s.fix(t.m, t.margins, t.at)), true, &s.out.Stats)
	if !ok {
		s.out.Bound = s.pruned
		return
	}
	s.m = m
	if p := order(m, direct, len(m.vars)); len(p.core) == 0 {
		s.exact = newEliminator(m, p, &s.out.Stats)
	}
	if s.o.MILP != nil && len(order(m, float64(s.o.Entries), len(m.vars)).core) > 0 {
		if t.bound = max(t.bound, s.program(m)); t.bound >= s.cutoff() || s.ended() {
			s.out.Bound = min(t.bound, s.pruned)
			return
		}
	}
	heap.Push(&s.open, &node{alive: m.all(), w: t.w, seeds: t.seeds, bound: t.bound})
	s.branch()
}

// program solves a model as an integer linear program, and returns a bound of it.
func (s *search) program(m *model) float64 {
	ilp := NewILP(m.problem())
	if s.out.Choice != nil {
		if x, ok := m.index(s.out.Choice); ok {
			ilp.Start(x)
		}
	}
	r, err := s.o.MILP.Solve(s.ctx, ilp.Program, milp.Limits{Time: s.o.MILPLimit, Gap: s.o.Gap})
	if err != nil {
		if !s.ended() {
			s.err = err
		}
		return math.Inf(-1)
	}
	s.out.Method = s.o.MILP.Name()
	if r.X != nil {
		s.offer(m.choice(ilp.Choice(r.X)))
	}
	return m.base[0] + r.Bound*ilp.Unit
}

// problem returns a model as a problem, without the constant of layer 0.
func (m *model) problem() *Problem {
	p := &Problem{}
	for v := range m.vars {
		p.Unary = append(p.Unary, m.vars[v].cost[0])
	}
	for i := range m.edges {
		e := &m.edges[i]
		p.Edges = append(p.Edges, Edge{e.u, e.v, e.cost[0]})
	}
	for l := 1; l < m.layers(); l++ {
		var lists [][]float64
		for v := range m.vars {
			lists = append(lists, m.vars[v].cost[l])
		}
		if m.isLimit(l) {
			p.Limits = append(p.Limits, Limit{Use: lists, Max: -m.base[l] + m.margin[l]})
			continue
		}
		x := Excess{Base: m.base[l], Unary: lists}
		for i := range m.edges {
			x.Edges = append(x.Edges, m.edges[i].cost[l])
		}
		p.Excess = append(p.Excess, x)
	}
	return p
}

// index returns a choice of the problem as one of the model, if the model has it.
func (m *model) index(choice []int) ([]int, bool) {
	x := make([]int, len(choice))
	for v, i := range choice {
		at, ok := slices.BinarySearch(m.vars[v].choices, i)
		if !ok {
			return nil, false
		}
		x[v] = at
	}
	return x, true
}

// narrow bounds a stage, and takes out of its model the choices that are not part of a better answer than
// the best one known, as long as that helps. It reports true if nothing is left to search.
func (s *search) narrow(t *stage) bool {
	for patient := true; ; {
		s.m = t.m
		p := order(t.m, float64(s.o.Entries), len(t.m.vars))
		if s.out.Stats.Entries == 0 || len(p.core) == 0 {
			s.out.Stats.Entries = p.entries
		}
		r := s.relaxation(t.m, p, patient)
		for _, c := range t.seeds {
			r.seed(c)
		}
		t.bound = max(t.bound, r.dual(t.w, 30))
		s.out.Method = Elimination
		if r.rough != nil {
			s.out.Method = Messages
		}
		if t.bound >= s.cutoff() || (r.exact != nil && s.linear()) || s.ended() {
			return true
		}
		t.margins, t.at = r.margins(t.w)
		if t.bound = max(t.bound, t.at); t.bound >= s.cutoff() {
			return true
		}
		t.seeds = r.mixed()
		alive := s.fix(t.m, t.margins, t.at)
		left := 0
		for v := range alive {
			left += max(0, count(alive[v])-1)
		}
		switch {
		case 10*left < 9*t.m.count():
			m, ok := reduce(t.m.restrict(alive), true, &s.out.Stats)
			if !ok {
				t.bound = math.Inf(1) // but for what was given up
				return true
			}
			t.m = m
		case r.rough != nil && len(p.core) == 0:
			patient = false
		default:
			return false
		}
	}
}

// count is the number of choices of variables with more than one.
func (m *model) count() int {
	n := 0
	for v := range m.vars {
		n += m.size(v) - 1
	}
	return n
}

// linear reports whether there are no limits and excess terms.
func (s *search) linear() bool {
	for l := 1; l < s.m.layers(); l++ {
		if s.m.base[l] != 0 {
			return false
		}
		for v := range s.m.vars {
			if s.m.vars[v].cost[l] != nil {
				return false
			}
		}
		for i := range s.m.edges {
			if c := s.m.edges[i].cost; l < len(c) && c[l] != nil {
				return false
			}
		}
	}
	return true
}
