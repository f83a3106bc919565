package plan

import (
	"math"
	"slices"
)

// apart is what a step takes at least on a grid if each op is divided as is best for it: no choice of all together takes less.
func (g *graph) apart(gr *grid, l load, bandwidth float64) float64 {
	t := 0.0
	_, vars := g.tied()
	for _, x := range vars {
		if g.nodes[x.nodes[0]].o == nil {
			continue
		}
		least := g.least(g.nodes[x.nodes[0]], gr, bandwidth)
		for _, at := range x.nodes {
			t += least * g.runs(g.nodes[at], gr, l)
		}
	}
	return t
}

// filling is how long devices of a pipeline wait at least, on average, before they can begin: at place d of the pipeline each of the d
// places before has brought a micro-batch forward through one layer or more, in every schedule.
func (g *graph) filling(gr *grid, bandwidth float64) float64 {
	if gr.pipe < 2 || g.layers == nil {
		return 0
	}
	forwards := make([]float64, g.layers.left)
	for _, n := range g.nodes {
		if n.o != nil && n.micro && n.phase == forward && g.layers.has(n.layer) {
			forwards[n.layer-1] += g.least(n, gr, bandwidth)
		}
	}
	return float64(gr.pipe-1) / 2 * slices.Min(forwards)
}

// least is a time, in s, that no strategy of n takes less than: what it moves and, of what is no product, what it computes is divided
// among all devices along axes that may divide it, and products and attention as is best.
func (g *graph) least(n *node, gr *grid, bandwidth float64) float64 {
	options := g.options(n, gr)
	s := strategy{parts: 1}
	most := 1.0
	for a, axis := range gr.axes {
		for _, f := range options[a] {
			if f >= 0 {
				most *= float64(axis.Size)
				break
			}
		}
	}
	micro := 1.0
	if n.micro && n.batch >= 0 {
		micro = float64(gr.micro)
	}
	moved := n.moved
	if moved < 0 {
		moved = 0
		for _, k := range n.reads {
			if v := g.operand(n, k); v != nil {
				moved += v.bytes
			}
		}
		for _, k := range n.writes {
			if v := g.result(n, k); v != nil {
				moved += v.bytes
			}
		}
	}
	computes := n.compute / most / micro
	if n.product != nil && !g.target.CPU {
		computes = math.Inf(1)
		var each func(a int)
		each = func(a int) {
			if a == len(gr.axes) {
				computes = min(computes, g.computing(n, gr, &s, micro))
				return
			}
			for _, f := range options[a] {
				if f == partial {
					continue // divides nothing
				}
				size := 1.0
				if f >= 0 {
					size = float64(gr.axes[a].Size)
				}
				s.factors[a] = f
				s.parts *= size
				each(a + 1)
				s.parts /= size
			}
		}
		each(0)
	}
	return n.fused * (max(computes, moved/most/micro/bandwidth) + n.launch)
}
