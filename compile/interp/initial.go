package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// array is what argument i of fn begins with where that is an array in a file, otherwise nil.
func array(fn *ir.Func, i int) (*tensor.Tensor, error) {
	d := op.InitialArray(fn.Op, i)
	if d == nil {
		return nil, nil
	}
	x, err := tensor.Of(d)
	if err != nil {
		return nil, argError(fn, i, types.MissingArray, "%v", err)
	}
	return x, nil
}

// initial applies the attributes of argument i of fn to its random numbers in
// x.
func (p *pool) initial(fn *ir.Func, i int, x *tensor.Tensor) {
	if v, ok := types.NumberOf(op.ArgAttr(fn, i, op.InitAttr)); ok {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, v)
			}
		})
	}
	if v, ok := types.NumberOf(op.ArgAttr(fn, i, op.StddevAttr)); ok && x.Elem.IsFloat() {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, x.Float(k)*v)
			}
		})
	}
}
