package solve

import (
	"math"
	"slices"
)

// direct is the number of entries up to which elimination takes less time than message passing.
const direct = 1 << 16

// A relaxation is a model whose limits and excess terms are weighted and added to the cost.
type relaxation struct {
	s      *search
	m      *model
	exact  *eliminator // or
	rough  *diffuser
	x      []int
	master *master
	pool   []column
	climb  *climber
}

// bound minimises the weighted layers. It sets x and offers what it finds.
func (r *relaxation) bound(w []float64) float64 {
	r.s.out.Stats.Evaluations++
	if r.exact != nil {
		r.exact.load(w)
		least := r.exact.run()
		if !math.IsInf(least, 1) {
			r.exact.trace(r.x)
			r.found()
		}
		return least
	}
	return r.rough.run(w, r.x, r.s.cutoff(), r.found, r.s.ended)
}

// found offers x and what climbing makes of it, and adds it to the master.
func (r *relaxation) found() {
	r.column(r.x)
	c := slices.Clone(r.x)
	r.climb.climb(c)
	if !slices.Equal(c, r.x) {
		r.column(c)
	}
}

// has reports whether the node has a choice of the relaxation's model.
func (r *relaxation) has(x []int) bool {
	if r.exact == nil || r.exact.only == nil {
		return true
	}
	for v, i := range x {
		if !r.exact.only[v][i] {
			return false
		}
	}
	return true
}

func (r *relaxation) column(x []int) {
	sums := make([]float64, r.m.layers())
	r.m.sums(x, sums)
	if math.IsInf(sums[0], 1) {
		return
	}
	choice := r.m.choice(x)
	r.s.offer(choice)
	if r.has(x) {
		r.add(column{choice, sums})
	}
}

func (r *relaxation) add(c column) {
	r.pool = append(r.pool, c)
	if r.master == nil {
		r.master = newMaster(r.caps(), c.sums)
	} else {
		r.master.add(c.sums)
	}
}

// caps returns the largest multipliers: 1 for an excess term, and for a limit more than what the costs
// can make of the smallest amounts that matter.
func (r *relaxation) caps() []float64 {
	most := make([]float64, r.m.layers())
	scale := 1e-300
	if r.m.limits > 0 {
		scale += r.m.scale()
	}
	for l := 1; l < len(most); l++ {
		most[l] = 1
		if r.m.isLimit(l) {
			span := 0.0
			for v := range r.m.vars {
				if c := r.m.vars[v].cost[l]; c != nil {
					span = max(span, slices.Max(c)-slices.Min(c))
				}
			}
			if span > 0 {
				most[l] = 1e4 * scale * float64(len(r.m.vars)) / span
			}
		}
	}
	return most
}

// dual raises the bound by better multipliers. It returns the best bound and leaves its multipliers in w.
func (r *relaxation) dual(w []float64, evaluations int) float64 {
	best := math.Inf(-1)
	next := slices.Clone(w)
	for k := range evaluations {
		if k > 0 && r.s.ended() {
			break
		}
		bound := r.bound(next)
		if bound > best {
			best = bound
			copy(w, next)
		}
		if best >= r.s.cutoff() || r.master == nil || len(w) == 1 {
			break
		}
		r.master.optimize()
		// No multipliers raise the bound above the program's value.
		if left, cutoff := r.master.value()-best, r.s.cutoff(); left <= 1e-10*math.Abs(best) ||
			(best+left < cutoff && left < (cutoff-best)/32) {
			break
		}
		last := slices.Clone(next)
		r.master.multipliers(next)
		if slices.Equal(last, next) {
			break
		}
	}
	return best
}

// relaxation returns the relaxation of a model by elimination along p, or by message passing if p does
// not eliminate all variables, or takes long and there is another try.
func (s *search) relaxation(m *model, p *plan, patient bool) *relaxation {
	r := &relaxation{s: s, m: m, x: make([]int, len(m.vars)), climb: newClimber(m)}
	switch {
	case p == nil:
	case len(p.core) == 0 && (p.entries <= direct || !patient):
		r.exact = newEliminator(m, p, &s.out.Stats)
	default:
		r.rough = newDiffuser(m, order(m, math.Inf(1), 2), s.o.Sweeps, &s.out.Stats)
	}
	return r
}

func clone(alive [][]bool) [][]bool {
	out := make([][]bool, len(alive))
	for v := range alive {
		out[v] = slices.Clone(alive[v])
	}
	return out
}

// seed adds a choice of the problem as a column if the node has it.
func (r *relaxation) seed(c column) {
	x := make([]int, len(c.choice))
	for v, i := range c.choice {
		at, ok := slices.BinarySearch(r.m.vars[v].choices, i)
		if !ok {
			return
		}
		x[v] = at
	}
	sums := make([]float64, r.m.layers())
	r.m.sums(x, sums)
	if !math.IsInf(sums[0], 1) && r.has(x) {
		r.add(column{c.choice, sums})
	}
}

// mixed returns the choices that the master's optimum consists of.
func (r *relaxation) mixed() []column {
	var out []column
	if r.master != nil {
		r.master.shares(func(c int, _ float64) { out = append(out, r.pool[c]) })
	}
	return out
}

// margins returns how much the weighted layers grow at least above a bound with each choice of a variable
// (nil: unknown), and the bound, after dual.
func (r *relaxation) margins(w []float64) ([][]float64, float64) {
	if r.exact != nil {
		r.exact.load(w)
		bound := r.exact.run()
		return r.exact.margins(), bound
	}
	return r.rough.margins(), r.rough.bound
}

// fix returns which choices of a model may be part of a better answer, by their reduced costs.
func (s *search) fix(m *model, margins [][]float64, bound float64) [][]bool {
	alive := m.all()
	cutoff := s.cutoff()
	for v, margin := range margins {
		for i, c := range margin {
			if bound+c >= cutoff {
				alive[v][i] = false
				s.pruned = min(s.pruned, bound+c)
			}
		}
	}
	return alive
}
