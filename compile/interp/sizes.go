package interp

import (
	"context"
	"math"
	"slices"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// tensorType is t as a tensor type; a bare element type has rank 0.
func tensorType(t types.Type) *types.Tensor {
	switch t := t.(type) {
	case *types.Tensor:
		return t
	case types.Scalar:
		return &types.Tensor{Elem: t.Elem}
	}
	return nil
}

// shapeOf is the sizes of t under bind, -1 for a size that depends on an
// unbound symbol; bad is the first size that is unbound or impossible.
func shapeOf(t *types.Tensor, bind map[string]int64) (shape []int, bad *dim.Dim) {
	shape = make([]int, len(t.Shape))
	for i, d := range t.Shape {
		e := d.Eval(bind)
		n, ok := e.Int()
		if !ok || n < 0 || n > math.MaxInt32<<16 {
			if bad == nil {
				bad = &e
			}
			n = -1
		}
		shape[i] = int(n)
	}
	return shape, bad
}

// unify is Unify of t's sizes.
func unify(t *types.Tensor, shape []int, bind map[string]int64) bool {
	return Unify(t.Shape, shape, bind)
}

// Unify binds the symbols of sizes so that they are those of shape, and reports whether
// they can be. A size that is linear in one unbound symbol is solved for it; one that
// does not say what a symbol is may be any.
func Unify(sizes []dim.Dim, shape []int, bind map[string]int64) bool {
	if len(sizes) != len(shape) {
		return false
	}
	again := true
	for again {
		again = false
		for i, d := range sizes {
			e := d.Eval(bind)
			if n, ok := e.Int(); ok {
				if n != int64(shape[i]) {
					return false
				}
				continue
			}
			name, x, ok := e.Solve(dim.Const(int64(shape[i])))
			if ok {
				bind[name], _ = x.Int()
				again = true
			} else if e.Linear() {
				return false
			}
		}
	}
	return true
}

func sizeError(o *ir.Op, t *types.Tensor, bad dim.Dim) *Error {
	switch {
	case bad.IsUnnamed() && t.Format != nil && !slices.ContainsFunc(t.Shape, dim.Dim.IsUnnamed):
		return errorAt(o, "DM701", "state it in the format, as in #dm.csr<nnz = e>, and bind the name", "how many elements %s stores has neither a value nor a name", t)
	case bad.IsUnnamed():
		return errorAt(o, "DM701", "name the size in the type, as in #dm.at<dims = [n]>, and bind the name", "a size of %s has neither a value nor a name", t)
	case len(bad.Symbols()) > 0:
		s := bad.Symbols()[0]
		return errorAt(o, "DM701", "bind it: --bind "+s+"=512", "the size %q of %s has no value", s, t)
	case bad.Overflow():
		return errorAt(o, "DM705", "", "a size of %s does not fit into 64 bits", t)
	}
	return errorAt(o, "DM704", "", "a size of %s is %s", t, bad)
}

// ArgType is the element type and the shape of argument i of fn, with -1 for
// sizes that bind leaves open; err is a *Error for an argument that is no tensor.
func ArgType(fn *ir.Func, i int, bind map[string]int64) (elem types.Elem, shape []int, err error) {
	t := tensorType(fn.Args[i].Type)
	if t == nil {
		return 0, nil, argError(fn, i, "DM703", "argument %s of @%s has type %s, which cannot be created", fn.Args[i].Name, fn.Name, fn.Args[i].Type)
	}
	shape, _ = shapeOf(t, op.Bindings(fn, bind))
	return t.Elem, shape, nil
}

func argError(fn *ir.Func, i int, code, format string, args ...any) *Error {
	e := errorAt(nil, code, "", format, args...)
	e.Span = fn.Args[i].Span
	return e
}

// Inputs returns the arguments of fn, a tuple as its tensors: those in given, by
// name with or without "%", and for the others tensor.Random of the seed with the argument's number
// as the stream, so that it does not depend on what else is given, modified by
// the argument's attributes (op.InitAttr, op.StddevAttr). A sparse tensor is its components: its values are as
// those of others, and the elements that are stored are a pattern (op.PatternAttr). Sizes left open by bind are
// taken from the given tensors. A cancelled context returns its error within
// about 100 ms.
func Inputs(ctx context.Context, fn *ir.Func, bind map[string]int64, seed uint64, given map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	fn, _ = flatten.Func(fn)
	all := op.Bindings(fn, bind)
	args := make([]*tensor.Tensor, len(fn.Args))
	used := 0
	for i, a := range fn.Args {
		x, ok := given[a.Name]
		if !ok && len(a.Name) > 0 {
			x, ok = given[a.Name[1:]]
		}
		if !ok {
			continue
		}
		used++
		if err := checkArg(fn, i, x, all); err != nil {
			return nil, err
		}
		args[i] = x
	}
	if used < len(given) {
		return nil, unusedInput(fn, given)
	}
	p, release := newPool(ctx, 0)
	defer release()
	free := memoryLimit(0)
	for _, x := range args {
		if x != nil {
			free -= StorageBytes(x.Elem, x.Len())
		}
	}
	in := &inputs{ctx, p, fn, all, seed, free, args}
	for i := 0; i < len(fn.Args); {
		n, err := in.sparse(i)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			i += n
			continue
		}
		if err := in.argument(i); err != nil {
			return nil, err
		}
		i++
	}
	return args, nil
}

// inputs makes the arguments of fn that are not given.
type inputs struct {
	ctx context.Context
	*pool
	fn   *ir.Func
	bind map[string]int64
	seed uint64
	free int64 // bytes of memory that are left
	args []*tensor.Tensor
}

// argument makes argument i, unless it is given.
func (in *inputs) argument(i int) error {
	if in.args[i] != nil {
		return nil
	}
	elem, shape, err := ArgType(in.fn, i, in.bind)
	if err != nil {
		return err
	}
	t := tensorType(in.fn.Args[i].Type)
	if _, bad := shapeOf(t, in.bind); bad != nil {
		e := sizeError(nil, t, *bad)
		e.Span = in.fn.Args[i].Span
		return e
	}
	if !in.takes(elem, shape) {
		return argError(in.fn, i, "DM705", "argument %s of @%s, %s, does not fit into memory", in.fn.Args[i].Name, in.fn.Name, t)
	}
	x, err := array(in.fn, i)
	if err != nil {
		return err
	}
	if x == nil {
		x = tensor.New(elem, shape...)
		s := tensor.NewStream(in.seed, uint64(i))
		in.parallel(x.Len(), elements, func(lo, hi int) { s.Fill(x, lo, hi) })
		in.initial(in.fn, i, x)
		if in.stopped() {
			return context.Cause(in.ctx)
		}
	}
	in.args[i] = x
	return nil
}

// takes takes the memory of a tensor from what is left, and reports whether there is as much.
func (in *inputs) takes(elem types.Elem, shape []int) bool {
	n, ok := tensor.Count(shape)
	if !ok || StorageBytes(elem, n) > in.free {
		return false
	}
	in.free -= StorageBytes(elem, n)
	return true
}

func unusedInput(fn *ir.Func, given map[string]*tensor.Tensor) *Error {
	names := map[string]bool{}
	list := ""
	for _, a := range fn.Args {
		names[a.Name] = true
		if len(a.Name) > 0 {
			names[a.Name[1:]] = true
			if list != "" {
				list += ", "
			}
			list += a.Name[1:]
		}
	}
	for name := range given {
		if !names[name] {
			e := errorAt(fn.Op, "DM702", "", "@%s has no argument %q", fn.Name, name)
			if e.Help = "it takes no arguments"; list != "" {
				e.Help = "its arguments are " + list
			}
			return e
		}
	}
	return errorAt(fn.Op, "DM702", "", "an input is given twice, with and without %q", "%")
}

// Sizes are the sizes of symbols that bind, fn, which has no sparse tensors and no tuples, and its given arguments
// state, as Inputs takes them.
func Sizes(fn *ir.Func, bind map[string]int64, given map[string]*tensor.Tensor) map[string]int64 {
	all := op.Bindings(fn, bind)
	for _, a := range fn.Args {
		x := given[strings.TrimPrefix(a.Name, "%")]
		if t := tensorType(a.Type); x != nil && t != nil {
			unify(t, x.Shape, all)
		}
	}
	return all
}

// checkArg checks x against the type of argument i and binds its open sizes.
func checkArg(fn *ir.Func, i int, x *tensor.Tensor, bind map[string]int64) *Error {
	t := tensorType(fn.Args[i].Type)
	if t == nil {
		return argError(fn, i, "DM703", "argument %s of @%s has type %s, which cannot be created", fn.Args[i].Name, fn.Name, fn.Args[i].Type)
	}
	if x == nil || x.Elem != t.Elem || !unify(t, x.Shape, bind) {
		got := "nothing"
		if x != nil {
			got = x.Type()
		}
		return argError(fn, i, "DM702", "input %s of @%s: expected %s, got %s", fn.Args[i].Name, fn.Name, t.Bound(bind), got)
	}
	return nil
}
