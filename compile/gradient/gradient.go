// Package gradient builds training steps: the gradient of a function as a
// function (Function), and the pass that expands every dm.grad (Pass). Reverse
// mode itself is in package autodiff.
package gradient

import (
	"errors"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/autodiff"
	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Options are the options of differentiation; see package autodiff.
type Options = autodiff.Options

// Function returns the gradient of f as a new function, not added to m: its
// arguments are f's and, if Seeded, the cotangents of f's floating-point
// results; its results are f's, if Joint, and the gradients of the arguments in
// Wrt, all floating-point ones if it is nil. An error is an *autodiff.Error.
func Function(m *ir.Module, f *ir.Func, opts Options) (*ir.Func, error) {
	return autodiff.Function(m, f, opts)
}

// Pass replaces every dm.grad of the function by its joint forward and backward
// graph. With Options.Grad the function itself becomes its joint graph: its
// results, then the gradients by its floating-point arguments. If its first
// result is no loss it also takes the cotangents of its results.
func Pass() pass.Pass {
	return pass.Pass{Name: "gradient", Summary: "every dm.grad written out: forward and backward in one graph", Run: run}
}

func run(u *pass.Unit) error {
	var ops []*ir.Op
	ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.Grad {
			ops = append(ops, o)
		}
		return true
	})
	left := budget.New(u.Module, 0)
	marked := op.Regathers(u.Func.Op)
	for _, o := range ops {
		if marked {
			o.SetAttr(op.BackwardAttr, types.Unit{})
		}
		vs, err := autodiff.Inline(u.Module, &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}, o, left)
		if err != nil {
			return placed(err)
		}
		for i, v := range vs {
			// The value keeps the name in the file.
			if r := o.Results[i]; v.Op != nil && len(v.Op.Results) == 1 && r.Name != "" {
				v.Name = r.Name
			}
			if v.Op != nil && len(v.Uses) == 0 {
				op.KeepSharding(o.Results[i], v)
			}
			ir.ReplaceUses(o.Results[i], v)
		}
		ir.EraseAll(o)
	}
	if !u.Options.Grad {
		op.DropRecompute(u.Func.Body.Ops)
		return nil
	}
	f, err := autodiff.Function(u.Module, u.Func, Options{Joint: true, Seeded: !autodiff.HasLoss(u.Func), Resolved: true})
	if err != nil {
		return placed(err)
	}
	// The gradient is run under old's name, whether or not old is called
	// elsewhere.
	f.Private = false
	f.Op.Attrs = slices.DeleteFunc(f.Op.Attrs, func(a types.Named) bool { return a.Name == "sym_visibility" })
	put(u.Module, u.Func, f)
	u.Func = f
	return nil
}

// put inserts f after old in m under a unique name.
func put(m *ir.Module, old, f *ir.Func) {
	autodiff.Name(m, f)
	m.AddFunc(f)
	m.Ops = slices.Insert(m.Ops, slices.Index(m.Ops, old.Op)+1, f.Op)
}

// placed is err as the error of a pass.
func placed(err error) error {
	var e *autodiff.Error
	if !errors.As(err, &e) {
		return err
	}
	return &pass.Error{Span: e.Span, Code: e.Code, Msg: e.Msg, Help: e.Help}
}
