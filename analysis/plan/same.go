package plan

import (
	"math"
	"slices"
)

// onePerPlan is list without those that are the same as one before them.
func onePerPlan(list []*candidate) (out []*candidate) {
	for _, c := range list {
		if !slices.ContainsFunc(out, c.same) {
			out = append(out, c)
		}
	}
	return out
}

// same reports whether both plans give devices the same shares at the same cost: the axes of one are those of the other in another
// order, or one axis stands for two.
func (c *candidate) same(d *candidate) bool {
	return c.set.form == d.set.form && c.set.pipe == d.set.pipe && c.Microbatches == d.Microbatches &&
		c.Chunks == d.Chunks && c.Schedule == d.Schedule && c.Recompute == d.Recompute &&
		equally(c.Time, d.Time) && equally(float64(c.Memory.Total), float64(d.Memory.Total)) && equally(c.sends(), d.sends()) &&
		slices.Equal(c.shares(), d.shares())
}

// equally reports whether two figures differ by no more than the order of sums, and bytes that were rounded.
func equally(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b)) }

// sends is the bytes that a device sends in a step.
func (p *Plan) sends() float64 {
	n := 0.0
	for _, bytes := range p.Sent {
		n += float64(bytes)
	}
	return n
}

// shares are among how many devices each argument is divided along each of its dimensions, as it is stored and as ops see it, and
// where the stages begin.
func (c *candidate) shares() []int64 {
	var out []int64
	for i, n := range c.m.nodes {
		if n.o != nil {
			continue
		}
		v, s := c.m.result(n, 0), &c.m.vars[c.m.ofNode[i]].strategies[c.choice[c.m.ofNode[i]]]
		again := int64(0)
		if s.again {
			again = 1
		}
		out = append(out, again)
		for d := range v.shape {
			out = append(out, c.m.grid.parts(s.stored, d), c.m.grid.parts(s.out[0], d))
		}
	}
	for _, first := range c.st.first {
		out = append(out, int64(first))
	}
	return out
}
