package op

import "dmir/dialect/ir"

// InferResults gives o, which has none yet, the results that follow from its
// operands, attributes and regions. It reports false where its entry has no such
// rule or o breaks it.
func InferResults(o *ir.Op) bool {
	d := Of(o)
	if d == nil || d.Infer == nil {
		return false
	}
	ts, p := Infer(o)
	for i, t := range ts {
		o.Results = append(o.Results, &ir.Value{Type: t, Op: o, Index: i, Span: o.Head})
	}
	return p == nil
}
