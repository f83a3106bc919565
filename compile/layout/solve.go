package layout

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// problem is a set of variables with few states each, and the costs of their
// states, alone and in pairs. Forbidden states cost +Inf.
type problem struct {
	states []int // of each variable
	alone  [][]float64
	pairs  []pair
	ended  func() bool // whether to give up; nil: never
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

// together adds a cost of two variables; with itself, of one.
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

// mostCells bounds a table; beyond it the problem is too dense to be solved
// exactly.
const mostCells = 1 << 20

// solve is an assignment of least cost, by variable elimination (Bertelè and
// Brioschi, Nonserial Dynamic Programming, 1972): the tables with a variable
// are replaced by one of its neighbours, which has for each of their states the
// minimum over its own. Variables with the smallest such table are eliminated
// first. ok is false if a table exceeds mostCells, if no assignment is
// allowed, or if it ended early.
func (p *problem) solve() (states []int, ok bool) {
	e := &elimination{problem: p, of: make([][]*table, len(p.states)), cells: make([]int, len(p.states)), met: make([]int, len(p.states))}
	for v, cost := range p.alone {
		e.add(&table{[]int{v}, cost})
	}
	for _, c := range p.pairs {
		e.add(&table{[]int{c.a, c.b}, c.cost})
	}
	for v, n := range p.states {
		if n > 1 {
			_, e.cells[v] = e.neighbours(v)
			e.open = append(e.open, due{e.cells[v], v})
		}
	}
	heap.Init(&e.open)
	states = make([]int, len(p.states))
	done := make([]bool, len(p.states))
	for len(e.open) > 0 {
		if p.ended != nil && p.ended() {
			return nil, false
		}
		next := heap.Pop(&e.open).(due)
		if done[next.v] || next.cells != e.cells[next.v] {
			continue
		}
		if next.cells > mostCells {
			return nil, false
		}
		done[next.v] = true
		e.eliminate(next.v, states)
	}
	if math.IsInf(e.sum, 1) {
		return nil, false
	}
	for _, s := range slices.Backward(e.steps) {
		states[s.v] = s.choice[p.pack(s.around, states)]
	}
	return states, true
}

// elimination is the state of solve.
type elimination struct {
	*problem
	of    [][]*table // the tables that mention each variable
	cells []int      // the size of the table of each variable and its neighbours
	open  queue      // the variables by it; entries with another size are void
	met   []int      // by variable: in which call of neighbours it was met last
	calls int        // of neighbours
	steps []step
	sum   float64 // of the costs that depend on no remaining variable
}

// due is a variable and the size of the table of it and its neighbours.
type due struct{ cells, v int }

// queue has the variable with the smallest table first, and of several the first.
type queue []due

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].cells, q[j].cells), cmp.Compare(q[i].v, q[j].v)) < 0
}
func (q *queue) Push(x any) { *q = append(*q, x.(due)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// step is an eliminated variable: its choice for each state of its neighbours.
type step struct {
	v      int
	around []int
	choice []int
}

// add adds a table. Variables with one state, most of them, are left out of it.
func (e *elimination) add(t *table) {
	t.vars = slices.DeleteFunc(t.vars, func(v int) bool { return e.states[v] == 1 })
	for _, v := range t.vars {
		e.of[v] = append(e.of[v], t)
	}
	if len(t.vars) == 0 {
		e.sum += t.cost[0]
	}
}

// eliminate replaces the tables that mention v by one of its neighbours. states
// is scratch space.
func (e *elimination) eliminate(v int, states []int) {
	around, cells := e.neighbours(v)
	mine := e.of[v]
	for _, w := range around {
		e.of[w] = slices.DeleteFunc(e.of[w], func(t *table) bool { return slices.Contains(t.vars, v) })
	}
	s := step{v, around, make([]int, cells/max(e.states[v], 1))}
	merged := &table{around, make([]float64, len(s.choice))}
	for cell := range merged.cost {
		e.unpack(around, cell, states)
		best := math.Inf(1)
		for i := range e.states[v] {
			states[v] = i
			sum := 0.0
			for _, t := range mine {
				sum += t.cost[e.pack(t.vars, states)]
			}
			if sum < best {
				best, s.choice[cell] = sum, i
			}
		}
		merged.cost[cell] = best
	}
	e.steps = append(e.steps, s)
	e.add(merged)
	for _, w := range around {
		if _, cells := e.neighbours(w); cells != e.cells[w] {
			e.cells[w] = cells
			heap.Push(&e.open, due{cells, w})
		}
	}
}

// neighbours are the variables that share a table with v, and the size of the
// table of them and v.
func (e *elimination) neighbours(v int) (around []int, cells int) {
	e.calls++
	for _, t := range e.of[v] {
		for _, w := range t.vars {
			if w != v && e.met[w] != e.calls {
				e.met[w] = e.calls
				around = append(around, w)
			}
		}
	}
	slices.Sort(around)
	cells = e.states[v]
	for _, w := range around {
		if cells *= e.states[w]; cells > mostCells {
			return around, math.MaxInt
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
