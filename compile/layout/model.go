package layout

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// model is the choice of layouts in one body.
type model struct {
	u       *pass.Unit
	body    pass.Body
	values  []*ir.Value
	number  map[*ir.Value]int
	current map[*ir.Value][]int   // the order in the text
	orders  map[*ir.Value][][]int // those considered; the first is that of the text
	open    []*ir.Value           // with more than one
	needs   []need
}

// need is a use of a value, and the index of the order in which it is read in
// the solution; -1 for any.
type need struct {
	v     *ir.Value
	op    *ir.Op
	index int
	order func(states []int) int
}

// state is one choice for a value: it is written in order base and copied to
// others.
type state struct {
	base int
	mask int // available orders, including the base
}

// state is number n of v's states: for each base every set of others.
func (m *model) state(v *ir.Value, n int) state {
	k := len(m.orders[v])
	base, set := n>>(k-1), n&(1<<(k-1)-1)
	low := set & (1<<base - 1)
	return state{base, low | 1<<base | set>>base<<(base+1)}
}

func (m *model) count(v *ir.Value) int {
	k := len(m.orders[v])
	return k << (k - 1)
}

func newModel(u *pass.Unit, most int) *model {
	m := &model{u: u, body: u.Body(), number: map[*ir.Value]int{}, current: map[*ir.Value][]int{}, orders: map[*ir.Value][][]int{}}
	add := func(v *ir.Value) {
		if t := v.Tensor(); t != nil && t.Enc == "" {
			m.number[v] = len(m.values)
			m.values = append(m.values, v)
			m.current[v] = slices.Clone(op.OrderOf(t))
			m.orders[v] = [][]int{m.current[v]}
		}
	}
	for _, v := range m.body.Inputs() {
		add(v)
	}
	for _, o := range m.body.Ops {
		for _, v := range o.Results {
			add(v)
		}
	}
	m.spread(most)
	for _, v := range m.values {
		if len(m.orders[v]) > 1 {
			m.open = append(m.open, v)
		}
	}
	return m
}

// consider adds an order of v; it reports whether it is new and within the
// bound.
func (m *model) consider(v *ir.Value, order []int, most int) bool {
	list := m.orders[v]
	if list == nil || len(list) >= most || slices.ContainsFunc(list, func(o []int) bool { return slices.Equal(o, order) }) {
		return false
	}
	m.orders[v] = append(list, order)
	return true
}

// spread finds the orders to consider: those that row ops and convolutions prefer, propagated
// through transposes, which map an operand's orders to those of the result that
// cost nothing, and through ops whose tensors have one order.
func (m *model) spread(most int) {
	for _, o := range m.body.Ops {
		if d := row(o); d >= 0 {
			m.consider(o.Results[0], last(m.current[o.Results[0]], d), most)
		}
	}
	m.propagate(most)
	added := false
	for _, o := range m.body.Ops {
		added = m.gathers(o) && m.channels(o, most) || added
	}
	if added {
		m.propagate(most)
	}
}

// propagate adds orders across all ops.
func (m *model) propagate(most int) {
	ops := slices.Clone(m.body.Ops)
	for changed := true; changed; slices.Reverse(ops) { // forwards and backwards in turn
		changed = false
		for _, o := range ops {
			changed = m.across(o, most) || changed
		}
	}
}

// across propagates the orders of o's operands to its results and back.
func (m *model) across(o *ir.Op, most int) bool {
	changed := false
	if p, ok := m.transposed(o); ok {
		x, y := o.Operands[0], o.Results[0]
		back := op.Inverse(p)
		for _, s := range slices.Clone(m.orders[x]) {
			changed = m.consider(y, op.TransposedOrder(s, p), most) || changed
		}
		for _, s := range slices.Clone(m.orders[y]) {
			changed = m.consider(x, op.TransposedOrder(s, back), most) || changed
		}
		return changed
	}
	vs := m.alike(o)
	if !slices.ContainsFunc(vs, func(v *ir.Value) bool {
		return len(m.orders[v]) > 1 || !slices.Equal(m.current[v], m.current[vs[0]])
	}) {
		return false // all have the same one
	}
	for _, v := range vs {
		for _, w := range vs {
			for _, s := range slices.Clone(m.orders[v]) {
				changed = m.consider(w, s, most) || changed
			}
		}
	}
	return changed
}

// free reports whether all of o's tensors are in the device's memory.
func (m *model) free(o *ir.Op) bool {
	for _, vs := range [][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			if t := v.Tensor(); t == nil || t.At.In() != "hbm" || t.Enc != "" {
				return false
			}
		}
	}
	return true
}

// last is the order with dimension d moved to the end.
func last(order []int, d int) []int {
	out := slices.DeleteFunc(slices.Clone(order), func(e int) bool { return e == d })
	return append(out, d)
}

// row is the dimension along which an op works row by row, preferably
// contiguous; -1 where it has none.
func row(o *ir.Op) int {
	d := op.Of(o)
	if d == nil || d.Orders != op.AlikeOrders || d.Reduced == nil || o.In(0) == nil {
		return -1
	}
	if dims, ok := d.Reduced(o); ok && len(dims) == 1 {
		return dims[0]
	}
	return -1
}

// transposed is the permutation of o, if it only permutes dimensions and the
// order of its tensors can be chosen.
func (m *model) transposed(o *ir.Op) (dims []int, ok bool) {
	if d := op.Of(o); d == nil || d.Is(op.Cast) || d.Orders != op.OwnOrders || !m.free(o) {
		return nil, false
	}
	return op.MoveOf(o).Permutes()
}

// alike are the tensors of o that must have one order: results and operands
// with all of their dimensions. nil for other ops.
func (m *model) alike(o *ir.Op) []*ir.Value {
	d := op.Of(o)
	pointwise := d.Is(op.Pointwise) && len(o.Regions) == 0
	if !pointwise && (d == nil || d.Orders != op.AlikeOrders) || len(o.Results) == 0 || !m.free(o) {
		return nil
	}
	r := rank(o.Results[0])
	vs := slices.Clone(o.Results)
	for _, v := range o.Operands {
		if rank(v) == r && (!pointwise || size(v)*o.Out(0).Elem.Bytes() >= size(o.Results[0])*v.Tensor().Elem.Bytes()) {
			vs = append(vs, v)
		}
	}
	return vs
}

// anyOrders reports whether o reads its operands and writes its result in any
// order.
func (m *model) anyOrders(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Orders == op.AnyOrders && m.free(o)
}

// batch reports whether dimension d of a contraction's operand i (of its result
// for -1) is a batch dimension: in all tensors, so that it is contiguous in no
// side of the product.
func batch(o *ir.Op, i, d int) bool {
	def := op.Of(o)
	if len(o.Operands) != 2 || def.Maps == nil {
		return false
	}
	it := def.Maps(o)
	if it == nil {
		return false
	}
	lists := append(slices.Clone(it.Operands), it.Results...)
	at := i
	if i < 0 {
		at = len(lists) - 1
	}
	loop := lists[at][d]
	for _, l := range lists {
		if loop < 0 || !slices.Contains(l, loop) {
			return false
		}
	}
	return true
}
