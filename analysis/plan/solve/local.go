package solve

import (
	"cmp"
	"math"
	"slices"
)

// A climber improves choices of a model, one variable at a time (iterated conditional modes, Besag
// 1986), by their true value, with excess terms and limits.
type climber struct {
	m     *model
	sums  []float64
	delta []float64 // by layer and choice of the variable looked at
}

func newClimber(m *model) *climber {
	most := 0
	for v := range m.vars {
		most = max(most, m.size(v))
	}
	return &climber{m: m, sums: make([]float64, m.layers()), delta: make([]float64, most*m.layers())}
}

// climb changes x until no change of one variable improves it. A choice that exceeds a limit first
// gets what reduces the excess at the least cost.
func (c *climber) climb(x []int) {
	m := c.m
	m.sums(x, c.sums)
	for range 10 {
		if c.over() == 0 || !c.repair(x) {
			break
		}
	}
	for range 100 {
		changed := false
		for v := range m.vars {
			if m.size(v) > 1 && c.improve(x, v) {
				changed = true
			}
		}
		if !changed {
			return
		}
	}
}

// over is how far the limits are exceeded.
func (c *climber) over() float64 {
	sum := 0.0
	for l := c.m.excess + 1; l < len(c.sums); l++ {
		sum += max(0, c.sums[l])
	}
	return sum
}

// look fills delta with the layers of each choice of v, given the others.
func (c *climber) look(x []int, v int) {
	m := c.m
	d := m.size(v)
	for l := range m.layers() {
		row := c.delta[l*d : (l+1)*d]
		clear(row)
		if cost := m.vars[v].cost[l]; cost != nil {
			copy(row, cost)
		}
		if m.isLimit(l) {
			continue
		}
		for _, at := range m.vars[v].edges {
			e := &m.edges[at]
			cost := e.cost[l]
			if cost == nil {
				continue
			}
			if v == e.u {
				dv := m.size(e.v)
				for i := range row {
					row[i] += cost[i*dv+x[e.v]]
				}
			} else {
				addTo(row, cost[x[e.u]*d:][:d])
			}
		}
	}
}

// grown returns how much the cost and the exceeding of limits grow if v takes choice i in place of now.
func (c *climber) grown(d, now, i int) (cost, over float64) {
	a, b := c.delta[now], c.delta[i]
	switch {
	case math.IsInf(b, 1):
		return math.Inf(1), 0
	case math.IsInf(a, 1):
		cost = math.Inf(-1)
	default:
		cost = b - a
	}
	for l := 1; l < len(c.sums); l++ {
		s := c.sums[l]
		change := c.delta[l*d+i] - c.delta[l*d+now]
		if c.m.isLimit(l) {
			over += max(0, s+change) - max(0, s)
		} else {
			cost += max(0, s+change) - max(0, s)
		}
	}
	return cost, over
}

func (c *climber) improve(x []int, v int) bool {
	d := c.m.size(v)
	c.look(x, v)
	now, best, least, fewest := x[v], x[v], 0.0, 0.0
	for i := range d {
		if i == now {
			continue
		}
		if cost, over := c.grown(d, now, i); over < fewest && !math.IsInf(cost, 1) || over == fewest && cost < least {
			best, least, fewest = i, cost, over
		}
	}
	if best == now || (fewest == 0 && least > -1e-13*math.Abs(c.sums[0])) {
		return false
	}
	c.set(x, v, best)
	return true
}

// set takes choice i of v, whose layers delta has.
func (c *climber) set(x []int, v, i int) {
	d := c.m.size(v)
	infinite := math.IsInf(c.delta[x[v]], 1)
	for l := range c.sums {
		c.sums[l] += c.delta[l*d+i] - c.delta[l*d+x[v]]
	}
	x[v] = i
	if infinite {
		c.m.sums(x, c.sums)
	}
}

// repair changes one variable after the other, those first whose change costs the least for what it
// reduces the exceeding of limits by, until none is exceeded. It reports false if nothing helps.
func (c *climber) repair(x []int) bool {
	type change struct {
		v    int
		rate float64
	}
	var changes []change
	for v := range c.m.vars {
		if c.m.size(v) > 1 {
			if _, rate := c.relief(x, v); !math.IsInf(rate, 1) {
				changes = append(changes, change{v, rate})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.rate, b.rate) })
	changed := false
	for _, t := range changes {
		if c.over() == 0 {
			break
		}
		if i, rate := c.relief(x, t.v); !math.IsInf(rate, 1) {
			c.set(x, t.v, i)
			changed = true
		}
	}
	return changed
}

// relief returns the choice of v that reduces the exceeding of limits at the least cost for what it
// reduces, and this rate.
func (c *climber) relief(x []int, v int) (int, float64) {
	d := c.m.size(v)
	over := c.over()
	best, least := x[v], math.Inf(1)
	c.look(x, v)
	for i := range d {
		cost, change := c.grown(d, x[v], i)
		if i == x[v] || change >= 0 || math.IsInf(cost, 1) {
			continue
		}
		if rate := cost / min(-change, over); rate < least {
			best, least = i, rate
		}
	}
	return best, least
}
