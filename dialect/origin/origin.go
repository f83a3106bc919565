// Package origin links the ops of a program that was lowered from text to their
// syntax. The IR holds the links without looking at them (ir.Op.Origin,
// ir.Module.Origin), so that programs can come from elsewhere too: what stands here
// then answers that there is no tree, and the place of a part is that of its op.
package origin

import (
	"dmir/dialect/ir"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Tree is the syntax of o, nil for ops that come from no text.
func Tree(o *ir.Op) *ast.Op {
	t, _ := o.Origin.(*ast.Op)
	return t
}

// File holds the items of m, nil for a module that comes from no text.
func File(m *ir.Module) *ast.File {
	f, _ := m.Origin.(*ast.File)
	return f
}

// OperandSpan is where operand i is written; the op's head where it has no
// place of its own.
func OperandSpan(o *ir.Op, i int) source.Span {
	t := Tree(o)
	if t == nil || i < 0 || i >= len(t.Operands) || len(t.Operands) != len(o.Operands) {
		return o.Head
	}
	return t.Abs(t.Operands[i].Span)
}

// AttrSpan is where the value of an attribute is written, be it a clause, an
// entry of a dictionary or the lead; the op's head where it is not written.
func AttrSpan(o *ir.Op, src *source.File, name string) source.Span {
	_, value, ok := attrEntry(o, src, name)
	if t := Tree(o); !ok && t != nil && !t.Lead.Empty() && o.Attr(name) != nil {
		return t.Abs(t.Lead)
	}
	return value
}

// AttrNameSpan is where the name of an attribute is written, in a clause or in an entry of a dictionary; the op's
// head where it is not written.
func AttrNameSpan(o *ir.Op, src *source.File, name string) source.Span {
	key, _, _ := attrEntry(o, src, name)
	return key
}

// attrEntry is where the name and the value of an attribute are written in a clause or a dictionary of o; both are
// the op's head where they are not.
func attrEntry(o *ir.Op, src *source.File, name string) (key, value source.Span, ok bool) {
	t := Tree(o)
	if t == nil {
		return o.Head, o.Head, false
	}
	for _, c := range t.Clauses {
		if c.Name == name {
			return t.Abs(c.NameSpan), t.Abs(c.Value), true
		}
	}
	dicts := []ast.Rel{t.Attrs}
	if !t.Props.Empty() {
		dicts = append(dicts, ast.Rel{Start: t.Props.Start + 1, End: t.Props.End - 1})
	}
	for _, at := range dicts {
		if key, value, ok := entrySpan(t, src, at, name); ok {
			return key, value, true
		}
	}
	return o.Head, o.Head, false
}

// SignatureAttrSpan is where the value of an attribute of argument or result i of a function, whose
// dictionaries are in the attribute called list, is written; the function's head where it has no place of its own.
func SignatureAttrSpan(o *ir.Op, src *source.File, list string, i int, name string) source.Span {
	_, value := SignatureEntry(o, src, list, i, name)
	return value
}

// SignatureEntry is SignatureAttrSpan and, before it, where the attribute's name is written.
func SignatureEntry(o *ir.Op, src *source.File, list string, i int, name string) (key, value source.Span) {
	t := Tree(o)
	if t == nil || t.Func == nil {
		at := AttrSpan(o, src, list)
		return at, at
	}
	of := t.Func.Args
	if list == "res_attrs" {
		of = t.Func.Results
	}
	if i >= len(of) {
		at := AttrSpan(o, src, list)
		return at, at
	}
	if key, value, ok := entrySpan(t, src, of[i].Attrs, name); ok {
		return key, value
	}
	return o.Head, o.Head
}

// entrySpan is where the name and the value of an entry of the dictionary at a place in t are
// written; the name stands for a value that is left out.
func entrySpan(t *ast.Op, src *source.File, at ast.Rel, name string) (key, value source.Span, ok bool) {
	if at.Empty() {
		return key, value, false
	}
	x, err := parse.Attr(t.Text(src, at))
	if err != nil {
		return key, value, false
	}
	for _, e := range x.Entries {
		if e.Key != name {
			continue
		}
		if e.VSpan.Empty() {
			e.VSpan = e.Span
		}
		abs := func(r ast.Rel) source.Span { return t.Abs(ast.Rel{Start: at.Start + r.Start, End: at.Start + r.End}) }
		return abs(e.Span), abs(e.VSpan), true
	}
	return key, value, false
}
