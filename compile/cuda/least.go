package cuda

import (
	"math"

	"dmir/analysis/machine"
	"dmir/dialect/types"
)

// leastTimes gives, for products, the time on m of t's tile that is fastest where nothing but the product is computed, s: among all tiles,
// and among those whose operands threads bring to shared memory. A form may exclude tiles, and memory or an epilogue may make another
// one the better choice, but no kernel computes the product in less time. Equal products are asked about once. It is nil where m
// has no times of tiles.
func leastTimes(t Target, m *machine.Machine) func(machine.Product) (all, computed float64) {
	if m.SMs == 0 || m.L2Bandwidth == 0 {
		return nil
	}
	type least struct{ all, computed float64 }
	known := map[machine.Product]least{}
	return func(p machine.Product) (all, computed float64) {
		x, ok := known[p]
		if !ok {
			x = least{math.Inf(1), math.Inf(1)}
			t.eachTile(p, m, func(c Config) {
				s := m.ProductTime(p, c.tile()).Total()
				x.all = min(x.all, s)
				if !c.Path.bulk() {
					x.computed = min(x.computed, s)
				}
			})
			if p.Window.Taps > 0 { // as sums over windows
				vector := p.FLOP() / m.Rate(false, p.Elem, "")
				x.all, x.computed = min(x.all, vector), min(x.computed, vector)
			}
			known[p] = x
		}
		return x.all, x.computed
	}
}

// eachTile visits the tiles, alone and sharing sums, that kernels of t may compute a product with.
func (t Target) eachTile(p machine.Product, m *machine.Machine, visit func(Config)) {
	var tables [][]Config
	tf32, half := p.Elem == types.TF32, p.Elem.IsFloat() && p.Elem.Bytes() <= 2
	switch {
	case p.Structured:
		tables = append(tables, structuredTiles)
	case tf32:
		tables = append(tables, mmaTF32Tiles)
	default:
		tables = append(tables, fmaTiles)
	}
	if half && !p.Structured {
		tables = append(tables, mmaTiles)
	}
	if (tf32 || half) && !p.Structured && t.Arch == "sm_90a" {
		tables = append(tables, paired(bulkTiles), gatherTiles)
	}
	for _, table := range tables {
		for _, c := range table {
			if c.TF32 != tf32 || c.bytes() && p.Elem.Bytes() > 1 || !m.Pairs(p, c.tile()) {
				continue
			}
			for c.Splits = 1; c.Splits == 1 || c.Splits <= mostSplits && int64(c.Splits*4*c.BK) <= p.Depth; c.Splits *= 2 {
				c.Cluster = false
				visit(c)
				if c.Splits > 1 && dependent(t.Arch) {
					c.Cluster = true
					visit(c)
				}
			}
			if c.Splits, c.Cluster, c.StreamK = 1, false, true; c.alone(types.F32, m) {
				if _, ok := m.StreamK(p, c.tile()); ok {
					visit(c)
				}
			}
		}
	}
}

// mostSplits is the most blocks that share a sum.
const mostSplits = 64
