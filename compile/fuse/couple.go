package fuse

import (
	"fmt"
	"slices"
)

// The parts of a graph depend on each other where a value may be stored by one
// part or computed again, from other values, in those that use it. A value that
// is neither is stored in any case. couple searches over the values that are
// open: where the best plans of the parts disagree on one, both answers are
// tried. With one open, the part that computes it is relieved of storing it and
// the others may read it, so that the sum is a bound.
type couple struct {
	g     *graph
	parts []*part
	fixed []bool // by value: stored in any case
	open  []bool
	steps int // for one plan of a part
	left  int // for all
	tries int // of answers, left
	best  solution
}

// solution is a plan of the whole graph.
type solution struct {
	price   price
	bound   price
	exact   bool
	kernels []*shape
}

func (g *graph) solve(parts []*part, steps int) solution {
	c := &couple{g: g, parts: parts, steps: steps, left: allSteps * steps, tries: maxTries, best: solution{price: never, exact: true}}
	c.fixed, c.open = make([]bool, len(g.values)), make([]bool, len(g.values))
	for v, x := range g.values {
		if x.def < 0 {
			continue
		}
		c.fixed[v] = x.out
		home := g.nodes[x.def]
		for _, u := range x.uses {
			n := g.nodes[u]
			switch {
			case n.part == home.part && !n.cheap:
			case !n.cheap && (!home.cheap || g.apart(u, x.def)) && n.part != home.part:
				c.fixed[v] = true
			default:
				c.open[v] = true
			}
		}
		if c.fixed[v] {
			c.open[v] = false
		}
	}
	c.best.price, c.best.kernels = g.climb(steps)
	var bound price
	for _, p := range parts {
		bound = bound.plus(p.least(c.demanded(p, nil)))
	}
	if bound.less(c.best.price) {
		bound = c.try(make([]answer, len(g.values)))
	}
	if c.best.price.less(bound) {
		bound = c.best.price
	}
	c.best.bound, c.best.exact = bound, bound == c.best.price && !g.cut
	return c.best
}

// answer says whether an open value is stored.
type answer byte

const (
	undecided answer = iota
	stored
	recomputed
)

// allSteps is how many times the steps of one plan may be taken in all.
const allSteps = 4

// maxTries bounds how many sets of answers are looked at.
const maxTries = 400

// try looks for the best solution in which the answers hold and returns a bound
// on all of them.
func (c *couple) try(answers []answer) price {
	c.tries--
	var sum, bound price
	var plans []*plan
	for _, p := range c.parts {
		plan := c.plan(p, answers)
		plans = append(plans, plan)
		sum, bound = sum.plus(plan.price), bound.plus(plan.bound)
	}
	if !bound.less(c.best.price) {
		return bound
	}
	disputed := -1
	for _, p := range plans {
		for _, v := range p.used {
			if c.open[v] && answers[v] == undecided && (disputed < 0 || c.g.values[v].size > c.g.values[disputed].size) {
				disputed = v
			}
		}
	}
	if disputed < 0 {
		if sum.less(c.best.price) {
			c.best.price = sum
			c.best.kernels = nil
			for _, p := range plans {
				c.best.kernels = append(c.best.kernels, p.kernels...)
			}
		}
		return bound
	}
	least := never
	for _, a := range []answer{stored, recomputed} {
		if c.tries <= 0 && a == recomputed { // storing everything is a solution
			least = bound
			break
		}
		answers[disputed] = a
		if b := c.try(answers); b.less(least) {
			least = b
		}
	}
	answers[disputed] = undecided
	return least
}

// plan is p's plan under the answers.
func (c *couple) plan(p *part, answers []answer) *plan {
	if p.lone() {
		if p.known[""] == nil {
			p.known[""], _ = p.solve(nil, nil, 1)
		}
		return p.known[""]
	}
	demand := c.demanded(p, answers)
	var refused []int
	for _, v := range p.value {
		if !p.owns(v) && c.g.values[v].def >= 0 && c.open[v] && answers[v] == recomputed {
			refused = append(refused, v)
		}
	}
	k := fmt.Sprint(demand, refused)
	known := p.known[k]
	if known == nil {
		var used int
		known, used = p.solve(demand, func(v int) bool { return !slices.Contains(refused, v) }, min(c.steps, c.left))
		c.left -= used
		p.known[k] = known
	}
	return known
}

// demanded is what p has to store under the answers, which may be none.
func (c *couple) demanded(p *part, answers []answer) []int {
	var demand []int
	for _, v := range p.value {
		if p.owns(v) && (c.fixed[v] || answers != nil && answers[v] == stored) {
			demand = append(demand, v)
		}
	}
	return demand
}
