package simplify

import (
	"dmir/dialect/ir"
	"dmir/dialect/pattern"
)

func convertRules() []Rule {
	return []Rule{{
		Name: "convert-chain", Doc: "A convert to the type that a value has is the value; after a convert that loses nothing, the value is converted at once.",
		Ops: []string{"convert"}, apply: convertChain,
	}}
}

func convertChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	inner, exact := pattern.Converted(o)
	if inner == nil || !exact || !plain(inner) {
		return false
	}
	if origin := inner.Operands[0]; !use(o, origin) {
		o.SetOperand(0, origin)
	}
	return true
}
