// Package shardtest is for tests of what divided functions send.
package shardtest

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
)

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
		if n := shard.Sent(o, m); n > 0 {
			sum[strings.Join(op.Strings(o, "axes"), ", ")] += n
		}
		if o.Name == op.If {
			most := map[string]int64{}
			for _, r := range o.Regions {
				if t := traffic(r.Blocks[0], m); total(t) > total(most) {
					most = t
				}
			}
			join(sum, most, 1)
			continue
		}
		times := int64(1)
		if d, known := op.Trips(o); known {
			if n, ok := d.Int(); ok {
				times = n
			}
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				join(sum, traffic(inner, m), times)
			}
		}
	}
	return sum
}

func total(t map[string]int64) (n int64) {
	for _, sent := range t {
		n += sent
	}
	return n
}

func join(sum, more map[string]int64, times int64) {
	for axes, n := range more {
		sum[axes] += n * times
	}
}
