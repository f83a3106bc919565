package layout

import (
	"math"
	"math/rand/v2"
	"testing"
)

// brute tries every assignment.
func brute(p *problem) float64 {
	best := math.Inf(1)
	states := make([]int, len(p.states))
	var try func(v int)
	try = func(v int) {
		if v == len(states) {
			best = min(best, p.cost(states))
			return
		}
		for states[v] = 0; states[v] < p.states[v]; states[v]++ {
			try(v + 1)
		}
	}
	try(0)
	return best
}

// On random graphs of up to 8 values elimination finds what trying everything finds.
func TestSolveAgreesWithBruteForce(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &problem{}
		n := 1 + r.IntN(8)
		price := func() float64 {
			if r.IntN(6) == 0 {
				return forbidden
			}
			return float64(r.IntN(20))
		}
		for range n {
			cost := make([]float64, 1+r.IntN(4))
			for i := range cost {
				cost[i] = price()
			}
			p.variable(cost)
		}
		for range r.IntN(2 * n) {
			p.together(r.IntN(n), r.IntN(n), func(int, int) float64 { return price() })
		}
		want := brute(p)
		states, ok := p.solve()
		switch {
		case ok != !math.IsInf(want, 1):
			t.Fatalf("seed %d: solved %v, but the least cost is %v", seed, ok, want)
		case ok && p.cost(states) != want:
			t.Fatalf("seed %d: cost %v, but %v is possible", seed, p.cost(states), want)
		}
	}
}

// A graph in which all depends on all is refused rather than filling the memory.
func TestSolveRefusesWhatIsTooEntangled(t *testing.T) {
	p := &problem{}
	for range 12 {
		p.variable(make([]float64, 4))
	}
	for i := range 12 {
		for j := range i {
			p.together(i, j, func(a, b int) float64 { return float64(a * b) })
		}
	}
	if _, ok := p.solve(); ok {
		t.Error("a table of 4^12 entries was filled")
	}
}

// Every state of a value is another set of orders, and its base is among them.
func TestStates(t *testing.T) {
	m := newModel(unit(t, transposes), mostOrders)
	for _, v := range m.values {
		seen := map[state]bool{}
		for n := range m.count(v) {
			s := m.state(v, n)
			if seen[s] || s.mask>>s.base&1 == 0 || s.mask>>len(m.orders[v]) != 0 {
				t.Errorf("state %d of %d orders is %+v", n, len(m.orders[v]), s)
			}
			seen[s] = true
		}
	}
}
