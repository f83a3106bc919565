package feature

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Hover is what is known about the thing under the cursor.
type Hover struct {
	Span source.Span
	Text string // Markdown
}

// HoverAt describes what stands at a byte offset: an op (its numbers and its
// documentation), a value (its type and size), a function (its totals), or the
// symbol of a dimension. It is nil if there is nothing. With pictures
// the place under the roofline is drawn as an image, else as a line of text.
func HoverAt(p *program.Program, names *scope.Index, off int, pictures bool) *Hover {
	if h := dimensionAt(p, off); h != nil {
		return h
	}
	if n, span, ok := names.At(off); ok {
		if text := nameText(p, n, span, off, pictures); text != "" {
			return &Hover{span, text}
		}
		return nil
	}
	if p.Imported {
		return importedHover(p, off)
	}
	if h := shardingAt(p, off); h != nil {
		return h
	}
	if h := formatAt(p, off); h != nil {
		return h
	}
	o := opAt(p, off)
	if o == nil || origin.Tree(o) == nil {
		return nil
	}
	if h := attributeAt(p, o, off); h != nil {
		return h
	}
	span := origin.Tree(o).Abs(origin.Tree(o).NameSpan)
	if !span.Contains(off) {
		return nil
	}
	text := opText(p, o, pictures)
	if text == "" {
		return nil
	}
	return &Hover{span, text}
}

func nameText(p *program.Program, n *scope.Name, span source.Span, off int, pictures bool) string {
	switch n.Kind {
	case scope.Value:
		if v := valueOf(p, n, off); v != nil {
			return valueText(p, n, v, pictures)
		}
	case scope.Symbol:
		if f := p.Func(strings.TrimPrefix(n.Text, "@")); f != nil {
			text := code(n.Text + signature(f.Func))
			if f.Func.Body != nil {
				text += "\n" + funcText(p, f)
			}
			if calls := callsText(p, f.Func); calls != "" {
				text += "\n" + calls
			}
			return text
		}
		return meshText(p, n, off)
	case scope.Axis:
		return axisText(p, n, span, off)
	case scope.AttrAlias, scope.TypeAlias:
		if len(n.Defs()) > 0 {
			return code(firstLine(p.Src.Text()[n.Defs()[0].Start:])) + aliasText(p, n, off)
		}
	}
	return ""
}

func signature(f *ir.Func) string {
	var in, out []string
	for _, a := range f.Args {
		in = append(in, a.Type.String())
	}
	for _, t := range f.Results {
		out = append(out, t.String())
	}
	s := " : (" + strings.Join(in, ", ") + ")"
	switch len(out) {
	case 0:
		return s + " -> ()"
	case 1:
		return s + " -> " + out[0]
	}
	return s + " -> (" + strings.Join(out, ", ") + ")"
}

func valueText(p *program.Program, n *scope.Name, v *ir.Value, pictures bool) string {
	name := n.Text
	if v.Name != "" {
		name = v.Name
	}
	var b strings.Builder
	b.WriteString(code(name + " : " + v.Type.String()))
	b.WriteByte('\n')
	if t := v.Tensor(); t != nil {
		bind := bindings(p, v)
		elements := count(t.Elements().Eval(bind)) + " elements"
		if t.Format != nil {
			elements = storedText(t, bind)
		}
		fmt.Fprintf(&b, "%s · %s · %s", escape(units.DimBytes(t.Bytes().Eval(bind))), escape(elements), plural(len(v.Uses), "use"))
	} else {
		b.WriteString(plural(len(v.Uses), "use"))
	}
	switch {
	case v.Op != nil:
		fmt.Fprintf(&b, " · from `%s`", v.Op.Name)
		if f, e := costAt(p, v.Op); e != nil && e.Known {
			b.WriteString("\n\n" + entryText(p, f, e, pictures))
		}
	case v.Block != nil && v.Block.Label == "":
		b.WriteString(" · argument")
	}
	if t := v.Tensor(); t != nil && t.Format != nil {
		b.WriteString("\n\n" + componentsText(t, bindings(p, v)) + pictureText(p, v))
	}
	return b.String()
}

func opText(p *program.Program, o *ir.Op, pictures bool) string {
	var parts []string
	f, e := costAt(p, o)
	switch {
	case e != nil && e.Known:
		parts = append(parts, entryText(p, f, e, pictures))
	case e == nil && f != nil && f.Func.Body != nil:
		parts = append(parts, funcText(p, f))
	}
	if o.Name == op.Mesh {
		if m, err := mesh.Of(o); err == nil {
			parts = append(parts, plural(m.Devices(), "device")+": "+escape(m.String())+"\n")
		}
	}
	if d := op.Of(o); d != nil {
		parts = append(parts, "**"+o.Name+"**\n\n"+d.Markdown())
	} else if m, ok := op.Means(o.Name); ok && strings.HasPrefix(o.Name, op.Prefix) {
		parts = append(parts, fmt.Sprintf("There is no op `%s`: it is %s in this dialect.\n\n**%s**\n\n%s", o.Name, m, m.Def.FullName(), m.Def.Markdown()))
	} else if origin.Tree(o).Form == ast.Custom || origin.Tree(o).Form == ast.Generic {
		parts = append(parts, fmt.Sprintf("`%s` is an unknown op. It is kept and formatted; its cost is not counted.", o.Name))
	}
	return strings.Join(parts, "\n")
}

// attributeAt describes the attribute of o whose name stands at off: one of the op's own, or one with the dialect's prefix of
// the op, an argument or a result.
func attributeAt(p *program.Program, o *ir.Op, off int) *Hover {
	t := origin.Tree(o)
	within := func(at ast.Rel) bool { return !at.Empty() && t.Abs(at).Contains(off) }
	found := within(t.Attrs) || within(t.Props) || slices.ContainsFunc(t.Clauses, func(c ast.Clause) bool { return within(c.NameSpan) })
	if t.Func != nil {
		holds := func(a ast.BlockArg) bool { return within(a.Attrs) }
		found = found || slices.ContainsFunc(t.Func.Args, holds) || slices.ContainsFunc(t.Func.Results, holds)
	}
	if !found {
		return nil
	}
	span := wordAt(p.Src, off)
	if d := op.LookupAttr(p.Src.Slice(span)); d != nil {
		return &Hover{span, d.Markdown()}
	}
	if a := op.Of(o).Attr(p.Src.Slice(span)); a != nil {
		return &Hover{span, "**" + a.Name + "**, an attribute of `" + o.Name + "`: " + escape(valueForm(a)) + "\n\n" + attrDoc(a)}
	}
	return nil
}

// wordAt is the name around off, with its dots; at most maxPart bytes of it on each side.
func wordAt(src *source.File, off int) source.Span {
	first := max(0, off-maxPart)
	text := src.Slice(source.Span{Start: first, End: min(off+maxPart, src.Len())})
	start, end := off-first, off-first
	for start > 0 && (wordByte(text[start-1]) || text[start-1] == '.') {
		start--
	}
	for end < len(text) && (wordByte(text[end]) || text[end] == '.') {
		end++
	}
	return source.Span{Start: first + start, End: first + end}
}

// entryText is an op's numbers, where it stands under the roofline, and why.
func entryText(p *program.Program, f *cost.Func, e *cost.Entry, pictures bool) string {
	parts := []string{table(entryRows(e, f, p.Target))}
	if t, ok := e.TimeTerms(p.Target); ok {
		parts = append(parts, roofline(t, e.Time(p.Target).Bound, pictures))
	}
	if text := why(p, f, e); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n")
}

func funcText(p *program.Program, f *cost.Func) string {
	if shown := Settled(f); shown != nil {
		f = shown
	}
	return table(funcRows(f, p.Target)) + "\n" + whyFunc(p, f)
}

func code(s string) string { return "```mlir\n" + s + "\n```\n" }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// bindings are the sizes of the symbols that v's type may depend on.
func bindings(p *program.Program, v *ir.Value) map[string]int64 {
	f := holds(p, v)
	if f == nil {
		return p.Bind
	}
	return op.Bindings(f.Func, p.Bind)
}

// holds is the function that v is a value of, nil where there is none.
func holds(p *program.Program, v *ir.Value) *cost.Func {
	o := v.Op
	if o == nil && v.Block != nil && v.Block.Region != nil {
		o = v.Block.Region.Op
	}
	return funcOf(p, o)
}

// funcOf is the function that holds o, or that o is.
func funcOf(p *program.Program, o *ir.Op) *cost.Func {
	for ; o != nil; o = parent(o) {
		if o.Name == op.Func {
			f, _ := costAt(p, o)
			return f
		}
	}
	return nil
}

// dimensionAt is the symbol of a size at off, in the "dims = […]" or the "nnz = …" of a type.
func dimensionAt(p *program.Program, off int) *Hover {
	text := p.Src.Text()
	if off > len(text) {
		return nil
	}
	start, end := off, off
	for start > 0 && wordByte(text[start-1]) {
		start--
	}
	for end < len(text) && wordByte(text[end]) {
		end++
	}
	line := text[p.Src.LineStart(p.Src.Pos(off).Line):start]
	what, ends := "names a dimension", "]>"
	open := strings.LastIndex(line, "dims = [")
	if stored := strings.LastIndex(line, "nnz = "); stored > open {
		open, what = stored, "is how many entries are stored"
		if !strings.HasPrefix(line[open:], "nnz = [") {
			ends = ",>"
		}
	}
	if start == end || open < 0 || strings.ContainsAny(line[open:], ends) {
		return nil
	}
	name := text[start:end]
	if name[0] >= '0' && name[0] <= '9' {
		return nil
	}
	f := funcOf(p, opAt(p, off))
	b := fmt.Sprintf("`%s` %s. It is not bound: costs that depend on it are formulas.", name, what)
	if size, bound := bindingsAt(p, off)[name]; bound {
		b = fmt.Sprintf("`%s` %s, bound to %d.", name, what, size)
	} else if f != nil {
		if sizes := givenTo(p, f.Func, name); sizes != "" {
			b = fmt.Sprintf("`%s` %s. Calls make it %s; costs of the function's own lines are formulas.", name, what, sizes)
		}
	}
	if f != nil {
		if slices.Contains(f.Unbound(), name) {
			b += "\n\n" + table([]row{{"FLOP of @" + f.Func.Name, units.DimFLOP(f.FLOP)}, {"moved", units.DimBytes(f.Moved())}, {"minimum", units.DimBytes(f.Minimum())}})
		}
	}
	return &Hover{source.Span{Start: start, End: end}, b}
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
