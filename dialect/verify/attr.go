package verify

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// RenameAttr is the edits that make a clause of t the attribute a, which another
// framework calls as the clause is called: an integer becomes a list where a is one,
// and a list of one an integer.
func RenameAttr(src *source.File, t *ast.Op, c ast.Clause, a *op.AttrDef) []diag.Edit {
	edits := []diag.Edit{{Span: t.Abs(c.NameSpan), Text: a.Name}}
	text := t.Text(src, c.Value)
	bare, isList := strings.CutPrefix(strings.TrimSuffix(text, "]"), "[")
	switch {
	case a.Kind == op.KindInts && !isList:
		edits = append(edits, diag.Edit{Span: t.Abs(c.Value), Text: "[" + text + "]"})
	case a.Kind == op.KindInt && isList:
		edits = append(edits, diag.Edit{Span: t.Abs(c.Value), Text: bare})
	}
	return edits
}

// renameAttrs gives the attributes of c, a copy of the op in t, their names in def;
// edits do the same to the text. The problem is an attribute that is none of def's.
func renameAttrs(c *ir.Op, src *source.File, t *ast.Op, def *op.Def) ([]diag.Edit, *op.Problem) {
	var edits []diag.Edit
	for i, a := range c.Attrs {
		if def.Attr(a.Name) != nil {
			continue
		}
		at := slices.IndexFunc(t.Clauses, func(c ast.Clause) bool { return c.Name == a.Name })
		own := def.ForeignAttr(a.Name)
		if own == nil || at < 0 || c.Attr(own.Name) != nil {
			return nil, problem("DM168", head, "", "%s has no attribute %s", c.Name, a.Name)
		}
		c.Attrs[i].Name = own.Name
		list, isList := a.Value.(types.Array)
		switch {
		case own.Kind == op.KindInts && !isList:
			c.Attrs[i].Value = types.Array{a.Value}
		case own.Kind == op.KindInt && isList && len(list) == 1:
			c.Attrs[i].Value = list[0]
		}
		edits = append(edits, RenameAttr(src, t, t.Clauses[at], own)...)
	}
	return edits, nil
}
