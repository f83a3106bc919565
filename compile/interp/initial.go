package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// ArgAttr is the attribute of argument i of fn with that name, nil where it has
// none.
func ArgAttr(fn *ir.Func, i int, name string) types.Attr {
	all, _ := fn.Op.Attr("arg_attrs").(types.Array)
	if i >= len(all) {
		return nil
	}
	own, _ := all[i].(types.Dict)
	for _, a := range own {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

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
	if v, ok := types.NumberOf(ArgAttr(fn, i, op.InitAttr)); ok {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, v)
			}
		})
	}
	if v, ok := types.NumberOf(ArgAttr(fn, i, op.StddevAttr)); ok && x.Elem.IsFloat() {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, x.Float(k)*v)
			}
		})
	}
}
