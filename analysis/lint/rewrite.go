package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Fixes are edits of the text: what a person wrote, comments included, stays
// as it was wherever the fix has no reason to touch it.

// ref is how a value is spelled where it is used: "%x" or "%x#1".
func ref(name string, index int32) string {
	if index <= 0 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, index)
}

func useRef(u ast.Use) string { return ref(u.Name, u.Index) }

// spelling is how other ops refer to v.
func spelling(v *ir.Value) string {
	name, index, found := strings.Cut(v.Name, "#")
	if found && index == "0" {
		return name
	}
	return v.Name
}

// maxName is the length from which a title shortens a name.
const maxName = 16

// short is spelling(v) for a title, which menus show on one line: of a long
// name its beginning and its end.
func short(v *ir.Value) string {
	name := []rune(spelling(v))
	if len(name) <= maxName {
		return string(name)
	}
	return string(name[:maxName/2]) + "…" + string(name[len(name)-maxName/2+1:])
}

// replaceTitle is the title of a fix that uses v instead of gone.
func replaceTitle(gone, v *ir.Value) string { return "Replace " + short(gone) + " by " + short(v) }

// moveTitle is the title of a fix that moves o into the kernel of k.
func moveTitle(o, k *ir.Op) string {
	what := o.Name
	if len(o.Results) > 0 {
		what = short(o.Results[0])
	}
	return "Move " + what + " into the kernel of " + short(k.Results[0])
}

// splice is text with the replacements applied; they are relative to base and
// must not overlap.
func splice(text string, base int, edits []diag.Edit) string {
	slices.SortFunc(edits, func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at : e.Span.Start-base])
		out.WriteString(e.Text)
		at = e.Span.End - base
	}
	out.WriteString(text[at:])
	return out.String()
}

// renames lists the edits that spell values in o (its regions included) by
// uses and its definitions by defs.
func renames(o *ast.Op, uses, defs map[string]string) []diag.Edit {
	var edits []diag.Edit
	ast.Walk([]*ast.Op{o}, func(o *ast.Op) bool {
		for _, u := range o.Operands {
			if to, ok := uses[useRef(u)]; ok {
				edits = append(edits, diag.Edit{Span: o.Abs(u.Span), Text: to})
			} else if to, ok := defs[u.Name]; ok {
				edits = append(edits, diag.Edit{Span: o.Abs(u.Span), Text: ref(to, u.Index)})
			}
		}
		def := func(name string, span ast.Rel) {
			if to, ok := defs[name]; ok {
				edits = append(edits, diag.Edit{Span: o.Abs(span), Text: to})
			}
		}
		for _, r := range o.Results {
			def(r.Name, r.Span)
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, a := range b.Args {
					def(a.Name, a.Span)
				}
			}
		}
		return true
	})
	return edits
}

// definitions lists the names that ops define, those in their regions included.
func definitions(ops []*ast.Op) []string {
	var names []string
	ast.Walk(ops, func(o *ast.Op) bool {
		for _, r := range o.Results {
			names = append(names, r.Name)
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, a := range b.Args {
					names = append(names, a.Name)
				}
			}
		}
		return true
	})
	return names
}

// fresh is name, or name_0, name_1 … not in taken, to which it is added. A
// numbered name (%0) gives the next free number: MLIR has no %0_0.
func fresh(name string, taken map[string]bool) string {
	to := name
	number, err := strconv.Atoi(strings.TrimPrefix(name, "%"))
	for n := 0; taken[to]; n++ {
		if err == nil {
			to = fmt.Sprintf("%%%d", number+1+n)
		} else {
			to = fmt.Sprintf("%s_%d", name, n)
		}
	}
	taken[to] = true
	return to
}

// derived is a new name for a value that has to do with the one called name: name_what, or %what for a numbered one.
func derived(name, what string, taken map[string]bool) string {
	prefix, _, _ := strings.Cut(name, "#")
	if _, err := strconv.Atoi(strings.TrimPrefix(prefix, "%")); err == nil {
		return fresh("%"+what, taken)
	}
	return fresh(prefix+"_"+what, taken)
}

// reindent moves the lines of text so that the least indented of those after
// the first stands where its first line would: at indent. The first line
// carries no indentation of its own.
func reindent(text, was, indent string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if i > 0 && strings.TrimSpace(l) != "" {
			lines[i] = indent + strings.TrimPrefix(l, was)
		}
	}
	return strings.Join(lines, "\n")
}

// remove lists the edits that delete o from the text. Where o has its lines
// for itself they go; a comment behind it stays, on a line of its own, and so do
// those between its words and in its regions.
func (c *Context) remove(o *ir.Op) []diag.Edit {
	return c.take(origin.Tree(o).Span(), commentsIn(c.Module.Src, origin.Tree(o).Span()))
}

// take is remove for a stretch of the text in whose place comments stay.
func (c *Context) take(span source.Span, comments []string) []diag.Edit {
	src := c.Module.Src
	start := src.LineStart(src.Pos(span.Start).Line)
	end := span.End
	for end < src.Len() && (src.Text()[end] == ' ' || src.Text()[end] == '\t' || src.Text()[end] == '\r') {
		end++
	}
	kept, indent := "", src.Indent(span.Start)
	if strings.TrimSpace(src.Text()[start:span.Start]) != "" { // behind another op
		for _, comment := range comments {
			kept += "\n" + indent + comment
		}
		if kept != "" && end < src.Len() && src.Text()[end] != '\n' {
			kept += "\n" + indent
		}
		return []diag.Edit{{Span: span, Text: kept}}
	}
	for _, comment := range comments {
		kept += indent + comment + "\n"
	}
	switch {
	case end < src.Len() && src.Text()[end] == '\n':
		return []diag.Edit{{Span: source.Span{Start: start, End: end + 1}, Text: kept}}
	case end == src.Len():
		return []diag.Edit{{Span: source.Span{Start: start, End: end}, Text: kept}}
	case kept != "":
		return []diag.Edit{{Span: source.Span{Start: start, End: end}, Text: kept + indent}}
	}
	return []diag.Edit{{Span: source.Span{Start: span.Start, End: end}}}
}

// commentsIn lists the comments in span.
func commentsIn(src *source.File, span source.Span) (all []string) {
	text := src.Slice(span)
	c := lex.New(text, 0, len(text))
	c.Mode = lex.Comments
	for t := c.Next(); t.Kind != lex.EOF; t = c.Next() {
		if t.Kind == lex.Comment {
			all = append(all, strings.TrimSpace(text[t.Start:t.End]))
		}
	}
	return all
}

// useSpans lists the places in the text where v is an operand; ok is false
// where one of them cannot be edited.
func useSpans(v *ir.Value) (spans []source.Span, ok bool) {
	for _, u := range v.Uses {
		t := origin.Tree(u.Op)
		if t == nil || u.Index >= len(t.Operands) {
			return nil, false
		}
		spans = append(spans, t.Abs(t.Operands[u.Index].Span))
	}
	return spans, true
}

// replaceAll lists the edits that make every use of old a use of new.
func replaceAll(old, new *ir.Value) (edits []diag.Edit, ok bool) {
	spans, ok := useSpans(old)
	for _, s := range spans {
		edits = append(edits, diag.Edit{Span: s, Text: spelling(new)})
	}
	return edits, ok
}

// typeText is v's type as the text spells it, aliases kept.
func (c *Context) typeText(v *ir.Value) string {
	switch sig := c.spelledSignature(v.Op); {
	case sig == nil:
	case sig.Single && len(sig.Out) > 0:
		return sig.Out[0].Text
	case v.Index < len(sig.Out) && len(sig.Out) == len(v.Op.Results):
		return sig.Out[v.Index].Text
	}
	return v.Type.String()
}

// operandText is the type of operand i of o as o's own signature spells it.
func (c *Context) operandText(o *ir.Op, i int) string {
	switch sig := c.spelledSignature(o); {
	case sig == nil:
	case sig.Single && len(sig.Out) > 0:
		return sig.Out[0].Text
	case len(sig.In) == len(o.Operands):
		return sig.In[i].Text
	}
	return c.typeText(o.Operands[i])
}

// spelledSignature is the signature of o in the text; nil where there is none.
func (c *Context) spelledSignature(o *ir.Op) *parse.Sig {
	if o == nil || origin.Tree(o) == nil || origin.Tree(o).Sig.Empty() {
		return nil
	}
	sig, err := parse.Signature(origin.Tree(o).Text(c.Module.Src, origin.Tree(o).Sig))
	if err != nil {
		return nil
	}
	return sig
}

// signature is the text after ":" for o in its shortest form, with the types of
// operands that replace names replaced.
func (c *Context) signature(o *ir.Op, operand func(i int, v *ir.Value) string, result func(v *ir.Value) string) string {
	in := make([]string, len(o.Operands))
	for i, v := range o.Operands {
		in[i] = operand(i, v)
	}
	out := make([]string, len(o.Results))
	for i, v := range o.Results {
		out[i] = result(v)
	}
	to := strings.Join(out, ", ")
	if len(out) != 1 {
		to = "(" + to + ")"
	}
	return "(" + strings.Join(in, ", ") + ") -> " + to
}

// readInstead makes o read v wherever it reads old, in its operands and in its
// type.
func (c *Context) readInstead(o *ir.Op, old, v *ir.Value) []diag.Edit {
	var edits []diag.Edit
	for i, w := range o.Operands {
		if w == old {
			edits = append(edits, diag.Edit{Span: origin.Tree(o).Abs(origin.Tree(o).Operands[i].Span), Text: spelling(v)})
		}
	}
	sig := c.signature(o, func(i int, w *ir.Value) string {
		if w == old {
			return c.typeText(v)
		}
		return c.operandText(o, i)
	}, c.typeText)
	return append(edits, diag.Edit{Span: origin.Tree(o).Abs(origin.Tree(o).Sig), Text: sig})
}
