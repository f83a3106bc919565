package cuda

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// attentionGradient is the partition of the gradient of an attention: a kernel
// for the sums of dy · y, then one for each side: a block for each tile of keys
// that loops over the queries, for dk and dv, and one for each tile of queries
// that loops over the keys, for dq. Both recompute the probabilities, so that
// no sums are accumulated in memory. On Hopper one kernel computes all, where that is
// predicted to be faster.
type attentionGradient struct{ attentionPlan }

func (t Target) attentionGradient(f *kernel.Form) (*attentionGradient, error) {
	a, err := attentionOf(f)
	if err != nil {
		return nil, err
	}
	tile, err := t.attentionTile(a, gradOfKeys)
	if err != nil {
		return nil, err
	}
	products := &assemble.Temp{Elem: a.sum, N: a.Heads * a.Queries, Own: true}
	p := &attentionGradient{attentionPlan{attention: a, target: t, f: f, tile: tile, splits: 1, scratch: []*assemble.Temp{products}}}
	if tile, ok := p.fused(); ok {
		p.tile, p.splits = tile, int64(tile.cluster)
		if sums := p.sumsOfQueries(); sums.N > 0 {
			p.scratch = append(p.scratch, sums)
		}
	}
	return p, nil
}

// wanted reports whether result i is stored.
func (p *attentionGradient) wanted(i int) bool {
	o := p.f.Main
	return i < len(o.Results) && (slices.Contains(p.f.Outputs, o.Results[i]) || p.views[len(o.Operands)+i] != nil)
}

func (p *attentionGradient) launches() ([]*launch, error) {
	o, a := p.f.Main, p.attention
	ns := namesOf(p.f.Inputs, p.f.Outputs, arena)
	in := func(i int) code { return a.operand(ns, i) }
	delta := cpp("%s", ns.addTemp("delta", p.scratch[0], artifact.Out))
	first, lanes := a.stage("", a.elem)
	ns.calls(first, a, cpp("dm::attention_delta<%s, %s>(%s)", geometry, lanes, []code{in(3), in(5), delta}))
	all := []*launch{first}
	ns.written()

	add := func(kind attentionKind, suffix string, call func(t attentionTile) code) error {
		t, err := p.target.attentionTile(a, kind)
		if err == nil {
			all = append(all, p.launch(kind, t, suffix, ns, call(t)))
		}
		return err
	}
	side := func(kind attentionKind, suffix string, dx, dv code, stores ...*ir.Value) error {
		var maps []attentionMap
		err := add(kind, suffix, func(t attentionTile) code {
			types, order := cpp("%s, %s, %t", t, geometry, kind == gradOfKeys), []int{0, 5, 1, 2}
			if t.path == Fma {
				types = cpp("%s, %s", types, register(a.sum))
			}
			if kind == gradOfKeys {
				order = []int{1, 2, 0, 5}
			}
			var args []code
			args, maps = p.operandsOf(ns, t, 2, order...)
			args = append(args, in(4), delta, ns.mask(a), dx, dv)
			return cpp("dm::attention_grad_%s<%s>(%s, %s)", t.path, types, arena, ns.withDrawn(a, args))
		})
		if err == nil {
			l := all[len(all)-1]
			l.Stores = stores
			p.copies(l, maps)
		}
		return err
	}
	dq, dk, dv, dmask := a.result(ns, 0), a.result(ns, 1), a.result(ns, 2), a.result(ns, 3)
	switch {
	case p.tile.path == Fused:
		all = append(all, p.whole(ns, delta, dq, dk, dv))
	case !p.wanted(1) && !p.wanted(2):
	case p.wanted(1) && p.wanted(2) && a.separate():
		if err := side(gradOfKeys, "_dk", dk, cpp(nothing), o.Results[1]); err != nil {
			return nil, err
		}
		if err := side(gradOfKeys, "_dv", cpp(nothing), dv, o.Results[2]); err != nil {
			return nil, err
		}
	default:
		if err := side(gradOfKeys, "_keys", dk, dv, o.Results[1], o.Results[2]); err != nil {
			return nil, err
		}
	}
	if p.wanted(0) && p.tile.path != Fused {
		if err := side(gradOfQueries, "_queries", dq, cpp(nothing), o.Results[0]); err != nil {
			return nil, err
		}
	}
	if p.wanted(3) {
		err := add(gradOfMask, "_mask", func(t attentionTile) code {
			args := []code{in(0), in(1), in(2), in(5), in(4), delta, ns.mask(a), dmask}
			return cpp("dm::attention_grad_mask_fma<%s, %s, %s>(%s, %s)", t, geometry, register(a.sum), arena, ns.withDrawn(a, args))
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
