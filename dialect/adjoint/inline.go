package adjoint

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// maxCalls bounds how deep calls are inlined.
const maxCalls = 100

// Inline puts in front of o, a func.call or a dm.grad, what it computes and gives
// the values that stand for its results; o stays. b must stand before o. An error
// is a *Error.
func Inline(m *ir.Module, b *ir.Builder, o *ir.Op) ([]*ir.Value, error) {
	return inline(m, b, o, nil)
}

func inline(m *ir.Module, b *ir.Builder, o *ir.Op, callers []string) ([]*ir.Value, error) {
	f, err := target(m, o, callers)
	if err != nil {
		return nil, err
	}
	if len(f.Args) != len(o.Operands) || len(f.Results) != len(o.Results) {
		return nil, fail(m, o, "DM802", "%s does not fit @%s", o.Name, o.Str("callee"))
	}
	values, sizes := map[*ir.Value]*ir.Value{}, map[string]dim.Dim{}
	for i, a := range f.Args {
		values[a] = o.Operands[i]
		bind(sizes, a.Tensor(), o.In(i))
	}
	copies := ir.CloneOps(b, f.Body.Ops[:len(f.Body.Ops)-1], values)
	for s, d := range sizes {
		if d.Equal(dim.Sym(s)) {
			delete(sizes, s)
		}
	}
	if len(sizes) > 0 {
		resize(copies, sizes)
	}
	var vs []*ir.Value
	for _, v := range f.Body.Terminator().Operands {
		vs = append(vs, values[v])
	}
	return vs, nil
}

// target is the function that o stands for: the callee, or its gradient.
func target(m *ir.Module, o *ir.Op, callers []string) (*ir.Func, error) {
	name := o.Str("callee")
	f := m.Func(name)
	switch {
	case f == nil:
		return nil, fail(m, o, "DM802", "there is no function @%s", name)
	case f.Body == nil || len(f.Op.Regions) != 1 || len(f.Op.Regions[0].Blocks) != 1 || f.Body.Terminator() == nil || f.Body.Terminator().Name != "func.return":
		return nil, fail(m, o, "DM802", "@%s has no single block that ends in return", name)
	case slices.Contains(callers, name) || len(callers) > maxCalls:
		return nil, fail(m, o, "DM802", "@%s calls itself by way of @%s", name, strings.Join(callers, ", @"))
	}
	callers = append(slices.Clone(callers), name)
	if o.Name == "dm.grad" {
		return ofOp(m, o, f, callers)
	}
	return f, nil
}

// bind notes what the symbols of a parameter stand for where it takes a value.
func bind(sizes map[string]dim.Dim, want, have *types.Tensor) {
	if want == nil || have == nil || want.Rank() != have.Rank() {
		return
	}
	for i, d := range want.Shape {
		if names := d.Symbols(); len(names) == 1 && d.Equal(dim.Sym(names[0])) {
			if _, seen := sizes[names[0]]; !seen {
				sizes[names[0]] = have.Shape[i]
			}
		}
	}
}

// resize says the types of ops, and of what is inside them, in other sizes.
func resize(ops []*ir.Op, sizes map[string]dim.Dim) {
	change := func(vs []*ir.Value) {
		for _, v := range vs {
			if t := v.Tensor(); t != nil {
				r := *t
				r.Shape = make([]dim.Dim, len(t.Shape))
				for i, d := range t.Shape {
					r.Shape[i] = d.Subst(sizes)
				}
				v.Type = &r
			}
		}
	}
	ir.Walk(ops, func(o *ir.Op) bool {
		change(o.Results)
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				change(b.Args)
			}
		}
		return true
	})
}
