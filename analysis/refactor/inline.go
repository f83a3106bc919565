package refactor

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// offerInline offers the body of the function that the op at the cursor calls.
func offerInline(s *selection) []Action {
	o := s.one()
	if o == nil || o.Name != op.Call || s.fn == nil || s.block == nil {
		return nil
	}
	a := Action{ID: "inline", Kind: Inline, Title: "Inline @" + o.Str("callee")}
	if _, _, err := s.callee(o); err != nil {
		a.Disabled = err.Error()
	}
	return []Action{a}
}

// callee is the function that o calls and what its symbols stand for there, or
// why its body cannot stand in o's place.
func (s *selection) callee(o *ir.Op) (*ir.Func, map[string]dim.Dim, error) {
	if err := s.flawed([]*ir.Op{o}); err != nil {
		return nil, nil, err
	}
	f := s.m.Func(o.Str("callee"))
	switch {
	case f == nil:
		return nil, nil, refuse("@%s is not defined in this file", o.Str("callee"))
	case f.Body == nil || len(origin.Tree(f.Op).Regions) != 1:
		return nil, nil, refuse("@%s is only declared here", f.Name)
	case f.Op == s.fn.Op:
		return nil, nil, refuse("@%s calls itself", f.Name)
	case f.Op.Bad || !s.clean(f.Op.Span):
		return nil, nil, refuse("there is an error in @%s", f.Name)
	case f.Op.Str(op.MeshAttr) != s.fn.Op.Str(op.MeshAttr):
		return nil, nil, refuse("@%s and @%s have not the same mesh", f.Name, s.fn.Name)
	case len(f.Op.Regions[0].Blocks) != 1:
		return nil, nil, refuse("@%s branches between blocks", f.Name)
	case len(f.Args) != len(o.Operands) || f.Body.Terminator() == nil || f.Body.Terminator().Name != op.Return ||
		len(f.Body.Terminator().Operands) != len(o.Results):
		return nil, nil, refuse("the call does not match the signature of @%s", f.Name)
	}
	b, mismatch := types.Bind(ir.Types(f.Args), ir.Types(o.Operands))
	if mismatch != nil {
		x := o.Operands[mismatch.Param]
		return nil, nil, refuse("@%s takes %s, and %s is %s", f.Name, f.Args[mismatch.Param].Type, spelled(x), x.Type)
	}
	own, callers := op.Bindings(f, s.p.Bind), op.Bindings(s.fn, s.p.Bind)
	for name, n := range own {
		_, passed := b.Sizes[name]
		if m, bound := callers[name]; !passed && (!bound || m != n) {
			return nil, nil, refuse("@%s binds %s to %d, which is not its size here", f.Name, name, n)
		}
	}
	return f, b.Sizes, nil
}

// respell are the edits that write the types in a called function with the sizes
// of the caller.
func (s *selection) respell(ops []*ir.Op, call *ir.Op, sizes map[string]dim.Dim) []diag.Edit {
	var edits []diag.Edit
	spell := func(v *ir.Value, written string) string {
		now := types.Sized(v.Type, sizes)
		if types.Equal(now, v.Type) {
			return written
		}
		return s.withAliases(now.String(), call)
	}
	ir.Walk(ops, func(o *ir.Op) bool {
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					if a := s.argument(v); a != nil && !a.Type.Empty() {
						edits = append(edits, respelled(s, origin.Tree(o).Abs(a.Type), spell(v, origin.Tree(o).Text(s.src, a.Type)))...)
					}
				}
			}
		}
		if text, ok := s.signature(o, spell); ok && !origin.Tree(o).Sig.Empty() {
			edits = append(edits, respelled(s, origin.Tree(o).Abs(origin.Tree(o).Sig), text)...)
		}
		return true
	})
	return edits
}

func respelled(s *selection, span source.Span, text string) []diag.Edit {
	if s.src.Slice(span) == text {
		return nil
	}
	return []diag.Edit{{Span: span, Text: text}}
}

func applyInline(s *selection, _ string) (*Change, error) {
	o := s.one()
	if o == nil || o.Name != op.Call || s.fn == nil || s.block == nil {
		return nil, refuse("there is no call here")
	}
	f, sizes, err := s.callee(o)
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
	return s.open(o, f.Op, 0, inner, results, s.respell(f.Body.Ops, o, sizes)...), nil
}
