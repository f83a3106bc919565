package simplify

import (
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

func segmentRules() []Rule {
	return []Rule{{
		Name: "segments-in-one-vector", Doc: "An op on segments whose positions have leading dimensions is that of one vector of positions, in which each batch follows the one before: kernels walk one vector.",
		Ops: []string{"segment_reduce", "segment_ids"}, apply: segmentsInOneVector,
	}}
}

func segmentsInOneVector(_ *rewriter, o *ir.Op) bool {
	if !op.HasBatches(o) {
		return false
	}
	b := pass.Before(o)
	vs := op.Unbatched(b.Builder, o)
	return vs != nil && built(b, o, vs[0])
}
