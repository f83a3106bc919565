package op

import (
	"math"

	"dmir/dialect/types"
)

// Neutral is the neutral element of a reduction as a literal of type t.
func Neutral(r types.Reduction, t *types.Tensor) *types.Dense {
	e := t.Elem
	bits := e.Bits()
	switch {
	case r == types.Add, r == types.Or:
		return types.SplatOf(t, 0)
	case r == types.Mul:
		return types.SplatOf(t, 1)
	case r == types.And && e == types.I1:
		return types.SplatOf(t, 1)
	case r == types.And:
		return types.IntOf(t, -1)
	case e.IsFloat() && r == types.Max:
		return types.SplatOf(t, math.Inf(-1))
	case e.IsFloat():
		return types.SplatOf(t, math.Inf(1))
	case e == types.I1:
		return types.SplatOf(t, map[types.Reduction]float64{types.Min: 1}[r])
	case e.IsUnsigned() && r == types.Max:
		return types.IntOf(t, 0)
	case e.IsUnsigned():
		return types.IntOf(t, -1)
	case r == types.Max:
		return types.IntOf(t, -1<<(bits-1))
	}
	return types.IntOf(t, 1<<(bits-1)-1)
}
