package solve

import "math"

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
	for range 2 * len(m.vars) {
		if c.over() == 0 {
			break
		}
		if !c.repair(x) {
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

func (c *climber) set(x []int, v, i int) {
	x[v] = i
	c.m.sums(x, c.sums) // anew, so that rounding does not add up
}

// repair makes the change that reduces the exceeding of limits at the least cost for what it reduces.
func (c *climber) repair(x []int) bool {
	bestV, bestI, least := -1, 0, math.Inf(1)
	over := c.over()
	for v := range c.m.vars {
		d := c.m.size(v)
		if d < 2 {
			continue
		}
		c.look(x, v)
		for i := range d {
			if i == x[v] {
				continue
			}
			cost, change := c.grown(d, x[v], i)
			if change >= 0 || math.IsInf(cost, 1) {
				continue
			}
			rate := cost / math.Min(-change, over)
			if rate < least {
				bestV, bestI, least = v, i, rate
			}
		}
	}
	if bestV < 0 {
		return false
	}
	c.set(x, bestV, bestI)
	return true
}
