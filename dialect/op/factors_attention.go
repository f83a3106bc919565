package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// attentionFactors are the batch, the heads and, where no query sees keys by its
// place, the queries.
func attentionFactors(o *ir.Op) *Factors {
	f := newFactors(o)
	q, k := in(o, 0).Shape, in(o, 1).Shape
	n := len(q)
	for d := range max(n-3, 0) {
		batch := f.factor(q[d], Reduced)
		f.scored(o, d, []int{batch}, []int{batch})
	}
	if n > 2 {
		heads := []int{f.factor(k[n-3], Reduced)}
		if group, ok := q[n-3].Div(k[n-3]); ok {
			heads = append(heads, f.factor(group, Reduced))
		}
		f.scored(o, n-3, heads, heads[:1])
	}
	if !Bool(o, "causal") {
		f.scored(o, n-2, []int{f.factor(q[n-2], Reduced)}, nil)
	}
	return f
}

// scored gives dimension d of the scores of an attention its factors, in all tensors that have it;
// keys are those of k and v, and of their cotangents.
func (f *Factors) scored(o *ir.Op, d int, queries, keys []int) {
	mask := OperandNumber(o, "mask")
	set := func(tensors [][][]int, i int, t *types.Tensor, masks, keyed bool) {
		dims := tensors[i]
		switch {
		case masks: // aligned at the last dimension, and broadcast
			if at := d - (in(o, 0).Rank() - t.Rank()); at >= 0 && !isOne(t.Shape[at]) {
				dims[at] = queries
			}
		case d >= len(dims): // the step
		case keyed:
			dims[d] = keys
		default:
			dims[d] = queries
		}
	}
	for i := range f.Operands {
		set(f.Operands, i, in(o, i), i == mask, i == 1 || i == 2)
	}
	grad := len(o.Results) > 2
	for i := range f.Results {
		set(f.Results, i, out(o, i), grad && i == 3, grad && (i == 1 || i == 2))
	}
}
