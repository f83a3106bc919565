package layout

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// problem is the cost of the choice. With fixed every value keeps the order of
// the text, and only copies are chosen: the cost of the text as it is.
func (m *model) problem(fixed bool) *problem {
	p := &problem{ended: func() bool { return m.u.Context().Err() != nil }}
	m.needs = nil
	for _, v := range m.values {
		cost := make([]float64, m.count(v))
		for n := range cost {
			s := m.state(v, n)
			for i := range m.orders[v] {
				if i != s.base && s.mask>>i&1 == 1 {
					cost[n] += m.moving(2 * size(v))
				}
			}
			if s.base != 0 && (fixed || !m.chosen(v)) {
				cost[n] = forbidden
			}
		}
		p.variable(cost)
	}
	for _, o := range m.body.Ops {
		m.op(p, o, fixed)
	}
	return p
}

// chosen reports whether the order of v can be chosen: an op defines it that
// can write it in any order.
func (m *model) chosen(v *ir.Value) bool {
	if !m.body.Defines(v) {
		return false // an input
	}
	_, transposed := m.transposed(v.Op)
	return transposed || m.alike(v.Op) != nil || m.anyOrders(v.Op)
}

// op adds the constraints of o on the orders of its operands and results.
func (m *model) op(p *problem, o *ir.Op, fixed bool) {
	vs := m.alike(o)
	dims, transposed := m.transposed(o)
	switch {
	case vs != nil:
		m.same(p, o, vs)
	case transposed:
		m.transpose(p, o, dims)
	case m.anyOrders(o):
		for i, v := range o.Operands {
			read := m.read
			if fixed && m.gathers(o) { // as it is written
				read = m.written
			}
			read(p, v, func(order []int) float64 { return m.reading(o, i, v, order) })
			m.needs = append(m.needs, m.cheapest(o, i, v))
		}
		y := o.Results[0]
		m.written(p, y, func(order []int) float64 { return m.uncoalesced(o, -1, y, order) })
	case op.Of(o).Is(op.Cast) && !op.Of(o).Is(op.Pointwise): // a copy
		// It reads any order, at the same price.
	default:
		m.keeps(p, o)
	}
}

// written adds the cost of the order in which v is written.
func (m *model) written(p *problem, v *ir.Value, cost func(order []int) float64) {
	if len(m.orders[v]) == 1 {
		return
	}
	for n := range p.alone[m.number[v]] {
		p.alone[m.number[v]][n] += cost(m.orders[v][m.state(v, n).base])
	}
}

// read adds the cost of reading v in the best of the available orders.
func (m *model) read(p *problem, v *ir.Value, cost func(order []int) float64) {
	if len(m.orders[v]) == 1 {
		return // there is nothing to choose
	}
	for n := range p.alone[m.number[v]] {
		least := forbidden
		for i, order := range m.orders[v] {
			if m.state(v, n).mask>>i&1 == 1 {
				least = min(least, cost(order))
			}
		}
		p.alone[m.number[v]][n] += least
	}
}

// cheapest is the use of a contraction's operand, which is read in the order of
// least cost, preferably the one it is written in.
func (m *model) cheapest(o *ir.Op, i int, v *ir.Value) need {
	return need{v, o, i, func(states []int) int {
		s := m.state(v, states[m.number[v]])
		best := s.base
		for j, order := range m.orders[v] {
			if s.mask>>j&1 == 1 && m.reading(o, i, v, order) < m.reading(o, i, v, m.orders[v][best]) {
				best = j
			}
		}
		return best
	}}
}

// reading is the loss of o where it reads operand i, v, in that order.
func (m *model) reading(o *ir.Op, i int, v *ir.Value, order []int) float64 {
	return m.uncoalesced(o, i, v, order) + m.gathering(o, i, order)
}

// uncoalesced is the loss of a contraction where the contiguous dimension of v
// is one of the batch: neighbours in memory belong to different products, so
// that most of each cache line is unused.
func (m *model) uncoalesced(o *ir.Op, i int, v *ir.Value, order []int) float64 {
	t := v.Tensor()
	for _, d := range slices.Backward(order) {
		if n, ok := t.Shape[d].Int(); ok && n == 1 {
			continue
		}
		if batch(o, i, d) {
			return m.moving(size(v))
		}
		return 0
	}
	return 0
}

// index is the index of that order of v, -1 where it is not considered.
func (m *model) index(v *ir.Value, order []int) int {
	return slices.IndexFunc(m.orders[v], func(o []int) bool { return slices.Equal(o, order) })
}

// has reports whether state n of v includes that order.
func (m *model) has(v *ir.Value, n int, order []int) bool {
	i := m.index(v, order)
	return i >= 0 && m.state(v, n).mask>>i&1 == 1
}

// same requires operands in the order in which the first result is written, and
// further results to be written so too.
func (m *model) same(p *problem, o *ir.Op, vs []*ir.Value) {
	y := vs[0]
	base := func(n int) []int { return m.orders[y][m.state(y, n).base] }
	for _, v := range vs[1:] {
		isResult := v.Op == o
		p.together(m.number[y], m.number[v], func(i, j int) float64 {
			if isResult {
				if s := m.state(v, j); !slices.Equal(m.orders[v][s.base], base(i)) {
					return forbidden
				}
				return 0
			}
			if !m.has(v, j, base(i)) {
				return forbidden
			}
			return 0
		})
	}
	for i, v := range o.Operands {
		if slices.Contains(vs[1:], v) {
			m.needs = append(m.needs, need{v, o, i, func(states []int) int { return m.index(v, base(states[m.number[y]])) }})
		} else {
			m.needs = append(m.needs, need{v, o, i, func([]int) int { return -1 }})
		}
	}
	if d := row(o); d >= 0 {
		m.written(p, y, func(order []int) float64 {
			if contiguous(y, order, d) {
				return 0
			}
			return m.moving(2 * size(y))
		})
	}
}

// contiguous reports whether dimension d is contiguous.
func contiguous(v *ir.Value, order []int, d int) bool {
	for _, e := range slices.Backward(order) {
		if e == d {
			return true
		}
		if n, ok := v.Tensor().Shape[e].Int(); !ok || n != 1 {
			return false
		}
	}
	return true
}

// transpose moves nothing if its operand is available in the order that maps to
// that of the result.
func (m *model) transpose(p *problem, o *ir.Op, dims []int) {
	x, y := o.Operands[0], o.Results[0]
	view := func(i, j int) int {
		s, r := m.state(x, i), m.state(y, j)
		for k, order := range m.orders[x] {
			if s.mask>>k&1 == 1 && slices.Equal(op.TransposedOrder(order, dims), m.orders[y][r.base]) {
				return k
			}
		}
		return -1
	}
	p.together(m.number[x], m.number[y], func(i, j int) float64 {
		if view(i, j) >= 0 {
			return 0
		}
		return m.moving(2 * size(y))
	})
	m.needs = append(m.needs, need{x, o, 0, func(states []int) int { return view(states[m.number[x]], states[m.number[y]]) }})
}

// keeps requires every operand, and every captured value of o's regions, in the
// order of the text.
func (m *model) keeps(p *problem, o *ir.Op) {
	ask := func(user *ir.Op) {
		for i, v := range user.Operands {
			at, known := m.number[v]
			if !known {
				continue
			}
			for n := range p.alone[at] {
				if m.state(v, n).mask&1 == 0 {
					p.alone[at][n] = forbidden
				}
			}
			m.needs = append(m.needs, need{v, user, i, func([]int) int { return 0 }})
		}
	}
	ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
		ask(inner)
		return true
	})
}
