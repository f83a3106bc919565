package interp

import (
	"fmt"
	"slices"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// padded computes s with factor k made longer by more elements, which in operands are the neutral
// ones; it returns the results without them. ok is false where the factor shares a dimension.
func padded(t *testing.T, f *op.Factors, s seen, k, more int) (out []*tensor.Tensor, ok bool, err error) {
	t.Helper()
	for _, dims := range slices.Concat(f.Operands, f.Results) {
		for _, list := range dims {
			if slices.Contains(list, k) && len(list) > 1 {
				return nil, false, nil
			}
		}
	}
	longer := func(dims [][]int, shape []int) []int {
		shape = slices.Clone(shape)
		for d, list := range dims {
			if slices.Contains(list, k) {
				shape[d] += more
			}
		}
		return shape
	}
	in, operands := make([]*tensor.Tensor, len(s.in)), make([]*types.Tensor, len(s.in))
	for i, x := range s.in {
		in[i] = tensor.New(x.Elem, longer(f.Operands[i], x.Shape)...)
		if f.Kinds[k] == op.Reduced && op.Divided(f.Operands[i], k) {
			fillNeutral(f.Combine, in[i])
		}
		for e, n := range leading(x.Shape, in[i].Shape) {
			copyElement(in[i], n, x, e)
		}
		operands[i] = typed(s.op.Operands[i].Type, in[i])
	}
	m, o := alone(s.op, operands)
	for i, y := range s.out {
		o.Results[i].Type = typed(s.op.Results[i].Type, &tensor.Tensor{Shape: longer(f.Results[i], y.Shape)})
	}
	if d := op.Of(s.op); d.Piece != nil {
		d.Piece(o, s.op)
	}
	if p := verify.Op(o); p != nil {
		return nil, true, fmt.Errorf("the op is not valid: %s", p.Msg)
	}
	long, err := try(t, m, Options{}, in...)
	if err != nil {
		return nil, true, err
	}
	for i, y := range s.out {
		z := tensor.New(y.Elem, y.Shape...)
		for e, n := range leading(y.Shape, long[i].Shape) {
			copyElement(z, e, long[i], n)
		}
		out = append(out, z)
	}
	return out, true, nil
}

// leading are the numbers, in a tensor of the shape whole, of the elements of one of shape that
// lies at its beginning.
func leading(shape, whole []int) []int {
	numbers := []int{0}
	for d, n := range shape {
		var next []int
		for _, a := range numbers {
			for v := range n {
				next = append(next, a*whole[d]+v)
			}
		}
		numbers = next
	}
	return numbers
}

// fillNeutral makes the elements of x those that change nothing in a reduction.
func fillNeutral(r types.Reduction, x *tensor.Tensor) {
	var f float64
	var n int64
	switch r {
	case types.Mul:
		f, n = 1, 1
	case types.Max:
		f, n = tensor.MinValue(x.Elem)
	case types.Min:
		f, n = tensor.MaxValue(x.Elem)
	case types.And:
		n = -1
		if x.Elem == types.I1 {
			n = 1
		}
	}
	for i := range x.Len() {
		if x.Elem.IsFloat() {
			x.SetFloat(i, f)
		} else {
			x.SetInt(i, n)
		}
	}
}
