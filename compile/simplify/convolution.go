package simplify

import (
	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func convolutionRules() []Rule {
	return []Rule{{
		Name: "convolution-covered", Doc: "The first dimension of a convolution whose window covers it is summed over as channels are. Where a group has one channel, it becomes its channels, as neighbours in memory that kernels read with one access.",
		Ops: []string{"convolution"}, apply: convolutionCovered,
	}}
}

// convolutionCovered makes of x [N, G, D, …] and w [O, 1, D, …] with one position of the window along D x [N, G·D, …] and w [O, D, …].
func convolutionCovered(_ *rewriter, o *ir.Op) bool {
	x, w := o.In(0), o.In(1)
	if x.Rank() < 4 || !plain(o) || !w.Shape[1].Equal(dim.Const(1)) || !op.Covers(o, 2) {
		return false
	}
	merged := func(t *types.Tensor) []dim.Dim {
		return append([]dim.Dim{t.Shape[0], t.Shape[1].Mul(t.Shape[2])}, t.Shape[3:]...)
	}
	attrs := kept(o)
	for i, a := range attrs {
		switch a.Name {
		case "window_strides", "padding", "lhs_dilation", "rhs_dilation":
			if list, ok := a.Value.(types.Array); ok {
				attrs[i].Value = list[1:]
			}
		}
	}
	b := pass.Before(o)
	y := b.Value("convolution", []*ir.Value{b.Reshape(o.Operands[0], merged(x)...), b.Reshape(o.Operands[1], merged(w)...)}, attrs)
	return built(b, o, b.Reshape(y, o.Out(0).Shape...))
}
