package refactor

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// offerInline offers the body of the function that the op at the cursor calls.
func offerInline(s *selection) []Action {
	o := s.one()
	if o == nil || o.Name != "func.call" || s.fn == nil || s.block == nil {
		return nil
	}
	a := Action{ID: "inline", Kind: Inline, Title: "Inline @" + o.Str("callee")}
	if _, err := s.callee(o); err != nil {
		a.Disabled = err.Error()
	}
	return []Action{a}
}

// callee is the function that o calls, or why its body cannot stand in o's place.
func (s *selection) callee(o *ir.Op) (*ir.Func, error) {
	if err := s.flawed([]*ir.Op{o}); err != nil {
		return nil, err
	}
	f := s.m.Func(o.Str("callee"))
	switch {
	case f == nil:
		return nil, refuse("@%s is not defined in this file", o.Str("callee"))
	case f.Body == nil || len(f.Op.Tree.Regions) != 1:
		return nil, refuse("@%s is only declared here", f.Name)
	case f.Op == s.fn.Op:
		return nil, refuse("@%s calls itself", f.Name)
	case f.Op.Bad || !s.clean(f.Op.Span):
		return nil, refuse("there is an error in @%s", f.Name)
	case len(f.Op.Regions[0].Blocks) != 1:
		return nil, refuse("@%s jumps between blocks", f.Name)
	case len(f.Args) != len(o.Operands) || f.Body.Terminator() == nil || f.Body.Terminator().Name != "func.return" ||
		len(f.Body.Terminator().Operands) != len(o.Results):
		return nil, refuse("the call does not fit @%s", f.Name)
	}
	for i, a := range f.Args {
		if !sameSizes(a.Type, o.Operands[i].Type) {
			return nil, refuse("@%s takes %s, and %s is %s: its sizes have other names here", f.Name, a.Type, spelled(o.Operands[i]), o.Operands[i].Type)
		}
	}
	own, callers := op.Bindings(f, s.p.Bind), op.Bindings(s.fn, s.p.Bind)
	for name, n := range own {
		if m, bound := callers[name]; !bound || m != n {
			return nil, refuse("@%s binds %s to %d, which is not its size here", f.Name, name, n)
		}
	}
	return f, nil
}

// sameSizes reports whether what a function says about a parameter of type a is
// true of an operand of type b in the same words.
func sameSizes(a, b types.Type) bool {
	return types.Equal(a, b) || a.String() == b.String() && types.HasUnnamed(a) == types.HasUnnamed(b)
}

func applyInline(s *selection, _ string) (*Change, error) {
	o := s.one()
	if o == nil || o.Name != "func.call" || s.fn == nil || s.block == nil {
		return nil, refuse("there is no call here")
	}
	f, err := s.callee(o)
	if err != nil {
		return nil, err
	}
	if err := s.flawed([]*ir.Op{f.Op}); err != nil {
		return nil, err
	}
	n := s.allNames(nil)
	inner, results := renaming{}, renaming{}
	for i, a := range f.Args {
		inner[a] = spelled(o.Operands[i])
	}
	returned := f.Body.Terminator().Operands
	for i, v := range returned {
		if r := o.Results[i]; v.Op != nil && v.Op.Parent == f.Body && single(v) && single(r) && inner[v] == "" {
			inner[v] = r.Name // the value takes the name of the result
		}
	}
	inner.inside(f.Body.Ops, n.fresh)
	results.stand(o.Results, returned, inner)
	return s.open(o, f.Op, 0, inner, results), nil
}
