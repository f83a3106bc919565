package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func scatterRules() []Rule {
	return []Rule{
		{
			Name: "scatter-of-one", Doc: "A scatter into a constant number of one update for each element of the other dimensions is a select by whether the position is the index: so ends the gradient of a gather along classes. A select fuses with what reads it.",
			Ops: []string{"scatter"}, apply: scatterOfOne,
		},
		{
			Name: "scatter-of-none", Doc: "A scatter of no updates is its operand.",
			Ops: []string{"scatter"}, apply: func(_ *rewriter, o *ir.Op) bool {
				return o.In(2).Elements().Equal(dim.Const(0)) && use(o, o.Operands[0])
			},
		},
	}
}

// scatterOfOne leaves what is done in place: it writes only the updates.
func scatterOfOne(_ *rewriter, o *ir.Op) bool {
	x, indices := o.In(0), o.In(1)
	batch := int(op.Int(o, "batch_dims"))
	d, ok := op.Dim(o, "dim", x.Rank())
	n, number := numberOf(o.Operands[0])
	if !ok || !number || !plain(o) || !n.elem.IsFloat() && n.i != 0 ||
		slices.ContainsFunc(indices.Shape[batch:], func(n dim.Dim) bool { return !n.Equal(dim.Const(1)) }) {
		return false
	}
	b := pass.Before(o)
	along := func(shape []dim.Dim, size dim.Dim) []dim.Dim {
		shape = slices.Clone(shape)
		shape[d] = size
		return shape
	}
	ones := func() []dim.Dim { return slices.Repeat([]dim.Dim{dim.Const(1)}, x.Rank()) }
	at := ones()
	copy(at, indices.Shape[:batch])
	position := b.Value("iota", nil, []types.Named{attr("dim", types.Int{V: int64(d)})}, &types.Tensor{Elem: indices.Elem, Shape: along(ones(), x.Shape[d])})
	here := b.Value("compare", []*ir.Value{position, b.Reshape(o.Operands[1], at...)}, []types.Named{attr("direction", types.Keyword("eq"))})
	rest := b.Splat(&types.Tensor{Elem: x.Elem}, n.f)
	update := b.Reshape(o.Operands[2], along(x.Shape, dim.Const(1))...)
	if kind := op.Str(o, "kind"); kind != "set" {
		update = b.Binary(kind, rest, update)
	}
	return built(b, o, b.Value("select", []*ir.Value{here, update, rest}, nil))
}
