package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Sound reports whether o is fit to be asked for its cost: nothing is known to
// be wrong with it, and every operand and result is a tensor or a scalar.
func Sound(o *ir.Op) bool { return !o.Bad && sized(o.Operands) && sized(o.Results) }

func sized(vs []*ir.Value) bool {
	for _, v := range vs {
		switch v.Type.(type) {
		case *types.Tensor, types.Scalar:
		default:
			return false
		}
	}
	return true
}
