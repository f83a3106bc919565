package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Bound is what the symbols of f stand for where a call passes it values of the types given: the sizes of the values,
// and for symbols that these leave open those of bind and of the function's own attribute. It is the one place that says
// so: who checks, costs, writes out or runs a call asks it. What is passed beyond the arguments of f does not count, and
// of a call with fewer operands nothing but those.
func Bound(f *ir.Func, given []types.Type, bind map[string]int64) (types.Binding, *types.Mismatch) {
	n := min(len(f.Args), len(given))
	b, mismatch := types.Bind(ir.Types(f.Args[:n]), given[:n])
	for name, size := range Bindings(f, bind) {
		if _, bound := b.Sizes[name]; !bound {
			b.Sizes[name] = dim.Const(size)
		}
	}
	return b, mismatch
}

// Generic reports whether f has a symbol among the sizes of its arguments or results: calls give it several instances.
func Generic(f *ir.Func) bool {
	open := func(t types.Type) bool {
		for _, m := range types.Members(t) {
			for _, d := range m.Tensor.Sizes() {
				if !d.IsConst() {
					return true
				}
			}
		}
		return false
	}
	for _, v := range f.Args {
		if open(v.Type) {
			return true
		}
	}
	for _, t := range f.Results {
		if open(t) {
			return true
		}
	}
	return false
}

// Resize gives the symbols in f, a function of the caller's own, the sizes given: in the types of its arguments and
// values and in the attributes that are sizes. The types of its results follow from what it returns.
func Resize(f *ir.Func, sizes map[string]dim.Dim) {
	if len(sizes) == 0 {
		return
	}
	change := func(v *ir.Value) { v.Type = types.Sized(v.Type, sizes) }
	for _, v := range f.Args {
		change(v)
	}
	SizeComponents(f.Op, sizes)
	if f.Body == nil {
		return
	}
	ir.WalkValues(f.Body.Ops, change)
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		for _, name := range []string{ProductsAttr, ColumnsAttr} {
			if n, ok := Size(o, name); ok && !n.IsConst() {
				o.SetAttr(name, sizeAttr(n.Subst(sizes)))
			}
		}
		return true
	})
}

// sizeAttr is d as an attribute that is a size.
func sizeAttr(d dim.Dim) types.Attr {
	if n, ok := d.Int(); ok {
		return types.Int{V: n}
	}
	return types.Str(d.String())
}
