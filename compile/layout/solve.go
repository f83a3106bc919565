package layout

import (
	"math"
	"slices"
)

// problem is variables of few states each, and what their states cost, alone
// and in pairs. Costs that forbid are +Inf.
type problem struct {
	states []int // of each variable
	alone  [][]float64
	pairs  []pair
}

// pair is what the states of two different variables cost together:
// cost[i · states of b + j].
type pair struct {
	a, b int
	cost []float64
}

// variable adds a variable.
func (p *problem) variable(cost []float64) int {
	p.states = append(p.states, len(cost))
	p.alone = append(p.alone, cost)
	return len(p.states) - 1
}

// together adds a cost for two variables; of one and the same its own.
func (p *problem) together(a, b int, cost func(i, j int) float64) {
	if a == b {
		for i := range p.alone[a] {
			p.alone[a][i] += cost(i, i)
		}
		return
	}
	c := pair{a, b, make([]float64, p.states[a]*p.states[b])}
	for i := range p.states[a] {
		for j := range p.states[b] {
			c.cost[i*p.states[b]+j] = cost(i, j)
		}
	}
	p.pairs = append(p.pairs, c)
}

// cost is what an assignment of states costs.
func (p *problem) cost(states []int) float64 {
	sum := 0.0
	for v, s := range states {
		sum += p.alone[v][s]
	}
	for _, c := range p.pairs {
		sum += c.cost[states[c.a]*p.states[c.b]+states[c.b]]
	}
	return sum
}

// table is a cost that depends on some variables, those first in vars slowest.
type table struct {
	vars []int
	cost []float64
}

// mostCells bounds a table; beyond it the problem is too entangled to be solved
// exactly.
const mostCells = 1 << 20

// solve is an assignment of least cost, by eliminating one variable after the
// other (Bertelè and Brioschi, Nonserial Dynamic Programming, 1972): the costs
// that mention it give way to one of its neighbours, which holds for each of
// their states the least over its own. Variables with the smallest such table
// go first. ok is false where a table would have more than mostCells, or
// nothing is allowed.
func (p *problem) solve() (states []int, ok bool) {
	var tables []*table
	for v, cost := range p.alone {
		tables = append(tables, &table{[]int{v}, cost})
	}
	for _, c := range p.pairs {
		tables = append(tables, &table{[]int{c.a, c.b}, c.cost})
	}
	type step struct {
		v      int
		around []int // the variables that its choice depends on
		choice []int // for each of their states
	}
	var steps []step
	left := make([]int, len(p.states))
	for v := range left {
		left[v] = v
	}
	for len(left) > 0 {
		at, cells, around := 0, math.MaxInt, []int(nil)
		for i, v := range left {
			n, cs := p.neighbours(v, tables)
			if cs < cells {
				at, cells, around = i, cs, n
			}
		}
		if cells > mostCells {
			return nil, false
		}
		v := left[at]
		left = slices.Delete(left, at, at+1)
		var mine []*table
		tables = slices.DeleteFunc(tables, func(t *table) bool {
			if slices.Contains(t.vars, v) {
				mine = append(mine, t)
				return true
			}
			return false
		})
		s := step{v, around, make([]int, cells/max(p.states[v], 1))}
		merged := &table{around, make([]float64, len(s.choice))}
		states := make([]int, len(p.states))
		for cell := range merged.cost {
			p.unpack(around, cell, states)
			best := math.Inf(1)
			for i := range p.states[v] {
				states[v] = i
				sum := 0.0
				for _, t := range mine {
					sum += t.cost[p.pack(t.vars, states)]
				}
				if sum < best {
					best, s.choice[cell] = sum, i
				}
			}
			merged.cost[cell] = best
		}
		steps = append(steps, s)
		tables = append(tables, merged)
	}
	sum := 0.0
	for _, t := range tables {
		sum += t.cost[0]
	}
	if math.IsInf(sum, 1) {
		return nil, false
	}
	states = make([]int, len(p.states))
	for _, s := range slices.Backward(steps) {
		states[s.v] = s.choice[p.pack(s.around, states)]
	}
	return states, true
}

// neighbours are the variables in a table with v, and the size of the table of
// them and v.
func (p *problem) neighbours(v int, tables []*table) (around []int, cells int) {
	for _, t := range tables {
		if !slices.Contains(t.vars, v) {
			continue
		}
		for _, w := range t.vars {
			if w != v && !slices.Contains(around, w) {
				around = append(around, w)
			}
		}
	}
	slices.Sort(around)
	cells = p.states[v]
	for _, w := range around {
		if cells *= p.states[w]; cells > mostCells {
			return around, math.MaxInt - 1
		}
	}
	return around, cells
}

func (p *problem) pack(vars, states []int) int {
	cell := 0
	for _, v := range vars {
		cell = cell*p.states[v] + states[v]
	}
	return cell
}

func (p *problem) unpack(vars []int, cell int, states []int) {
	for _, v := range slices.Backward(vars) {
		states[v] = cell % p.states[v]
		cell /= p.states[v]
	}
}
