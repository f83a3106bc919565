package solve

import (
	"container/heap"
	"math"
	"slices"
)

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
	return r.rough.run(w, r.x, r.s.cutoff(), r.found)
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
	if r.m.value(sums) < math.Inf(1) {
		r.s.offer(choice)
	}
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
		if r.master.value()-best <= 1e-10*math.Abs(best) {
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

// direct is the number of entries up to which elimination takes less time than message passing.
const direct = 1 << 16

// root bounds the problem, and narrows the model to the choices that may be part of a better answer than
// the best one known, as long as that helps. Then it opens the root of the search tree. It reports true
// if there is nothing left to search.
func (s *search) root() bool {
	s.setUp()
	w := make([]float64, s.m.layers())
	w[0] = 1
	bound := math.Inf(-1)
	var seeds []column
	for patient := true; ; {
		p := order(s.m, float64(s.o.Entries), len(s.m.vars))
		if s.out.Stats.Entries == 0 || len(p.core) == 0 {
			s.out.Stats.Entries = p.entries
		}
		r := s.relaxation(s.m, p, patient)
		for _, c := range seeds {
			r.seed(c)
		}
		bound = max(bound, r.dual(w, 30))
		done := bound >= s.cutoff() || (r.exact != nil && s.linear())
		if r.rough != nil && done {
			s.out.Method = Messages
		}
		var fixed [][]bool
		if !done && !s.ended() {
			fixed = r.fix(w, bound)
			if r.rough != nil {
				bound = max(bound, r.rough.bound)
			}
		}
		if fixed == nil || bound >= s.cutoff() {
			s.out.Bound = bound
			return true
		}
		seeds = r.mixed()
		before := s.m.count()
		m, ok := reduce(s.m.restrict(fixed), true)
		if !ok { // no choice is better than the best one known by more than the gap
			s.out.Bound = s.cutoff()
			return true
		}
		s.m = m
		helped := 10*m.count() < 9*before
		switch {
		case helped:
		case r.rough != nil && len(p.core) == 0 && patient:
			patient = false
		default:
			if p := order(m, direct, len(m.vars)); len(p.core) == 0 {
				s.exact = newEliminator(m, p, &s.out.Stats)
			}
			heap.Push(&s.open, &node{alive: s.m.all(), w: w, seeds: seeds, bound: bound})
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

// process bounds a node, drops choices that are not part of a better answer, and splits it in two.
func (s *search) process(n *node) {
	alive := n.alive
	w := slices.Clone(n.w)
	bound := n.bound
	var r *relaxation
	for again := true; again; {
		var ok bool
		if r, ok = s.relax(alive); !ok {
			return
		}
		for _, c := range n.seeds {
			r.seed(c)
		}
		bound = max(bound, r.dual(w, 8))
		done := bound >= s.cutoff() || (r.exact != nil && s.linear())
		if !done && !s.ended() {
			next, dropped := s.keep(alive, r.m, r.fix(w, bound))
			if r.rough != nil {
				bound = max(bound, r.rough.bound)
				done = bound >= s.cutoff()
			}
			again = dropped > 0 && r.rough != nil
			alive = next
		}
		if done {
			s.pruned = min(s.pruned, bound)
			return
		}
		if s.ended() || s.out.Stats.Nodes >= s.o.Nodes {
			n.bound = max(n.bound, bound)
			heap.Push(&s.open, n)
			return
		}
	}
	s.split(n, alive, r, w, bound)
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

// relax returns the relaxation of the model with the choices of alive: by the eliminator of the whole
// model, which knows many of the tables, or else of what is left of the model.
func (s *search) relax(alive [][]bool) (*relaxation, bool) {
	if s.exact != nil {
		alive = clone(alive)
		if _, ok := s.m.consistent(alive, true); !ok {
			return nil, false
		}
		s.exact.only = alive
		r := s.relaxation(s.m, nil, false)
		r.exact = s.exact
		return r, true
	}
	m, ok := reduce(s.m.restrict(alive), true)
	if !ok {
		return nil, false
	}
	return s.relaxation(m, order(m, float64(s.o.Entries), len(m.vars)), false), true
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

// fix returns which choices of the relaxation's model may be part of a better answer, by their reduced
// costs.
func (r *relaxation) fix(w []float64, bound float64) [][]bool {
	var margins [][]float64
	cutoff := r.s.cutoff()
	if r.exact != nil {
		r.exact.load(w)
		bound = r.exact.run()
		margins = r.exact.margins()
	} else {
		margins = r.rough.margins()
		bound = r.rough.bound
	}
	alive := r.m.all()
	for v, margin := range margins {
		for i, c := range margin {
			alive[v][i] = !math.IsInf(c, 1) && bound+c < cutoff
		}
	}
	if r.exact != nil && r.exact.only != nil {
		for v := range alive {
			for i, on := range r.exact.only[v] {
				alive[v][i] = alive[v][i] && on
			}
		}
	}
	return alive
}

// keep removes from alive, which is by the choices of the whole model, those that m lacks or has but for
// those of fixed. It returns the rest and how many were removed.
func (s *search) keep(alive [][]bool, m *model, fixed [][]bool) ([][]bool, int) {
	out := clone(alive)
	removed := 0
	for v := range out {
		at := 0
		for i, on := range out[v] {
			c := s.m.vars[v].choices[i]
			for at < m.size(v) && m.vars[v].choices[at] < c {
				at++
			}
			if on && (at == m.size(v) || m.vars[v].choices[at] != c || !fixed[v][at]) {
				out[v][i] = false
				removed++
			}
		}
	}
	return out, removed
}

// split opens two nodes, which have the choices of alive but for those of one variable.
func (s *search) split(n *node, alive [][]bool, r *relaxation, w []float64, bound float64) {
	v, first := r.divide(alive)
	if v < 0 {
		// Each variable has one choice: the relaxation's choice is the only one.
		s.pruned = min(s.pruned, max(bound, n.bound))
		return
	}
	seeds := r.mixed()
	for _, side := range []bool{true, false} {
		child := &node{alive: slices.Clone(alive), w: w, seeds: seeds, bound: max(bound, n.bound), depth: n.depth + 1, seq: s.seq}
		s.seq++
		child.alive[v] = slices.Clone(alive[v])
		for i := range first {
			if first[i] != side {
				child.alive[v][i] = false
			}
		}
		if !none(child.alive[v]) {
			heap.Push(&s.open, child)
		}
	}
}

// divide chooses a variable and which of its choices, of the whole model, the first half has: one in
// which the choices that the master mixes differ most in what their layers add up to, or else the one
// with the most choices. It returns −1 if no variable has two.
func (r *relaxation) divide(alive [][]bool) (int, []bool) {
	weights := make([]float64, r.m.layers())
	var used []int
	if r.master != nil {
		r.master.multipliers(weights)
		r.master.shares(func(c int, share float64) {
			if share > 1e-9 {
				used = append(used, c)
			}
		})
	}
	best, score := -1, -1.0
	var low, high, layer int
	for v := range r.m.vars {
		x := &r.m.vars[v]
		if r.m.size(v) < 2 || count(alive[v]) < 2 {
			continue
		}
		for i, a := range used {
			for _, b := range used[i+1:] {
				if r.pool[a].choice[v] == r.pool[b].choice[v] {
					continue
				}
				p, _ := slices.BinarySearch(x.choices, r.pool[a].choice[v])
				q, _ := slices.BinarySearch(x.choices, r.pool[b].choice[v])
				most, at := 0.0, 0
				for l := 1; l < len(weights); l++ {
					if c := x.cost[l]; c != nil {
						if d := math.Abs(c[p]-c[q]) * weights[l]; d > most {
							most, at = d, l
						}
					}
				}
				if most > score {
					best, score, low, high, layer = v, most, p, q, at
				}
			}
		}
	}
	if best < 0 {
		for v := range alive {
			if k := count(alive[v]); k > 1 && (best < 0 || k > count(alive[best])) {
				best = v
			}
		}
		if best < 0 {
			return -1, nil
		}
		first := make([]bool, len(alive[best]))
		at := slices.Index(r.s.m.vars[best].choices, r.m.vars[best].choices[r.x[best]])
		if !alive[best][at] {
			at = slices.Index(alive[best], true)
		}
		first[at] = true
		return best, first
	}
	first := make([]bool, len(alive[best]))
	cost := r.m.vars[best].cost[layer]
	at := 0
	for i := range first {
		c := r.s.m.vars[best].choices[i]
		for at < r.m.size(best) && r.m.vars[best].choices[at] < c {
			at++
		}
		if at == r.m.size(best) || r.m.vars[best].choices[at] != c {
			continue
		}
		if layer == 0 {
			first[i] = at == low
		} else {
			first[i] = cost[at] <= (cost[low]+cost[high])/2
		}
	}
	return best, first
}

func count(alive []bool) int {
	n := 0
	for _, on := range alive {
		if on {
			n++
		}
	}
	return n
}
