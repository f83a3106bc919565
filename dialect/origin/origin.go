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
	t := Tree(o)
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
		if span, ok := entrySpan(t, src, at, name); ok {
			return span
		}
	}
	if !t.Lead.Empty() && o.Attr(name) != nil {
		return t.Abs(t.Lead)
	}
	return o.Head
}

// SignatureAttrSpan is where the value of an attribute of argument or result i of a function, whose
// dictionaries are in the attribute called list, is written; the function's head where it has no place of its own.
func SignatureAttrSpan(o *ir.Op, src *source.File, list string, i int, name string) source.Span {
	t := Tree(o)
	if t == nil || t.Func == nil {
		return AttrSpan(o, src, list)
	}
	of := t.Func.Args
	if list == "res_attrs" {
		of = t.Func.Results
	}
	if i >= len(of) {
		return AttrSpan(o, src, list)
	}
	if span, ok := entrySpan(t, src, of[i].Attrs, name); ok {
		return span
	}
	return o.Head
}

// entrySpan is where the value of an entry of the dictionary at a place in t is
// written, its key for one without a value.
func entrySpan(t *ast.Op, src *source.File, at ast.Rel, name string) (source.Span, bool) {
	if at.Empty() {
		return source.Span{}, false
	}
	x, err := parse.Attr(t.Text(src, at))
	if err != nil {
		return source.Span{}, false
	}
	for _, e := range x.Entries {
		if e.Key != name {
			continue
		}
		if e.VSpan.Empty() {
			e.VSpan = e.Span
		}
		return t.Abs(ast.Rel{Start: at.Start + e.VSpan.Start, End: at.Start + e.VSpan.End}), true
	}
	return source.Span{}, false
}
