// Package inline is the pass that makes a function one body without calls.
package inline

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/budget"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
)

// Pass puts the bodies of called functions in place of the calls.
func Pass() pass.Pass {
	return pass.Pass{Name: "inline", Summary: "bodies of called functions in place of the calls", Run: run}
}

type inliner struct {
	u        *pass.Unit
	sizes    *budget.Sizes
	segments int64 // how many calls whose values are computed again are inlined
}

func run(u *pass.Unit) error {
	ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
		if op.IsCheck(o) {
			o.Verbatim = false // its operands get other names
		}
		return true
	})
	x := &inliner{u: u, sizes: budget.SizesOf(u.Module), segments: op.Segments(u.Func.Body.Ops)}
	op.ResolveStages(u.Func.Body.Ops)
	if err := x.flatten(u.Func, []*ir.Func{u.Func}); err != nil {
		return err
	}
	if o, before := op.StageBack(u.Func.Body.Ops); o != nil {
		stage, _ := op.StageOf(o)
		last, _ := op.StageOf(before)
		return pass.Errorf(o, "DM198", "stage %d follows stage %d once the calls in @%s are inlined", stage, last, u.Func.Name)
	}
	return nil
}

// flatten replaces the calls in f, which was reached through the functions of
// stack, f's original being the last.
func (x *inliner) flatten(f *ir.Func, stack []*ir.Func) error {
	var calls []*ir.Op
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.Call {
			calls = append(calls, o)
		}
		return true
	})
	for _, o := range calls {
		if err := x.u.Context().Err(); err != nil {
			return err
		}
		callee, err := x.callee(o, stack)
		if err != nil {
			return err
		}
		c := callee.Clone()
		op.ResolveStages(c.Body.Ops)
		if err := x.flatten(c, append(slices.Clip(stack), callee)); err != nil {
			return err
		}
		x.fit(c, o)
		if o.Attr(op.RecomputeAttr) != nil {
			x.segments++
		}
		op.Inlined(c.Body.Ops, o, x.segments)
		op.Called(c.Body.Ops, o)
		replace(o, c)
	}
	return nil
}

// callee is the function that o calls, if its body can stand in o's place.
func (x *inliner) callee(o *ir.Op, stack []*ir.Func) (*ir.Func, error) {
	name := o.Str("callee")
	f := x.u.Module.Func(name)
	switch {
	case f == nil:
		return nil, pass.Errorf(o, "DM803", "there is no function @%s", name)
	case f.Body == nil:
		return nil, pass.Errorf(o, "DM803", "@%s is only declared here", name)
	case len(f.Op.Regions[0].Blocks) != 1 || f.Body.Terminator() == nil || f.Body.Terminator().Name != op.Return:
		return nil, pass.Errorf(o, "DM803", "the body of @%s is not a single block that ends in return", name)
	case slices.Contains(stack, f):
		return nil, pass.Errorf(o, "DM802", "@%s calls itself", name)
	case len(f.Args) != len(o.Operands) || len(f.Body.Terminator().Operands) != len(o.Results):
		return nil, pass.Errorf(o, "DM803", "the call does not match the signature of @%s", name)
	case x.sizes.Exceeds(stack[0]):
		return nil, pass.Errorf(o, budget.Code, "%s", budget.Message(x.u.Module, stack[0].Name))
	}
	return f, nil
}

// fit gives the types in c the sizes of the call o, since symbols are a function's
// own: those of the operands, and for what these leave open those of the function's
// own bindings.
func (x *inliner) fit(c *ir.Func, o *ir.Op) {
	bound, _ := op.Bound(c, ir.Types(o.Operands), x.u.Options.Bind)
	sizes := bound.Sizes
	ir.WalkValues(c.Body.Ops, func(v *ir.Value) {
		t := v.Tensor()
		if t == nil {
			return
		}
		for _, d := range t.Shape {
			for _, s := range d.Symbols() {
				if _, known := sizes[s]; !known && !dim.Sym(s).IsUnnamed() {
					sizes[s] = dim.Sym(s + "_" + c.Name) // not the caller's symbol of that name
				}
			}
		}
	})
	op.Resize(c, sizes)
}

// replace puts the body of c, a copy of the callee, in the place of the call o.
func replace(o *ir.Op, c *ir.Func) {
	ir.Relocate(c.Body.Ops, loc.From(o.Loc))
	values := ir.InlineBlock(c.Body, o, o.Operands)
	for i, r := range o.Results {
		if v := values[i]; v.Op != nil && v.Op.Parent == o.Parent && len(v.Op.Results) == 1 && len(v.Uses) == 0 {
			v.Name = r.Name
		}
		if v := values[i]; v.Op != nil && v.Op.Parent == o.Parent && len(v.Uses) == 0 {
			op.KeepSharding(r, v)
		}
		ir.ReplaceUses(r, values[i])
	}
	ir.Erase(o)
}
