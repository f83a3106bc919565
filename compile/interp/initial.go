package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The attributes of an argument that say what it is where no input is given:
// InitAttr a number that all its elements have, as the state of an optimizer
// before the first step; StddevAttr the standard deviation of its random
// numbers, as of weights.
const (
	InitAttr   = "dm.init"
	StddevAttr = "dm.stddev"
)

// ArgAttr is an attribute of argument i of fn, nil where it has none of that name.
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

// initial makes the random numbers in x, argument i of fn, what the argument's
// attributes ask for.
func (p *pool) initial(fn *ir.Func, i int, x *tensor.Tensor) {
	if v, ok := types.NumberOf(ArgAttr(fn, i, InitAttr)); ok {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, v)
			}
		})
	}
	if v, ok := types.NumberOf(ArgAttr(fn, i, StddevAttr)); ok && x.Elem.IsFloat() {
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for k := lo; k < hi; k++ {
				x.SetFloat(k, x.Float(k)*v)
			}
		})
	}
}
