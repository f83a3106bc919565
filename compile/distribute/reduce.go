package distribute

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// fillNeutral makes every element of x the neutral one of a reduction.
func fillNeutral(x *tensor.Tensor, r types.Reduction) {
	d := op.Neutral(r, &types.Tensor{Elem: x.Elem})
	for i := range x.Len() {
		if x.Elem.IsFloat() {
			x.SetFloat(i, d.Float(0))
		} else {
			x.SetInt(i, d.Int(0))
		}
	}
}

// combined reduces tensors of one shape, in f64 or as integers.
func combined(parts []*tensor.Tensor, r types.Reduction) *tensor.Tensor {
	out := tensor.New(parts[0].Elem, parts[0].Shape...)
	for i := range out.Len() {
		if out.Elem.IsFloat() {
			v := parts[0].Float(i)
			for _, p := range parts[1:] {
				v = floats(r, v, p.Float(i))
			}
			out.SetFloat(i, v)
			continue
		}
		v := parts[0].Integer(i)
		for _, p := range parts[1:] {
			v = integers(r, v, p.Integer(i))
		}
		out.SetInt(i, tensor.Wrap(out.Elem, v))
	}
	return out
}

func floats(r types.Reduction, a, b float64) float64 {
	switch r {
	case types.Mul:
		return a * b
	case types.Max:
		return math.Max(a, b)
	case types.Min:
		return math.Min(a, b)
	}
	return a + b
}

func integers(r types.Reduction, a, b int64) int64 {
	switch r {
	case types.Mul:
		return a * b
	case types.Max:
		return max(a, b)
	case types.Min:
		return min(a, b)
	case types.And:
		return a & b
	case types.Or:
		return a | b
	}
	return a + b
}
