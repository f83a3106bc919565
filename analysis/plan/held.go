package plan

import (
	"math"
	"slices"
)

// roomless makes the strategies of x infinite by which an op alone needs more than the memory, if others need less.
func (m *model) roomless(x *variable, memory float64, unary []float64) {
	needs := make([]float64, len(x.strategies))
	for _, at := range x.nodes {
		if n := m.nodes[at]; n.o != nil {
			for c := range x.strategies {
				needs[c] = max(needs[c], m.working(n, &x.strategies[c]))
			}
		}
	}
	if len(needs) == 0 || slices.Min(needs) > memory {
		return
	}
	for c, bytes := range needs {
		if bytes > memory {
			unary[c] = math.Inf(1)
		}
	}
}

// working is what there is while n runs, at least: what it reads and writes, or its largest result.
func (m *model) working(n *node, s *strategy) float64 {
	bytes := s.traffic
	for k := range n.o.Results {
		if v := m.result(n, k); v != nil {
			bytes = max(bytes, m.grid.piece(v, s.out[k]))
		}
	}
	return bytes
}

// share of a limit's stage: what one device of it has of layer n.
func (m *model) portion(n *node, l load, limit int) float64 {
	times := m.between(n.layer, n.layer)
	if l.pipe == 1 {
		return times
	}
	last := 0
	if m.layers != nil {
		last = m.layers.left + 1
	}
	switch {
	case !m.outside(n):
		most := float64(ceil(m.layers.count, l.pipe)) // layers of a stage
		return times * most / float64(m.layers.count)
	case n.layer == 0 && last > 0:
		return float64(1 - limit)
	}
	return float64(limit)
}

// live is how many micro-batches a stage holds at a time.
func (l load) live(limit int) float64 {
	if limit == 0 {
		return l.inflight
	}
	return 1
}

// holds is what a device holds because of a strategy of n: an argument, values kept for the backward
// pass, gradients that are summed up.
func (m *model) holds(n *node, s *strategy, l load, limit int) float64 {
	part := m.portion(n, l, limit)
	if part == 0 {
		return 0
	}
	if n.o == nil {
		return s.held * part
	}
	total := m.reduced(n, s) * part
	for k := range n.o.Results {
		v := m.result(n, k)
		if v == nil || m.ofValue[m.of[v.v]] >= 0 {
			continue
		}
		total += m.holdsValue(v, s.out[k], l, limit)
	}
	return total
}

// reducedAtOnce reports whether v is the gradient of a parameter that no other micro-batch adds to and one op needs: it is reduced as soon
// as it is there, and held as that op reads it.
func (m *model) reducedAtOnce(v *value) bool {
	return m.grid.single() && m.nodes[v.node].micro && !v.micro && len(v.shape) > 0 && m.ofValue[m.of[v.v]] < 0 &&
		len(v.uses) == 1 && m.nodes[v.uses[0].node].phase == once
}

// reduced is the bytes of the gradients that n reads and that are reducedAtOnce.
func (m *model) reduced(n *node, s *strategy) (bytes float64) {
	if n.phase != once {
		return 0
	}
	for k := range n.o.Operands {
		if v := m.operand(n, k); v != nil && m.reducedAtOnce(v) {
			bytes += m.grid.piece(v, s.in[k])
		}
	}
	return bytes
}

func (m *model) holdsValue(v *value, lay layout, l load, limit int) float64 {
	n := m.nodes[v.node]
	part := m.portion(n, l, limit)
	switch {
	case n.o == nil || part == 0:
		return 0
	case m.keeps(v, l.recompute):
		return m.grid.piece(v, lay) * part * l.live(limit)
	case n.micro && !v.micro && len(v.shape) > 0 && !m.reducedAtOnce(v): // the gradient of a parameter
		return m.grid.piece(v, lay) * part
	}
	return 0
}
