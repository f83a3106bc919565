package solve

import (
	"container/heap"
	"math"
	"slices"
)

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
		evaluations := 8
		if r.rough != nil {
			evaluations = 3
		}
		bound = max(bound, r.dual(w, evaluations))
		done := bound >= s.cutoff() || (r.exact != nil && s.linear())
		if !done && !s.ended() {
			margins, at := r.margins(w)
			bound = max(bound, at)
			done = bound >= s.cutoff()
			next, dropped := s.keep(alive, r.m, s.fix(r.m, margins, at))
			again = r.rough != nil && 10*dropped > r.m.count()
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
	m, ok := reduce(s.m.restrict(alive), true, &s.out.Stats)
	if !ok {
		return nil, false
	}
	return s.relaxation(m, order(m, float64(s.o.Entries), len(m.vars)), false), true
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
		x := make([]int, len(alive))
		for v := range x {
			if x[v] = slices.Index(alive[v], true); x[v] < 0 {
				return // all were given up
			}
		}
		s.offer(s.m.choice(x))
		return
	}
	seeds := r.mixed()
	for _, side := range []bool{true, false} {
		child := &node{alive: slices.Clone(alive), w: w, seeds: seeds, bound: max(bound, n.bound), seq: s.seq}
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
