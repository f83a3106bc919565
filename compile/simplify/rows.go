package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func rowsRule() Rule {
	return Rule{
		Name: "reduction-by-rows",
		Doc: "A reduction of a whole tensor, behind an op that works on its rows and element-wise ops, first reduces the rows, which the op's kernel holds on chip, and then the rest: " +
			"the largest element of a normalized tensor, the sum of a softmax's entropy. Sums and products of halves stay in f32 in between.",
		Ops: []string{"reduce"}, apply: reductionByRows,
	}
}

func reductionByRows(_ *rewriter, o *ir.Op) bool {
	x := o.Operands[0]
	t := x.Tensor()
	dims, ok := op.Of(o).Reduced(o)
	kind := op.Str(o, "kind")
	if !ok || len(o.Operands) != 1 || len(o.Regions) > 0 || kind == "" || op.Str(o, "accumulate") == "f16" {
		return false
	}
	rows := rowsOf(x, dims)
	some := func(d int) bool { return !t.Shape[d].Equal(dim.Const(1)) }
	for d := range t.Shape { // a reduction that keeps columns has a kernel of its own shape
		if some(d) && !slices.Contains(dims, d) {
			return false
		}
	}
	if !slices.ContainsFunc(rows, some) || !slices.ContainsFunc(dims, func(d int) bool { return some(d) && !slices.Contains(rows, d) }) {
		return false
	}
	b := pass.Before(o)
	if elem := t.Elem; elem.IsFloat() && elem.Bytes() < 4 && (kind == "add" || kind == "mul") {
		x = b.Convert(x, types.F32)
	}
	lead := attr("kind", types.Keyword(kind))
	keep := attr("keep_dims", types.Bool(true))
	x = b.Value("reduce", []*ir.Value{x}, []types.Named{lead, attr("dims", op.IntList(rows...)), keep})
	attrs := []types.Named{lead, attr("dims", op.IntList(dims...))}
	if op.Bool(o, "keep_dims") {
		attrs = append(attrs, keep)
	}
	return built(b, o, b.Convert(b.Value("reduce", []*ir.Value{x}, attrs), t.Elem))
}

// rowsOf are the dimensions, among dims, of the rows of an op that x is computed from,
// with element-wise ops between at most; nil where there is none.
func rowsOf(x *ir.Value, dims []int) []int {
	const most = 32 // values looked at
	rank := x.Tensor().Rank()
	values := []*ir.Value{x}
	for i := 0; i < len(values) && i < most; i++ {
		v := values[i]
		if v.Op == nil || v.Op.Parent == nil || v.Tensor() == nil || v.Tensor().Rank() != rank {
			continue
		}
		if rows, ok := op.RowDims(v.Op); ok {
			if v.Op.In(0).Rank() == rank && !slices.ContainsFunc(rows, func(d int) bool { return !slices.Contains(dims, d) }) {
				return rows
			}
			continue
		}
		if op.Of(v.Op).Is(op.Pointwise) {
			for _, w := range v.Op.Operands {
				if !slices.Contains(values, w) {
					values = append(values, w)
				}
			}
		}
	}
	return nil
}
