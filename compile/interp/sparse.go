package interp

import (
	"errors"
	"fmt"
	"strings"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// SparseArg is a sparse tensor that arguments in a row store.
type SparseArg struct {
	First int    // the number of the first of them
	Name  string // of the tensor
	Type  *types.Tensor
}

// SparseArgs are those of fn, which has no sparse tensors itself (flatten.Func).
func SparseArgs(fn *ir.Func) (out []SparseArg) {
	for i := range fn.Args {
		if a := sparseArg(fn, i); a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// sparseArg is the sparse tensor that arguments from number i on store, nil where that is none's first.
func sparseArg(fn *ir.Func, i int) *SparseArg {
	a, _ := op.ArgAttr(fn, i, op.ComponentAttr).(types.TypeAttr)
	t, ok := a.T.(*types.Tensor)
	if !ok || t.Format == nil {
		return nil
	}
	cs := t.Components()
	name, ok := strings.CutSuffix(fn.Args[i].Name, "."+cs[0].Name)
	if !ok || i+len(cs) > len(fn.Args) {
		return nil
	}
	for k, c := range cs {
		own := tensorType(fn.Args[i+k].Type)
		if own == nil || own.Elem != c.Tensor.Elem || own.Rank() != 1 || fn.Args[i+k].Name != name+"."+c.Name {
			return nil
		}
	}
	return &SparseArg{i, name, t}
}

// sparse makes the arguments from number i on that store a sparse tensor, those that are not
// given, and checks those that are; n is how many there are, 0 where argument i is none's.
func (in *inputs) sparse(i int) (n int, err error) {
	a := sparseArg(in.fn, i)
	if a == nil {
		return 0, nil
	}
	cs := a.Type.Components()
	name, values := a.Name, i+len(cs)-1
	for k, c := range cs {
		if size, ok := in.fn.Args[i+k].Type.(*types.Tensor).Shape[0].Eval(in.bind).Int(); ok {
			Unify(c.Tensor.Shape, []int{int(size)}, in.bind)
		}
		if in.args[i+k] != nil {
			Unify(c.Tensor.Shape, []int{in.args[i+k].Len()}, in.bind)
		}
	}
	t := a.Type.Bound(in.bind)
	for _, d := range t.Sizes() {
		if v, ok := d.Int(); !ok || v < 0 {
			e := sizeError(nil, t, d)
			e.Span = in.fn.Args[i].Span
			return 0, e
		}
	}
	for k, c := range t.Components() {
		size, _ := sparse.Numbers(c.Tensor.Shape)
		if c.Level >= 0 && in.args[i+k] == nil && !in.takes(c.Tensor.Elem, []int{int(size[0])}) {
			return 0, argError(in.fn, i, "DM705", "argument %s of @%s, %s, does not fit into memory", name, in.fn.Name, t)
		}
	}
	x := &sparse.Tensor{Type: t, Parts: in.args[i : values+1]}
	p, _ := op.StatedPattern(op.ArgAttr(in.fn, i, op.PatternAttr))
	if err := x.Complete(p, tensor.NewStream(in.seed, uint64(i))); err != nil {
		return 0, in.stores(i, name, err)
	}
	if in.args[values] != nil {
		if err := x.Check(); err != nil {
			return 0, in.stores(i, name, err)
		}
		return len(cs), nil
	}
	if err := in.argument(values); err != nil {
		return 0, err
	}
	x.Pad()
	return len(cs), nil
}

// stores is err, which is about what the arguments from number i on store, as an error of the run.
func (in *inputs) stores(i int, name string, err error) error {
	var bad *sparse.Error
	if !errors.As(err, &bad) {
		return err
	}
	where := fmt.Sprintf("argument %s of @%s: ", name, in.fn.Name)
	if bad.Part != "" {
		where += name + "."
	}
	e := argError(in.fn, i, "DM712", "%s%s", where, bad)
	if bad.Help != "" {
		e.Help = bad.Help
	}
	return e
}
