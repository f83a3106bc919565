package verify

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// isUnknownOp reports whether o, which could be read, has a name of the dialect that
// no op has.
func isUnknownOp(o *ir.Op) bool {
	if !strings.HasPrefix(o.Name, op.Prefix) || op.Of(o) != nil {
		return false
	}
	t := origin.Tree(o)
	return t == nil || t.Form != ast.Bad
}

// nameSpan is where the name of o stands.
func nameSpan(o *ir.Op) source.Span {
	if t := origin.Tree(o); t != nil {
		return t.Abs(t.NameSpan)
	}
	return o.Head
}

// propose tells what o, whose name no op has, may be: the op that the name stands
// for in another framework, or one that is spelt alike. A fix is offered where that op
// takes what o has.
func (v *verifier) propose(o *ir.Op, d *diag.Diagnostic) {
	d.Span = nameSpan(o)
	name := strings.TrimPrefix(o.Name, op.Prefix)
	if m, ok := op.Means(name); ok {
		p := v.replace(o, m, d)
		for i := range d.Fixes {
			d.Fixes[i].Safe = true // the name is no guess
		}
		d.Help = name + " is " + m.String() + " in this dialect"
		if !m.Foreign {
			d.Help = "did you mean " + m.String() + "?"
		}
		if p != nil && m.Rest == "" {
			d.Notes = append(d.Notes, p.Msg)
		}
		return
	}
	near, ok := v.near[name]
	if !ok {
		if near = op.Like(name); v.near == nil {
			v.near = map[string][]op.Meaning{}
		}
		v.near[name] = near
	}
	for _, m := range near {
		if v.replace(o, m, d) == nil {
			d.Help = "did you mean " + m.String() + "?"
			return
		}
	}
	const telling = 4 // letters; a shorter name is near to ops that have nothing in common with it
	if len(near) > 0 && len(name) >= telling {
		d.Help = "did you mean " + near[0].String() + "?"
	}
}

// replace offers to make o the op that m is; a problem is why it cannot be that.
func (v *verifier) replace(o *ir.Op, m op.Meaning, d *diag.Diagnostic) *op.Problem {
	t := origin.Tree(o)
	if t == nil || t.Form != ast.Pretty && (t.Form != ast.Generic || m.Form != "") {
		return nil
	}
	c := *o
	c.Name, c.Attrs = m.Def.FullName(), slices.Clone(o.Attrs)
	name, value, clause := strings.Cut(m.Form, " = ")
	lead := m.Def.Lead()
	written := t.Text(v.m.Src, t.Lead)
	switch {
	case clause:
		c.SetAttr(name, attr(value))
	case m.Form != "" && written == "":
		c.SetAttr(lead.Name, attr(m.Form))
	case written != "" && (lead == nil || m.Form != ""):
		return problem("DM172", head, "", "%s takes no %s before its operands", m, clip(written))
	}
	if written != "" {
		c.SetAttr(lead.Name, attr(written))
	}
	renamed, p := renameAttrs(&c, v.m.Src, t, m.Def)
	if p != nil {
		return p
	}
	if p := Op(&c); p != nil || m.Rest != "" {
		return p
	}
	text := m.Def.FullName()
	if !clause && m.Form != "" {
		text += " " + m.Form
	}
	fix := diag.Fix{Title: "Replace by " + m.String(), Edits: []diag.Edit{{Span: d.Span, Text: text}}}
	if t.Form == ast.Generic {
		fix.Edits[0].Text = parse.Quote(text)
	}
	fix.Edits = append(fix.Edits, renamed...)
	if clause {
		at := behindOperands(t)
		fix.Edits = append(fix.Edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: ", " + m.Form})
	}
	d.Fixes = []diag.Fix{fix}
	return nil
}

// behindOperands is where the next clause of t can stand.
func behindOperands(t *ast.Op) int {
	end := t.NameSpan.End
	if n := len(t.Operands); n > 0 {
		end = t.Operands[n-1].Span.End
	}
	if n := len(t.Clauses); n > 0 {
		end = t.Clauses[n-1].Value.End
	}
	return t.Off + int(end)
}

// attr is the value of an attribute's text, a keyword where it is a bare word.
func attr(text string) types.Attr {
	x, err := parse.Attr(text)
	if err != nil {
		return types.Raw(text)
	}
	a, err := types.AttrFromExpr(x, nil)
	if err != nil {
		return types.Raw(text)
	}
	if t, ok := a.(types.TypeAttr); ok {
		return types.Keyword(t.T.String())
	}
	return a
}

// fixKeyword offers the word that the attribute's wrong one stands for.
func (v *verifier) fixKeyword(o *ir.Op, name string, d *diag.Diagnostic) {
	wrong := op.Str(o, name)
	word, _ := keyword(wrong, op.Of(o).Attr(name))
	if word == "" {
		return
	}
	switch v.m.Src.Slice(d.Span) {
	case wrong:
	case parse.Quote(wrong):
		word = parse.Quote(word)
	default:
		return
	}
	m, _ := op.Means(wrong)
	d.Fixes = []diag.Fix{{Title: "Replace by " + word, Safe: m.Form == strings.Trim(word, `"`), Edits: []diag.Edit{{Span: d.Span, Text: word}}}}
}
