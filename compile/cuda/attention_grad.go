package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// attentionGrad is a kernel for the sums of dy · y, and then one for each side:
// a block for each tile of keys that goes through the queries, for dk and dv, and
// one for each tile of queries that goes through the keys, for dq. The
// probabilities are computed in both, so that nothing is added up in memory.
func (g *generator) attentionGrad(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	a, err := attentionOf(o, 6)
	if err != nil {
		return nil, err
	}
	ns := attentionNames(f)
	in := func(i int) string { return ns.of[o.Operands[i]] }
	mean := &temp{elem: a.sum, n: a.heads * a.queries}
	delta := ns.addTemp("delta", mean, artifact.Out)
	first := launch{
		name: name, class: "attention", threads: 256, grid: [3]int{int(ceil(a.heads*a.queries, 8)), 1, 1}, before: a.describe("@_S"), include: "attention.cuh",
		body: fmt.Sprintf("  dm::attention_delta<@_S>(%s, %s, %s);\n", in(3), in(5), delta),
	}
	for _, p := range ns.params {
		if mentions(first.body, p.name) {
			first.params = append(first.params, p)
		}
	}
	all := []launch{first}
	ns.params[len(ns.params)-1].mode = artifact.In

	side := func(kind attentionKind, suffix, dx, dv string) error {
		l, err := g.attentionLaunch(a, kind, name+suffix, ns, func(t attentionTile) string {
			types, order := fmt.Sprintf("%s, @_S, %t", t, kind == gradOfKeys), []int{0, 5, 1, 2}
			if !t.tensor() {
				types += ", " + register(a.sum)
			}
			if kind == gradOfKeys {
				order = []int{1, 2, 0, 5}
			}
			return fmt.Sprintf("dm::attention_grad_%s<%s>(arena, %s, %s, %s, %s, %s, %s, %s, %s, %s);\n", t.path(), types,
				in(order[0]), in(order[1]), in(order[2]), in(order[3]), in(4), delta, a.maskName(ns), dx, dv)
		})
		all = append(all, l)
		return err
	}
	const nothing = "dm::Nothing{}"
	dq, dk, dv, dmask := ns.nameOf(o, 0), ns.nameOf(o, 1), ns.nameOf(o, 2), ns.nameOf(o, 3)
	switch {
	case dk == nothing && dv == nothing:
	case dk != nothing && dv != nothing && a.apart():
		if err := side(gradOfKeys, "_dk", dk, nothing); err != nil {
			return nil, err
		}
		if err := side(gradOfKeys, "_dv", nothing, dv); err != nil {
			return nil, err
		}
	default:
		if err := side(gradOfKeys, "_keys", dk, dv); err != nil {
			return nil, err
		}
	}
	if dq != nothing {
		if err := side(gradOfQueries, "_queries", dq, nothing); err != nil {
			return nil, err
		}
	}
	if dmask != nothing {
		l, err := g.attentionLaunch(a, gradOfMask, name+"_mask", ns, func(t attentionTile) string {
			return fmt.Sprintf("dm::attention_grad_mask_fma<%s, @_S, %s>(arena, %s, %s, %s, %s, %s, %s, %s, %s);\n", t, register(a.sum),
				in(0), in(1), in(2), in(5), in(4), delta, in(6), dmask)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}
