package ir

import (
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// OperandSpan is where operand i is written; the op's head where it has no
// place of its own.
func (o *Op) OperandSpan(i int) source.Span {
	if o.Tree == nil || i < 0 || i >= len(o.Tree.Operands) || len(o.Tree.Operands) != len(o.Operands) {
		return o.Head
	}
	return o.Tree.Abs(o.Tree.Operands[i].Span)
}

// AttrSpan is where the value of an attribute is written, be it a clause, an
// entry of a dictionary or the lead; the op's head where it is not written.
func (o *Op) AttrSpan(src *source.File, name string) source.Span {
	t := o.Tree
	if t == nil {
		return o.Head
	}
	for _, c := range t.Clauses {
		if c.Name == name {
			return t.Abs(c.Value)
		}
	}
	dicts := []ast.Rel{t.Attrs}
	if !t.Props.Empty() {
		dicts = append(dicts, ast.Rel{Start: t.Props.Start + 1, End: t.Props.End - 1})
	}
	for _, at := range dicts {
		if at.Empty() {
			continue
		}
		x, err := parse.Attr(t.Text(src, at))
		if err != nil {
			continue
		}
		for _, e := range x.Entries {
			if e.Key != name {
				continue
			}
			if e.VSpan.Empty() {
				e.VSpan = e.Span
			}
			return t.Abs(ast.Rel{Start: at.Start + e.VSpan.Start, End: at.Start + e.VSpan.End})
		}
	}
	if !t.Lead.Empty() && o.Attr(name) != nil {
		return t.Abs(t.Lead)
	}
	return o.Head
}
