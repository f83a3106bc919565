package solve

import (
	"cmp"
	"math"
	"slices"
)

// A rivalry compares the choices of one variable after the other.
type rivalry struct {
	m     *model
	alive [][]bool
	v     int
	sides []side
	fit   [][]int   // by edge of v, by choice: the choice of the neighbour that costs least with it, −1: none
	least []float64 // by edge of v: how much layer 0 grows if the neighbour fits the choice given up
	marks [][]float64
	stats *Stats
}

// A side is an edge seen from one of its variables: the entry of choices i of v and j of its neighbour is at
// i·stepV + j·stepW.
type side struct {
	e            *edge
	w            int
	stepV, stepW int
}

// dominated removes choices that another one is no worse than, whatever the neighbours choose, from the
// variables that are dirty, and from the neighbours of those that lose one. It reports whether there
// were any.
func (m *model) dominated(alive [][]bool, dirty []bool, stats *Stats) bool {
	changed := false
	var queue []int
	for v, on := range dirty {
		if on && m.size(v) > 1 {
			queue = append(queue, v)
		}
	}
	r := &rivalry{m: m, alive: alive, stats: stats}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		dirty[v] = false
		r.of(v)
		lost := false
		for a := range alive[v] {
			if !alive[v][a] {
				continue
			}
			for b := range alive[v] {
				if a == b || !alive[v][b] || r.told(b, a) {
					continue
				}
				if stats.Compared++; r.noWorse(b, a) {
					alive[v][a] = false
					lost = true
					break
				}
			}
		}
		if !lost {
			continue
		}
		changed = true
		for _, s := range r.sides {
			if !dirty[s.w] {
				dirty[s.w] = true
				queue = append(queue, s.w)
			}
		}
	}
	return changed
}

// of begins with a variable.
func (r *rivalry) of(v int) {
	m := r.m
	r.v = v
	r.sides = r.sides[:0]
	n := len(m.vars[v].edges)
	r.fit = slices.Grow(r.fit[:0], n)[:n]
	r.least = slices.Grow(r.least[:0], n)[:n]
	for k, at := range m.vars[v].edges {
		e := &m.edges[at]
		s := side{e: e, w: e.other(v), stepV: m.size(e.v), stepW: 1}
		if v == e.v {
			s.stepV, s.stepW = s.stepW, s.stepV
		}
		r.sides = append(r.sides, s)
		r.fit[k] = slices.Grow(r.fit[k][:0], m.size(v))[:m.size(v)]
		for i := range r.fit[k] {
			best, least := -1, math.Inf(1)
			for j, on := range r.alive[s.w] {
				if c := e.cost[0][i*s.stepV+j*s.stepW]; on && c < least {
					best, least = j, c
				}
			}
			r.fit[k][i] = best
		}
	}
	r.mark()
}

// mark gives each choice a few numbers. One choice is no worse than another only where none of its numbers is above that of
// the other: what it costs with the neighbours' choices that go best with it, and with those that go best with the cheapest choice, the
// dearest one and one between.
func (r *rivalry) mark() {
	d := r.m.size(r.v)
	r.marks = r.marks[:0]
	add := func(of func(k, i int) float64) {
		mark := slices.Clone(r.m.vars[r.v].cost[0])
		for k := range r.sides {
			for i := range mark {
				mark[i] += of(k, i)
			}
		}
		r.marks = append(r.marks, mark)
	}
	with := func(k, i, j int) float64 {
		if j < 0 {
			return math.Inf(1)
		}
		s := &r.sides[k]
		return s.e.cost[0][i*s.stepV+j*s.stepW]
	}
	add(func(k, i int) float64 { return with(k, i, r.fit[k][i]) })
	var order []int
	for i := range d {
		if r.alive[r.v][i] && !math.IsInf(r.marks[0][i], 1) {
			order = append(order, i)
		}
	}
	if len(order) < 3 {
		return
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.marks[0][a], r.marks[0][b]) })
	for _, like := range []int{order[0], order[len(order)-1], order[len(order)/2]} {
		add(func(k, i int) float64 { return with(k, i, r.fit[k][like]) })
	}
}

// told reports whether the marks tell that choice b costs more than a with some choices of the neighbours that go with a.
func (r *rivalry) told(b, a int) bool {
	for _, mark := range r.marks {
		if x, y := mark[b], mark[a]; x > y && x-y > 1e-9*math.Abs(y) {
			return true
		}
	}
	return false
}

// noWorse reports whether choice b instead of a never costs more: the cost grows by at most the growth of
// layer 0 and the growth of each excess layer as far as it is above 0.
func (r *rivalry) noWorse(b, a int) bool {
	m := r.m
	x := &m.vars[r.v]
	for l := m.excess + 1; l < m.layers(); l++ {
		if c := x.cost[l]; c != nil && c[b] > c[a] {
			return false
		}
	}
	// The neighbours' choices that go best with a rule most pairs out.
	total := x.cost[0][b] - x.cost[0][a]
	for k := range r.sides {
		r.least[k] = math.Inf(-1)
		if j := r.fit[k][a]; j >= 0 {
			s := &r.sides[k]
			r.least[k] = s.e.cost[0][b*s.stepV+j*s.stepW] - s.e.cost[0][a*s.stepV+j*s.stepW]
		}
		total += r.least[k]
	}
	if total > 0 {
		return false
	}
	if math.IsInf(total, -1) {
		return true // nothing goes with a
	}
	for k := range r.sides {
		if total += r.growth(0, k, b, a) - r.least[k]; total > 0 {
			return false
		}
	}
	// Added up again, since the differences above are rounded.
	total = x.cost[0][b] - x.cost[0][a]
	for k := range r.sides {
		total += r.growth(0, k, b, a)
	}
	for l := 1; l <= m.excess && total <= 0; l++ {
		grown := 0.0
		if c := x.cost[l]; c != nil {
			grown = c[b] - c[a]
		}
		for k := range r.sides {
			if r.sides[k].e.cost[l] != nil {
				grown += r.growth(l, k, b, a)
			}
		}
		total += max(0, grown)
	}
	return total <= 0
}

// growth is the most that a layer of an edge grows with choice b instead of a, over the choices of the
// neighbour that go with a.
func (r *rivalry) growth(l, k, b, a int) float64 {
	s := &r.sides[k]
	c, hard := s.e.cost[l], s.e.cost[0]
	most := math.Inf(-1)
	at, to := a*s.stepV, b*s.stepV
	for _, on := range r.alive[s.w] {
		if on && hard[at] <= math.MaxFloat64 {
			if d := c[to] - c[at]; d > most {
				most = d
			}
		}
		at += s.stepW
		to += s.stepW
	}
	return most
}
