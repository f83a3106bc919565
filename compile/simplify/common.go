package simplify

import (
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/pattern"
)

func commonRule() Rule {
	return Rule{
		Name: "common", Doc: "An op equal to an earlier one gives the earlier one's results: same operands, attributes, types and regions. Operands of commutative ops may be swapped, letters of equations named otherwise; ops with a seed give the same numbers for the same seed. What a kernel computes by itself it does not read from outside.",
		block: func(_ *rewriter, b *ir.Block) (changed bool) {
			pattern.Repeated(b, plain, func(first, o *ir.Op) {
				first.Loc = loc.Fuse(first.Loc, o.Loc)
				pass.Replace(o, first.Results...)
				changed = true
			})
			return changed
		},
	}
}
