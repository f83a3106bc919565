package shard

import (
	"strings"

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

// Traffic is the bytes that all devices of m together send in f, by the axes along which they do,
// "data, model" for two together. A loop counts as often as it runs, once where that is not known,
// and a branch as the one that sends more.
func Traffic(f *ir.Func, m *mesh.Mesh) map[string]int64 {
	if f.Body == nil {
		return nil
	}
	return traffic(f.Body, m)
}

func traffic(b *ir.Block, m *mesh.Mesh) map[string]int64 {
	sum := map[string]int64{}
	for _, o := range b.Ops {
		if n := Sent(o, m); n > 0 {
			sum[strings.Join(op.Strings(o, "axes"), ", ")] += n
		}
		times := int64(1)
		switch o.Name {
		case op.While:
			if n, ok := op.TripCount(o); ok {
				times = n
			} else if op.Attr(o, "trip_count") != nil {
				times = op.Int(o, "trip_count")
			}
		case op.Scan:
			times = iterations(o)
		case op.If:
			most := map[string]int64{}
			for _, r := range o.Regions {
				if t := traffic(r.Blocks[0], m); total(t) > total(most) {
					most = t
				}
			}
			join(sum, most, 1)
			continue
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				join(sum, traffic(inner, m), times)
			}
		}
	}
	return sum
}

// iterations is how often the body of a dm.scan runs, 1 where that is a symbol.
func iterations(o *ir.Op) int64 {
	for i, r := range o.Results {
		if t := r.Tensor(); i >= op.Carries(o) && t != nil && t.Rank() > 0 {
			if n, ok := t.Shape[0].Int(); ok {
				return n
			}
		}
	}
	for _, v := range o.Operands[min(op.Carries(o), len(o.Operands)):] {
		if t := v.Tensor(); t != nil && t.Rank() > 0 {
			if n, ok := t.Shape[0].Int(); ok {
				return n
			}
		}
	}
	return 1
}

func total(t map[string]int64) int64 {
	n := int64(0)
	for _, v := range t {
		n += v
	}
	return n
}

func join(sum, more map[string]int64, times int64) {
	for k, v := range more {
		sum[k] += v * times
	}
}
