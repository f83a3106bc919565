// Package gradient makes training steps: the gradient of a function as a function
// (Function), and the pass that writes every dm.grad out (Pass). Reverse mode
// itself is package autodiff's.
package gradient

import (
	"errors"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Options say what is differentiated; see package autodiff.
type Options = autodiff.Options

// Function is the gradient of f as a new function, not added to m: its arguments
// are f's and, where Seeded, the cotangents of f's floating-point results; its
// results are f's, where Joint, and the gradients of the arguments that Wrt
// names, all floating-point ones where it is nil. An error is an *autodiff.Error.
func Function(m *ir.Module, f *ir.Func, opts Options) (*ir.Func, error) {
	return autodiff.Function(m, f, opts)
}

// Pass writes every dm.grad of the function out as the joint forward and backward
// graph in its place. With Options.Grad the function itself becomes its own:
// its results, then the gradients by its floating-point arguments. Where its
// first result is no loss it takes the cotangents of its results as well.
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
	for _, o := range ops {
		vs, err := autodiff.Inline(u.Module, &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}, o)
		if err != nil {
			return placed(err)
		}
		for i, v := range vs {
			// The value takes the name that the file gives it.
			if r := o.Results[i]; v.Op != nil && len(v.Op.Results) == 1 && r.Name != "" {
				v.Name = r.Name
			}
			ir.ReplaceUses(o.Results[i], v)
		}
		ir.EraseAll(o)
	}
	if !u.Options.Grad {
		return nil
	}
	f, err := autodiff.Function(u.Module, u.Func, Options{Joint: true, Seeded: !autodiff.HasLoss(u.Func)})
	if err != nil {
		return placed(err)
	}
	// What is asked for by name is there to be run, whoever else called old.
	f.Private = false
	f.Op.Attrs = slices.DeleteFunc(f.Op.Attrs, func(a types.Named) bool { return a.Name == "sym_visibility" })
	put(u.Module, u.Func, f)
	u.Func = f
	return nil
}

// put lets f stand behind old in m under a name of its own.
func put(m *ir.Module, old, f *ir.Func) {
	autodiff.Name(m, f)
	m.AddFunc(f)
	m.Ops = slices.Insert(m.Ops, slices.Index(m.Ops, old.Op)+1, f.Op)
}

// placed is err as the passes' own error.
func placed(err error) error {
	var e *autodiff.Error
	if !errors.As(err, &e) {
		return err
	}
	return &pass.Error{Span: e.Span, Code: e.Code, Msg: e.Msg, Help: e.Help}
}
