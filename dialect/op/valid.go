package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Valid reports whether o has no reported error and only tensors and scalars as
// operands and results. The registry computes costs of such ops alone.
func Valid(o *ir.Op) bool { return !o.Bad && sized(o.Operands) && sized(o.Results) }

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
