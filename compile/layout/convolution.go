package layout

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// gathers reports whether o is a convolution that reads single elements of an operand in some orders.
func (m *model) gathers(o *ir.Op) bool { return m.anyOrders(o) && cost.Apart(m.u.Machine, o, 1) > 0 }

// vector is the number of elements of an access of convolutions.
const vector = 8

// gathering is the loss of o where it reads operand i in that order.
func (m *model) gathering(o *ir.Op, i int, order []int) float64 {
	loss := 0.0
	if m.anyOrders(o) {
		loss = 1e9 * cost.Apart(m.u.Machine, o, i)
	}
	if loss == 0 {
		return 0
	}
	t := o.In(i)
	d := cost.Innermost(ordered(t, order))
	if d == 0 || d == 1 {
		n, _ := t.Shape[d].Int()
		if d == 1 { // channels of a group
			n, _ = o.In(1).Shape[1].Int()
		} else if i == 1 {
			n /= max(op.Int(o, "feature_group_count"), 1)
		}
		if n > 0 && n%vector == 0 || n > 1 && t.Elem.Bytes() > 2 {
			return 0
		}
	}
	return loss
}

// channels adds orders to operands of o, which gathers, that have none in which it does not;
// it reports whether there are any.
func (m *model) channels(o *ir.Op, most int) (added bool) {
	for i, v := range o.Operands {
		if slices.ContainsFunc(m.orders[v], func(order []int) bool { return m.gathering(o, i, order) == 0 }) {
			continue
		}
		for _, d := range []int{1, 0} {
			added = m.consider(v, last(m.current[v], d), most) || added
		}
	}
	return added
}
