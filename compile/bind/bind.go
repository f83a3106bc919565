// Package bind is the pass that makes a function static: numbers where its types
// have symbols.
package bind

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// Pass puts numbers where types have symbols, those of the command line and
// the configuration before those of dm.bind.
func Pass() pass.Pass {
	return pass.Pass{Name: "bind", Summary: "numbers in place of dimension symbols", Run: run}
}

func run(u *pass.Unit) error {
	given := op.Bindings(u.Func, u.Options.Bind)
	if outside := op.BeyondLimits(u.Func.Op, given); outside != "" {
		return pass.Errorf(u.Func.Op, "DM805", "%s", outside)
	}
	sizes := dim.Consts(given)
	op.Resize(u.Func, sizes)
	verify.Complete(u.Func.Body.Ops, verify.Infer)
	if err := leftOver(u); err != nil {
		return err
	}
	for _, d := range verify.Ops(u.Module, u.Func.Body.Ops) {
		// With numbers, rules may fail that symbols satisfied: the caller's numbers are wrong.
		// A return is compared with the signature, which still has symbols.
		if d.Severity == diag.Error && d.Code != "DM187" {
			return &pass.Error{Span: d.Span, Code: "DM805", Msg: "with the sizes given, " + d.Message, Help: d.Help}
		}
	}
	declared := u.Func.Results
	u.Func.Retype()
	for i, t := range u.Func.Results {
		if i < len(declared) && !types.Compatible(types.Sized(declared[i], sizes), t) {
			return pass.Errorf(u.Func.Body.Terminator(), "DM805", "with the sizes given, result %d is %s where %s is declared", i, t, types.Sized(declared[i], sizes))
		}
	}
	u.Func.Op.RemoveAttr(op.BindAttr)
	u.Func.Op.RemoveAttr(op.SizesAttr)
	return nil
}

// open is the first dimension of v that is no number, -1 where there is none.
func open(v *ir.Value) int {
	if t := v.Tensor(); t != nil {
		return slices.IndexFunc(t.Shape, func(d dim.Dim) bool { return !d.IsConst() })
	}
	return -1
}

// leftOver is one diagnostic about what is not bound.
func leftOver(u *pass.Unit) error {
	var values []*ir.Value
	var names []string
	look := func(v *ir.Value) {
		t := v.Tensor()
		if t == nil {
			return
		}
		for _, d := range t.Shape {
			if n, ok := d.Int(); ok && n >= 0 {
				continue
			}
			values = append(values, v)
			for _, s := range d.Symbols() {
				if !dim.Sym(s).IsUnnamed() {
					names = append(names, s)
				}
			}
		}
	}
	for _, v := range u.Func.Args {
		look(v)
	}
	ir.WalkValues(u.Func.Body.Ops, look)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	v := values[0]
	d := v.Tensor().Shape[max(open(v), 0)]
	var e *pass.Error
	switch {
	case len(names) > 0:
		e = pass.Errorf(nil, "DM801", "@%s has no size for %s", u.Func.Name, strings.Join(names, ", "))
		e.Help = "bind with --bind " + strings.Join(names, "=…,") + "=…, in dmir.toml, or with dm.bind on the function"
	case d.IsConst() || d.Overflow():
		e = pass.Errorf(nil, "DM805", "with the sizes given, %s is %s", label(v), v.Type)
	default:
		e = pass.Errorf(nil, "DM801", "the size of dimension %d of %s is not known before the program runs", open(v), label(v))
		e.Help = "name it, and bind the name"
	}
	e.Span = v.Span
	return e
}

func label(v *ir.Value) string {
	if v.Name == "" {
		return "a value"
	}
	return v.Name
}
