package shard

import (
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
)

// Sent is the bytes that all devices of m together send in one execution of o, the op of one device,
// by the definitions of boxing costs (see Grid.Plan); 0 of ops that are no collectives, and where
// sizes are symbols.
func Sent(o *ir.Op, m *mesh.Mesh) int64 {
	if !op.Of(o).Is(op.Collective) || len(o.Operands) == 0 {
		return 0
	}
	axes, err := m.ParseAxes(op.Strings(o, "axes"))
	t := o.In(0)
	if err != nil || t == nil {
		return 0
	}
	n, ok := t.Bytes().Int()
	if !ok {
		return 0
	}
	p, all := int64(m.Count(axes)), int64(m.Devices())
	switch o.Name {
	case op.AllGather:
		return all * n * (p - 1)
	case op.ReduceScatter, op.AllToAll:
		return all * n * (p - 1) / p
	case op.AllReduce:
		return all * 2 * n * (p - 1) / p
	case op.CollectivePermute:
		sends := int64(0)
		for _, pair := range op.Pairs(o, "pairs") {
			if pair[0] != pair[1] {
				sends++
			}
		}
		return all / p * n * sends
	case op.Send:
		return all / p * n
	}
	return 0
}
