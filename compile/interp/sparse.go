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

// SparseArg is the sparse tensor that argument i of fn, which has no sparse tensors (flatten.Func), and
// those behind it store; nil where that is none.
func SparseArg(fn *ir.Func, i int) *types.Tensor {
	a, _ := ArgAttr(fn, i, op.ComponentAttr).(types.TypeAttr)
	t, ok := a.T.(*types.Tensor)
	if !ok || t.Format == nil {
		return nil
	}
	for k, c := range t.Components() {
		if i+k >= len(fn.Args) {
			return nil
		}
		have := tensorType(fn.Args[i+k].Type)
		if have == nil || have.Elem != c.Tensor.Elem || have.Rank() != 1 || !strings.HasSuffix(fn.Args[i+k].Name, "."+c.Name) {
			return nil
		}
	}
	return t
}

// SparseName is the name of the sparse tensor that argument i of fn is the first to store.
func SparseName(fn *ir.Func, i int, t *types.Tensor) string {
	return strings.TrimSuffix(fn.Args[i].Name, "."+t.Components()[0].Name)
}

// sparse makes the arguments from number i on that store a sparse tensor, those that are not
// given, and checks those that are; n is how many there are, 0 where argument i is none's.
func (in *inputs) sparse(i int) (n int, err error) {
	t := SparseArg(in.fn, i)
	if t == nil {
		return 0, nil
	}
	cs := t.Components()
	name, values := SparseName(in.fn, i, t), i+len(cs)-1
	var given, missing []string
	for k, c := range cs {
		if size, ok := in.fn.Args[i+k].Type.(*types.Tensor).Shape[0].Eval(in.bind).Int(); ok {
			solve(c.Tensor.Shape[0].Eval(in.bind), size, in.bind)
		}
		if in.args[i+k] != nil {
			solve(c.Tensor.Shape[0].Eval(in.bind), int64(in.args[i+k].Len()), in.bind)
		}
		switch {
		case c.Level < 0:
		case in.args[i+k] != nil:
			given = append(given, in.fn.Args[i+k].Name)
		default:
			missing = append(missing, in.fn.Args[i+k].Name)
		}
	}
	if given != nil && missing != nil {
		e := argError(in.fn, i, "DM702", "inputs of @%s store the elements of %s in part: %s is given, and %s is not", in.fn.Name, name, strings.Join(given, ", "), strings.Join(missing, ", "))
		e.Help = "give all of them, or one file of the matrix: --input " + strings.TrimPrefix(name, "%") + "=FILE.npz"
		return 0, e
	}
	t = sparse.Bound(t, in.bind)
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
	if missing != nil {
		p, _ := op.StatedPattern(ArgAttr(in.fn, i, op.PatternAttr))
		drawn, err := sparse.Draw(t, p, tensor.NewStream(in.seed, uint64(i)))
		if err != nil {
			return 0, in.stores(i, name, err)
		}
		copy(x.Parts, drawn.Parts[:len(cs)-1])
	} else if err := x.CheckPattern(); err != nil {
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
	for k := int(x.Stored()); k < x.Values().Len(); k++ { // padding
		x.Values().SetFloat(k, 0)
	}
	return len(cs), nil
}

// stores is err, which is about what the arguments from number i on store, as an error of the run.
func (in *inputs) stores(i int, name string, err error) error {
	var bad *sparse.Error
	if !errors.As(err, &bad) {
		return err
	}
	text := fmt.Sprintf("argument %s of @%s: %s", name, in.fn.Name, bad)
	if bad.Part != "" {
		text = fmt.Sprintf("argument %s of @%s: %s.%s", name, in.fn.Name, name, bad)
	}
	e := argError(in.fn, i, "DM712", "%s", text)
	if bad.Help != "" {
		e.Help = bad.Help
	}
	return e
}
