package autodiff

import (
	"errors"
	"slices"

	"dmir/dialect/budget"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Inline puts in front of o, a func.call or a dm.grad, what it computes and gives
// the values that stand for its results; o stays. b must stand before o. left is what
// may be written out, nil for the budget of m. An error is a *Error.
func Inline(m *ir.Module, b *ir.Builder, o *ir.Op, left *budget.Left) ([]*ir.Value, error) {
	return expand(m, left).inline(b, o, 0)
}

// expansion is where calls and gradients are written out.
type expansion struct {
	m       *ir.Module
	budget  *budget.Left // what may still be written out
	callers []string     // functions whose bodies are being inlined
	costs   bool         // what is written out is asked what it costs
}

// expand is an expansion in m; left is nil for the budget of m.
func expand(m *ir.Module, left *budget.Left) expansion {
	if left == nil {
		left = budget.New(m, 0)
	}
	return expansion{m: m, budget: left}
}

// inline is Inline; a call whose values are computed again for the derivative is number segment of those.
func (x expansion) inline(b *ir.Builder, o *ir.Op, segment int64) ([]*ir.Value, error) {
	m := x.m
	f, err := x.target(o, ir.Types(o.Operands))
	if err != nil {
		return nil, err
	}
	if !x.budget.Spend(len(f.Body.Ops)) {
		return nil, tooLarge(m, o)
	}
	if len(f.Args) != len(o.Operands) || len(f.Results) != len(o.Results) {
		return nil, fail(m, o, "DM812", "%s does not match the signature of @%s", o.Name, o.Str("callee"))
	}
	if err := returned(m, o, f); err != nil {
		return nil, err
	}
	start := b.Index
	vs := ir.CloneBlock(b, f.Body, o.Operands)
	made := b.Block.Ops[start:b.Index]
	ir.Relocate(made, loc.From(o.Loc))
	if o.Name == op.Call {
		op.ResolveStages(made)
	}
	op.Inlined(made, o, segment)
	op.Called(made, o)
	return vs, nil
}

// returned checks that f, which ends in return, returns as many values as its type
// has results, all defined in it. The error is reported at o.
func returned(m *ir.Module, o *ir.Op, f *ir.Func) error {
	out := f.Body.Terminator().Operands
	if len(out) != len(f.Results) {
		return fail(m, o, "DM812", "@%s does not return as many values as its signature declares", f.Name)
	}
	for _, v := range out {
		if v.Block != f.Body && (v.Op == nil || v.Op.Parent != f.Body) {
			return fail(m, o, "DM812", "@%s returns %s, which it does not define", f.Name, v.Name)
		}
	}
	return nil
}

// target is the function that o stands for: the callee, or its gradient, in the
// sizes that operands of the types given have.
func (x expansion) target(o *ir.Op, operands []types.Type) (*ir.Func, error) {
	m, name := x.m, o.Str("callee")
	f := m.Func(name)
	switch {
	case f == nil:
		return nil, fail(m, o, "DM812", "there is no function @%s", name)
	case f.Body == nil || len(f.Op.Regions) != 1 || len(f.Op.Regions[0].Blocks) != 1 || f.Body.Terminator() == nil || f.Body.Terminator().Name != op.Return:
		return nil, fail(m, o, "DM812", "the body of @%s is not a single block that ends in return", name)
	case slices.Contains(x.callers, name) || recursive(m, f):
		return nil, fail(m, o, "DM812", "@%s calls itself", name)
	}
	if x.costs {
		f = flatten.Costed(f)
	} else {
		f, _ = flatten.Func(f)
	}
	bound, _ := op.Bound(f, operands, nil)
	f = resized(f, bound.Sizes)
	if o.Name != op.Grad {
		return f, nil
	}
	opts := optionsOf(o)
	x.callers = append(slices.Clone(x.callers), name)
	g, err := x.function(f, opts)
	var e *Error
	if errors.As(err, &e) && e.Code == budget.Code {
		err = tooLarge(m, o) // the gradient that cannot be written out, and not where its budget ended
	}
	return g, err
}

// tooLarge is the error that what o stands for exceeds the budget.
func tooLarge(m *ir.Module, o *ir.Op) *Error {
	return fail(m, o, budget.Code, "%s", budget.Message(m, o.Str("callee")))
}

// recursive reports whether f leads back to itself.
func recursive(m *ir.Module, f *ir.Func) bool {
	seen := map[*ir.Func]bool{}
	var leads func(g *ir.Func) bool
	leads = func(g *ir.Func) bool {
		found := false
		ir.Walk(g.Body.Ops, func(o *ir.Op) bool {
			if o.Name != op.Call && o.Name != op.Grad {
				return !found
			}
			if next := m.Func(o.Str("callee")); next != nil && next.Body != nil {
				if next == f {
					found = true
				} else if !seen[next] {
					seen[next] = true
					found = found || leads(next)
				}
			}
			return !found
		})
		return found
	}
	return leads(f)
}

// resized is f in other sizes; f itself where nothing changes.
func resized(f *ir.Func, sizes map[string]dim.Dim) *ir.Func {
	for s, d := range sizes {
		if d.Equal(dim.Sym(s)) {
			delete(sizes, s)
		}
	}
	if len(sizes) == 0 {
		return f
	}
	f = f.Clone()
	op.Resize(f, sizes)
	f.Results = nil
	for _, v := range f.Body.Terminator().Operands {
		f.Results = append(f.Results, v.Type)
	}
	return f
}
