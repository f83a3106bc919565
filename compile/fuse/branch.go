package fuse

import (
	"fmt"
	"slices"
)

// branchAndBound decides which values are stored. The parts of a graph depend
// on each other through values that one part may store or other parts may
// recompute; these are open, the others are stored in every plan. Where the
// best plans of the parts disagree on an open value, both decisions are
// explored. While a value is undecided, the part that computes it need not
// store it and other parts may read it, so that the sum over the parts is a
// lower bound.
type branchAndBound struct {
	g     *graph
	parts []*part
	fixed []bool // by value: stored in every plan
	open  []bool
	steps int // bound for one plan of a part
	left  int // of all plans
	tries int // left
	best  solution
}

// solution is a plan of the whole graph.
type solution struct {
	price   price
	bound   price
	least   int64 // lower bound on the bytes
	exact   bool
	kernels []*candidate
}

// newBranchAndBound finds the values that are open and those that are fixed.
func (g *graph) newBranchAndBound(parts []*part, steps int) *branchAndBound {
	c := &branchAndBound{g: g, parts: parts, steps: steps, left: allSteps * steps, tries: maxTries, best: solution{price: infeasible, exact: true}}
	c.fixed, c.open = make([]bool, len(g.values)), make([]bool, len(g.values))
	for v, x := range g.values {
		if x.def < 0 {
			continue
		}
		c.fixed[v] = x.out
		owner := g.nodes[x.def]
		for _, u := range x.uses {
			n := g.nodes[u]
			switch {
			case n.part == owner.part && !n.cheap:
			case !n.cheap && (!owner.cheap || g.conflict(u, x.def)) && n.part != owner.part:
				c.fixed[v] = true
			default:
				c.open[v] = true
			}
		}
		if c.fixed[v] {
			c.open[v] = false
		}
	}
	return c
}

// lowerBound is a lower bound on the price of any plan.
func (c *branchAndBound) lowerBound() (bound price) {
	pieces := map[int][]*part{} // by root
	for _, p := range c.parts {
		pieces[p.root] = append(pieces[p.root], p)
	}
	for _, p := range c.parts {
		switch ps := pieces[p.root]; {
		case len(ps) == 1:
			bound = bound.plus(p.lowerBound(c.demanded(p, nil)))
		case ps[0] == p:
			bound = bound.plus(c.g.piecesBound(ps))
		}
	}
	return bound
}

func (g *graph) solve(parts []*part, steps int) solution {
	c := g.newBranchAndBound(parts, steps)
	c.best.price, c.best.kernels = g.localSearch(steps)
	bound := c.lowerBound()
	c.best.least = bound.bytes
	if bound.less(c.best.price) {
		if b := c.explore(make([]decision, len(g.values))); !g.cut {
			bound = b
		}
	}
	if c.best.price.less(bound) {
		bound = c.best.price
	}
	c.best.bound, c.best.exact = bound, bound == c.best.price && !g.cut
	return c.best
}

// decision is whether an open value is stored or recomputed.
type decision byte

const (
	undecided decision = iota
	stored
	recomputed
)

// allSteps bounds the steps of all plans, as a multiple of those of one.
const allSteps = 4

// maxTries bounds the nodes of the branch-and-bound tree.
const maxTries = 400

// explore finds the best solution under the decisions and returns a lower bound
// on all of them.
func (c *branchAndBound) explore(decisions []decision) price {
	c.tries--
	var sum, bound price
	var plans []*plan
	for _, p := range c.parts {
		plan := c.plan(p, decisions)
		plans = append(plans, plan)
		sum, bound = sum.plus(plan.price), bound.plus(plan.bound)
	}
	if !bound.less(c.best.price) {
		return bound
	}
	branch := -1
	for _, p := range plans {
		for _, v := range p.imports {
			if c.open[v] && decisions[v] == undecided && (branch < 0 || c.g.values[v].size > c.g.values[branch].size) {
				branch = v
			}
		}
	}
	if branch < 0 {
		if sum.less(c.best.price) {
			c.best.price = sum
			c.best.kernels = nil
			for _, p := range plans {
				c.best.kernels = append(c.best.kernels, p.kernels...)
			}
		}
		return bound
	}
	least := infeasible
	for _, a := range []decision{stored, recomputed} {
		if c.tries <= 0 && a == recomputed { // storing everything is a solution
			least = bound
			break
		}
		decisions[branch] = a
		if b := c.explore(decisions); b.less(least) {
			least = b
		}
	}
	decisions[branch] = undecided
	return least
}

// plan is p's plan under the answers.
func (c *branchAndBound) plan(p *part, decisions []decision) *plan {
	if p.unfusible() {
		if p.known[""] == nil {
			p.known[""], _ = p.solve(nil, nil, 1)
		}
		return p.known[""]
	}
	demand := c.demanded(p, decisions)
	var refused []int
	for _, v := range p.value {
		if !p.owns(v) && c.g.values[v].def >= 0 && c.open[v] && decisions[v] == recomputed {
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

// demanded are the values that p must store under the decisions; nil decides
// nothing.
func (c *branchAndBound) demanded(p *part, decisions []decision) []int {
	var demand []int
	for _, v := range p.value {
		if p.owns(v) && (c.fixed[v] || decisions != nil && decisions[v] == stored) {
			demand = append(demand, v)
		}
	}
	return demand
}
