package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// trainings are the ops of a training step: the gradient of a function, and
// what an optimizer makes of it.
func trainings() []*Def { return []*Def{gradDef, sgdDef, momentumDef, adamDef} }

var gradDef = &Def{
	Name: "grad", Family: Training, Class: ClassContraction,
	Summary: "results of a function and the gradients by its arguments",
	Foreign: []Foreign{{Names: "value_and_grad vjp"}},
	Doc: "Computes `@callee` and, in reverse mode, the gradients of its loss. The operands are the callee's arguments; the results are the callee's and then, for every argument that `wrt` lists, " +
		"the gradient, of that argument's type: of a tuple of parameters the tuple of their gradients. Without `wrt` these are all floating-point arguments, tuples with an integer member not among them.\n\n" +
		"The loss is the callee's first result, a floating-point scalar; other results are only passed along. With `cotangents = n` the function may return anything: the last n operands are then " +
		"the cotangents of its n floating-point results, in their order, and the gradients those of the sum of products with them.\n\n" +
		"Stands for the joint forward and backward graph, which `dmir opt --passes gradient` writes out: calls in the callee are inlined, its kernels unfused, and every op gives the cotangents that its entry states. " +
		"Costs what that graph costs. Source: Griewank and Walther, *Evaluating Derivatives*, SIAM 2008.",
	Example: `func.func @example(%w: tensor<3xf32>, %x: tensor<2x3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  %loss, %dw = dm.grad @loss %w, %x, wrt = [0] : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<3xf32>)
  return %loss, %dw : tensor<f32>, tensor<3xf32>
}
func.func private @loss(%w: tensor<3xf32>, %x: tensor<2x3xf32>) -> tensor<f32> {
  %0 = dm.mul %x, %w : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = dm.mul %0, %0 : tensor<2x3xf32>
  %2 = dm.reduce add %1 : (tensor<2x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}`,
	Operands: []Param{{Name: "args", Elems: storable, Variadic: true, Tuples: true, Doc: "the callee's arguments, then the cotangents"}},
	Results:  []Param{{Name: "results", Elems: storable, Variadic: true, Tuples: true, Doc: "the callee's results, then the gradients"}},
	Attrs: []AttrDef{
		{Name: "callee", Kind: KindSymbol, Lead: true, Doc: "the function that is differentiated"},
		{Name: "wrt", Kind: KindInts, Optional: true, Doc: "numbers of the arguments whose gradients are given, from 0; all floating-point ones where absent"},
		{Name: "cotangents", Kind: KindInt, Default: types.Int{}, Doc: "how many of the operands, the last ones, are cotangents of the callee's floating-point results; 0: the first result is the loss"},
	},
	Kernel: Structure,
	Traits: Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		wrt, p := GradArgs(o)
		if p != nil {
			return nil, p
		}
		own := len(o.Results) - len(wrt)
		if own < 0 {
			return nil, problem("DM125", -1, "grad returns %d gradients after the results of @%s, but the op has fewer results", len(wrt), Str(o, "callee")).
				help("write the callee's results and then a gradient for each of the arguments %v", wrt)
		}
		ts := ir.Types(o.Results[:own])
		for _, i := range wrt {
			ts = append(ts, o.Operands[i].Type)
		}
		return ts, nil
	},
}

// GradArgs are the numbers of the operands of a dm.grad whose gradients it gives.
func GradArgs(o *ir.Op) ([]int, *Problem) {
	c := Int(o, "cotangents")
	if c < 0 || c > int64(len(o.Operands)) {
		return nil, attrProblem("DM115", "cotangents", "cotangents = %d, but there are %d operands", c, len(o.Operands)).help("the last operands are the cotangents; the arguments come before them")
	}
	args := o.Operands[:len(o.Operands)-int(c)]
	var wrt []int
	if Attr(o, "wrt") == nil {
		for i := range args {
			if HasGradient(o.Operands[i].Type) {
				wrt = append(wrt, i)
			}
		}
		return wrt, nil
	}
	for _, n := range Ints(o, "wrt") {
		switch {
		case n < 0 || n >= int64(len(args)):
			return nil, attrProblem("DM115", "wrt", "wrt lists argument %d, but there are %d", n, len(args)).help("arguments are counted from 0")
		case !HasGradient(o.Operands[n].Type):
			return nil, attrProblem("DM115", "wrt", "argument %d is %s, which has no gradient", n, o.Operands[n].Type).help("wrt lists floating-point arguments, and tuples of nothing else")
		}
		wrt = append(wrt, int(n))
	}
	return wrt, nil
}

// Gradients are the attributes wrt and cotangents of a dm.grad, counted in tensors:
// as they are where no operand is a tuple.
func Gradients(o *ir.Op) (wrt []int, cotangents int64) {
	args, _ := GradArgs(o)
	first, n := make([]int, len(o.Operands)), 0
	for i, v := range o.Operands {
		first[i] = n
		n += max(1, len(types.Parts(v.Type)))
	}
	wrt = []int{}
	for _, i := range args {
		for k, m := range types.Parts(o.Operands[i].Type) { // of a sparse tensor the values alone
			if m.Tensor.Elem.IsFloat() {
				wrt = append(wrt, first[i]+k)
			}
		}
	}
	if c := Int(o, "cotangents"); c > 0 && c <= int64(len(o.Operands)) {
		for _, v := range o.Operands[len(o.Operands)-int(c):] {
			parts := types.Parts(v.Type)
			for _, m := range parts {
				if len(parts) == 1 || m.Tensor.Elem.IsFloat() {
					cotangents++
				}
			}
			if len(parts) == 0 {
				cotangents++
			}
		}
	}
	return wrt, cotangents
}
