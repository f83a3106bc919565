package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/op"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// complete completes diagnostics of the parser, which knows no ops. Those about numbers
// in place of operands name the op that makes a value of one, and offer to insert it;
// those about names without a dialect name the op that they stand for, and those about
// the form of an op show it written.
func (p *Program) complete(diags []diag.Diagnostic) {
	next := -1 // number of a name that the text has not
	for i := range diags {
		d := &diags[i]
		if d.Code == "DM027" {
			if m, ok := op.Means(p.Src.Slice(d.Span)); ok {
				d.Help = "the op of this dialect is " + m.String()
			}
			continue
		}
		if d.Code == "DM021" || d.Code == "DM022" {
			if t := opAt(p.Tree.Items, d.Span); t != nil {
				if def := op.Lookup(t.Name); def != nil {
					d.Help = "an example is `" + def.ExampleLine() + "`"
				}
			}
			continue
		}
		// The first operand is read as a leading attribute.
		if d.Code != "DM023" && d.Code != "DM172" || !isNumber(p.Src.Slice(d.Span)) {
			continue
		}
		d.Help = "a number is a value of its own, which " + op.Constant + " gives"
		if next < 0 {
			next = firstFree(p.Tree.Items)
		}
		if t := opAt(p.Tree.Items, d.Span); t != nil && p.fixLiteral(d, t, "%c"+strconv.Itoa(next)) {
			next++
		}
	}
}

// firstFree is a number above that of all values %c0, %c1 … that ops define.
func firstFree(ops []*ast.Op) int {
	free := 0
	take := func(name string) {
		if number, ok := strings.CutPrefix(name, "%c"); ok {
			if n, err := strconv.Atoi(number); err == nil && n < 1<<30 {
				free = max(free, n+1)
			}
		}
	}
	takeAll := func(args []ast.BlockArg) {
		for i := range args {
			take(args[i].Name)
		}
	}
	ast.Walk(ops, func(o *ast.Op) bool {
		for i := range o.Results {
			take(o.Results[i].Name)
		}
		takeAll(o.Defs)
		if o.Func != nil {
			takeAll(o.Func.Args)
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				takeAll(b.Args)
			}
		}
		return true
	})
	return free
}

func isNumber(text string) bool {
	x, err := parse.Attr(text)
	return err == nil && (x.Kind == ast.AInt || x.Kind == ast.AFloat) && x.Type == nil && !ast.NotFinite(text)
}

// opAt is the innermost op around a place, nil where there is none.
func opAt(ops []*ast.Op, at source.Span) *ast.Op {
	i, found := slices.BinarySearchFunc(ops, at.Start, func(o *ast.Op, off int) int { return o.Off - off })
	if !found {
		i--
	}
	if i < 0 || ops[i].Span().End < at.End {
		return nil
	}
	for _, r := range ops[i].Regions {
		for _, b := range r.Blocks {
			if t := opAt(b.Ops, at); t != nil {
				return t
			}
		}
	}
	return ops[i]
}

// fixLiteral offers to define the number that d is about in front of t and to use it
// in its place, if the op can then be read and states its types.
func (p *Program) fixLiteral(d *diag.Diagnostic, t *ast.Op, name string) bool {
	text, at := p.Src.Slice(t.Span()), d.Span.Start-t.Off
	number := p.Src.Slice(d.Span)
	now := parse.File(source.New("", text[:at]+name+text[at+len(number):]))
	if len(now.Items) != 1 || len(now.Diags) > 0 || now.Items[0].Form != ast.Pretty && now.Items[0].Form != ast.Generic {
		return false
	}
	o := now.Items[0]
	which := -1
	for i, u := range o.Operands {
		if u.Name == name {
			which = i
		}
	}
	sig, err := parse.Signature(o.Text(now.Src, o.Sig))
	if err != nil || which < 0 || sig.List || len(sig.In) == 0 || len(sig.Out) == 0 {
		return false
	}
	in := make([]string, 0, len(o.Operands))
	elem := ""
	for _, x := range sig.In {
		in = append(in, x.Text)
		if e := element(x); e != "i1" && elem == "" {
			elem = e
		}
	}
	whole := "tensor<" + elem + ">"
	switch n := len(o.Operands); {
	case sig.Single && sig.In[0].Kind == ast.TScalar: // in a scalar region
		whole, in = elem, nil
	case sig.Single && n == 1:
		whole, in = in[0], nil
	case sig.Single:
		for len(in) < n {
			in = append(in, in[0])
		}
		in[which] = whole
	case len(in) == n-1:
		in = append(in[:which], append([]string{whole}, in[which:]...)...)
	case len(in) != n:
		return false
	case sig.In[which].Kind == ast.TTensor:
		elem, whole = element(sig.In[which]), in[which]
	default:
		in[which] = whole
	}
	value, ok := literalOf(number, elem)
	if !ok {
		return false
	}
	if strings.HasPrefix(whole, "tensor") {
		value = "dense<" + value + ">"
	}
	edits := []diag.Edit{
		{Span: source.Span{Start: t.Off, End: t.Off}, Text: fmt.Sprintf("%s = %s %s : %s\n%s", name, op.Constant, value, whole, p.Src.Indent(t.Off))},
		{Span: d.Span, Text: name},
	}
	if in != nil {
		out := make([]string, len(sig.Out))
		for i, x := range sig.Out {
			out[i] = x.Text
		}
		list := "(" + strings.Join(in, ", ") + ") -> "
		if len(out) == 1 {
			list += out[0]
		} else {
			list += "(" + strings.Join(out, ", ") + ")"
		}
		moved := len(number) - len(name)
		edits = append(edits, diag.Edit{Span: source.Span{Start: t.Off + int(o.Sig.Start) + moved, End: t.Off + int(o.Sig.End) + moved}, Text: list})
	}
	d.Help += fmt.Sprintf(": %s = %s %s : %s", name, op.Constant, value, whole)
	d.Fixes = []diag.Fix{{Title: "Define " + name + " by " + op.Constant, Safe: true, Edits: edits}}
	return true
}

// element is the element type of a tensor type, or the scalar type itself.
func element(x *ast.TypeExpr) string {
	if x.Elem != nil {
		return x.Elem.Text
	}
	return x.Text
}

// literalOf is a number as a literal of an element type writes it; ok is false where it
// cannot.
func literalOf(number, elem string) (text string, ok bool) {
	x, err := parse.Attr(number)
	float := strings.HasPrefix(elem, "f") || elem == "bf16"
	switch {
	case err != nil:
		return "", false
	case float && x.Kind == ast.AInt && !strings.Contains(number, "x"):
		return number + ".0", true
	}
	return number, x.Kind == ast.AInt || float
}
