package cuda

import (
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// fusedClusters are the numbers of blocks that share a head in attention_grad_fused, the portable ones.
var fusedClusters = []int{8, 4, 2, 1}

// fusedGradient is the tile of the gradient as one kernel of warpgroup products, in a
// cluster of so many blocks; false where registers do not hold the sums of 128 keys, where tensor maps cannot copy an
// operand, and where blocks of the cluster would add to the same queries in a step.
func (a *attention) fusedGradient(cluster int, m *machine.Machine) (attentionTile, bool) {
	t := attentionTile{path: Fused, own: 128, other: 128, stages: 2, cluster: cluster}
	if !a.tensorCores() || a.tf32 || !a.copied(0, 1, 2, 5) || max(a.Depth, a.Value) > 128 {
		return t, false
	}
	// With tiles of 128 queries a thread has two sums of 64 scores beside those of its keys.
	if a.Depth > 64 || a.Depth+a.Value > 128 || a.Queries <= 64 || a.extras() > 0 {
		t.other = 64
	}
	if a.shared(gradOfKeys, t) > m.SharedMemory {
		return t, false
	}
	return t, int64(cluster) <= min(ceil(a.Keys, int64(t.own)), ceil(a.Queries, int64(t.other))) && cluster <= max(1, m.SMs)
}

// model is the gradient as the time model has it.
func (a *attention) model(t attentionTile, splits int) machine.Attention {
	x := machine.Attention{
		Heads: a.Heads, KeyHeads: a.Heads / a.Group, Queries: a.Queries, Keys: a.Keys, Depth: a.Depth, Value: a.Value, Elem: a.elem,
		Gradient: true,
		Tile:     machine.Tile{Path: string(t.path), Rows: t.own, Cols: t.other, Step: int(a.Depth), Splits: splits},
	}
	x.Scores, _ = op.Scores(a.Op).Int()
	return x
}

// fused is the tile of the cluster with which one kernel computes the whole gradient, where that takes less time than a kernel for
// each side.
func (p *attentionGradient) fused() (best attentionTile, ok bool) {
	if p.target.Arch != "sm_90a" || !p.wanted(0) || !p.wanted(1) || !p.wanted(2) {
		return best, false
	}
	m := p.target.Machine
	least := m.AttentionTime(p.model(p.tile, 1)).Total()
	for _, cluster := range fusedClusters {
		t, can := p.fusedGradient(cluster, m)
		if !can {
			continue
		}
		if s := m.AttentionTime(p.model(t, cluster)).Total(); s < least {
			best, least, ok = t, s, true
		}
	}
	return best, ok
}

// sumsOfQueries is the memory for the tiles of dq that several tiles of keys add to: all but the first ones under a causal
// mask (Rounds::alone of the prelude).
func (p *attentionGradient) sumsOfQueries() *assemble.Temp {
	a, t := p.attention, p.tile
	tiles, owners := ceil(a.Queries, int64(t.other)), ceil(a.Keys, int64(t.own))
	var alone int64
	if shift := a.Keys - a.Queries; owners == 1 {
		alone = tiles
	} else if op.Bool(a.Op, "causal") && shift >= 0 {
		alone = min(tiles, max(0, int64(t.own)-shift)/int64(t.other))
	}
	columns := (a.Depth + 15) / 16 * 16
	if t.other == 64 {
		columns = (a.Depth + 63) / 64 * 64
	}
	return &assemble.Temp{Elem: a.sum, N: a.Heads * (tiles - alone) * int64(t.other) * columns, Own: true}
}

// whole is the launch of the fused kernel.
func (p *attentionGradient) whole(ns *names, delta code, dq, dk, dv code) *launch {
	a := p.attention
	sums := cpp(nothing)
	if len(p.scratch) > 1 {
		sums = cpp("%s", ns.addTemp("sums", p.scratch[1], artifact.InOut))
		ns.params[len(ns.params)-1].Fresh = true
	}
	args, maps := p.operandsOf(ns, p.tile, 2, 1, 2, 0, 5)
	args = append(args, cpp("%s", ns.of[p.f.Main.Operands[4]]), delta, ns.mask(a), sums, dq, dk, dv)
	l := p.launch(gradOfKeys, p.tile, "_all", ns, cpp("dm::attention_grad_fused<%s, %s>(%s, %s)", p.tile, geometry, arena, ns.withDrawn(a, args)))
	if p.tile.cluster > 1 {
		l.Block.Cluster = p.tile.cluster
	}
	l.Stores = slices.Clone(p.f.Main.Results[:3])
	p.copies(l, maps)
	return l
}
