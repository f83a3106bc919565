package solve

import (
	"math"
	"slices"
)

// reduce returns an equivalent model with fewer choices: without those that are infinite, that no
// choice of a neighbour goes with (arc consistency), that exceed a limit whatever the others are, or
// that another choice of the same variable is no worse than, whatever the neighbours choose (Goldstein,
// "Efficient rotamer elimination applied to protein side-chains", 1994). It reports false if a variable
// has no choice left. Without limits it keeps the choices that exceed one.
func reduce(m *model, limits bool, stats *Stats) (*model, bool) {
	for round := 0; ; round++ {
		alive := m.all()
		changed := round == 0 // variables with one choice are still to be folded
		dirty := make([]bool, len(m.vars))
		for v := range dirty {
			dirty[v] = true
		}
		for again := true; again; {
			narrowed, ok := m.consistent(alive, limits)
			if !ok {
				return m, false
			}
			again = m.dominated(alive, dirty, stats)
			changed = changed || narrowed || again
		}
		next := m
		if changed {
			next = m.restrict(alive)
		}
		if !next.settle() && (!changed || len(next.edges) == len(m.edges)) {
			return next, true
		}
		m = next
	}
}

// all returns a mask with every choice.
func (m *model) all() [][]bool {
	alive := make([][]bool, len(m.vars))
	for v := range alive {
		alive[v] = make([]bool, m.size(v))
		for i := range alive[v] {
			alive[v][i] = true
		}
	}
	return alive
}

// consistent removes from alive what hard constraints rule out. It reports whether something was
// removed, and whether each variable has a choice left.
func (m *model) consistent(alive [][]bool, limits bool) (changed, ok bool) {
	for v := range m.vars {
		for i, c := range m.vars[v].cost[0] {
			if math.IsInf(c, 1) && alive[v][i] {
				alive[v][i] = false
				changed = true
			}
		}
	}
	// Variables whose choices changed, and whose neighbours are to be revised.
	queue := make([]int, len(m.vars))
	queued := make([]bool, len(m.vars))
	hard := make([]bool, len(m.edges))
	for v := range queue {
		queue[v], queued[v] = v, true
	}
	for i := range m.edges {
		for _, c := range m.edges[i].cost[0] {
			if math.IsInf(c, 1) {
				hard[i] = true
				break
			}
		}
	}
	push := func(v int) {
		changed = true
		if !queued[v] {
			queued[v] = true
			queue = append(queue, v)
		}
	}
	for {
		for len(queue) > 0 {
			v := queue[0]
			queue = queue[1:]
			queued[v] = false
			if none(alive[v]) {
				return changed, false
			}
			for _, at := range m.vars[v].edges {
				if hard[at] && m.revise(&m.edges[at], v, alive) {
					push(m.edges[at].other(v))
				}
			}
		}
		ok := true
		for l := m.excess + 1; limits && l < m.layers(); l++ {
			ok = m.withinLimit(l, alive, push) && ok
		}
		if !ok || len(queue) == 0 {
			return changed, ok
		}
	}
}

// revise removes the choices of v's neighbour that none of v's goes with.
func (m *model) revise(e *edge, v int, alive [][]bool) bool {
	w := e.other(v)
	stepV, stepW := m.size(e.v), 1
	if v == e.v {
		stepV, stepW = stepW, stepV
	}
	changed := false
	for j, on := range alive[w] {
		if !on {
			continue
		}
		found := false
		for i, on := range alive[v] {
			if on && !math.IsInf(e.cost[0][i*stepV+j*stepW], 1) {
				found = true
				break
			}
		}
		if !found {
			alive[w][j] = false
			changed = true
		}
	}
	return changed
}

func none(alive []bool) bool {
	for _, on := range alive {
		if on {
			return false
		}
	}
	return true
}

// withinLimit removes the choices that exceed a limit even if every other variable uses the least. The
// margin keeps choices that only rounding rules out. It reports false if a variable has none left.
func (m *model) withinLimit(l int, alive [][]bool, removed func(v int)) bool {
	least := m.base[l]
	margin := m.margin[l]
	lows := make([]float64, len(m.vars))
	for v := range m.vars {
		c := m.vars[v].cost[l]
		if c == nil {
			continue
		}
		lows[v] = math.Inf(1)
		for i, on := range alive[v] {
			if on {
				lows[v] = min(lows[v], c[i])
			}
		}
		least += lows[v]
	}
	if least > margin {
		return false
	}
	for v := range m.vars {
		c := m.vars[v].cost[l]
		if c == nil {
			continue
		}
		for i, on := range alive[v] {
			if on && least+c[i]-lows[v] > margin {
				alive[v][i] = false
				removed(v)
			}
		}
	}
	return true
}

// settle removes the excess layers and limits that no choice brings above 0, and adds to the cost the
// excess layers that every choice does. It reports whether there were any.
func (m *model) settle() bool {
	changed := false
	for l := 1; l < m.layers(); l++ {
		low, high, used := m.base[l], m.base[l], m.base[l] != 0
		of := func(c []float64) {
			if c != nil {
				low, high, used = low+slices.Min(c), high+slices.Max(c), true
			}
		}
		for v := range m.vars {
			of(m.vars[v].cost[l])
		}
		for i := range m.edges {
			if !m.isLimit(l) {
				of(m.edges[i].cost[l])
			}
		}
		if used && (high <= -m.margin[l] || (low >= 0 && !m.isLimit(l))) {
			m.drop(l, high > 0)
			changed = true
		}
	}
	return changed
}

// drop removes layer l, or moves it to layer 0.
func (m *model) drop(l int, move bool) {
	of := func(cost [][]float64) {
		if l >= len(cost) || cost[l] == nil {
			return
		}
		if move {
			sum := slices.Clone(cost[0]) // models share tables
			addTo(sum, cost[l])
			cost[0] = sum
		}
		cost[l] = nil
	}
	for v := range m.vars {
		of(m.vars[v].cost)
	}
	for i := range m.edges {
		of(m.edges[i].cost)
	}
	if move {
		m.base[0] += m.base[l]
	}
	m.base[l] = 0
}
