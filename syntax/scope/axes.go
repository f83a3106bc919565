package scope

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

const (
	meshOp   = "dm.mesh"
	meshAttr = "dm.mesh" // of a function
)

// meshAxes defines the axes of the mesh n that o defines: the keys of its dictionary or, in
// generic form, the strings of the list axes.
func (b *builder) meshAxes(o *ast.Op, n *Name) {
	if o.Form == ast.Generic {
		for _, dict := range []ast.Rel{o.Props, o.Attrs} {
			if at := b.listEntry(o, dict, "axes"); !at.Empty() {
				b.axisTexts(o, at, n, true)
			}
		}
		return
	}
	text := o.Text(b.x.src, o.Attrs)
	key := true // what comes next is a key
	for _, t := range lex.Tokens(text, source.Span{End: len(text)}) {
		switch {
		case t.Kind == lex.Comma || t.Kind == lex.LBrace:
			key = true
		case key && (t.Kind == lex.Ident || t.Kind == lex.String):
			b.axis(o, n, text, t, o.Attrs.Start, true)
			key = false
		}
	}
}

// axis notes that the token t of text, which stands in o from start on, names an axis of
// the mesh n.
func (b *builder) axis(o *ast.Op, n *Name, text string, t lex.Token, start int32, def bool) {
	name, skip := text[t.Start:t.End], int32(0)
	if t.Kind == lex.String {
		name, skip = strings.Trim(name, `"`), 1
	}
	name, _, _ = strings.Cut(name, ":")
	if name == "" {
		return
	}
	a := n.axes[name]
	if a == nil {
		a = b.newName(Axis, strings.Clone(name), nil)
		a.mesh = n
		if n.axes == nil {
			n.axes = map[string]*Name{}
		}
		n.axes[a.Text] = a
	}
	from := start + int32(t.Start) + skip
	b.occur(a, place{o, ast.Rel{Start: from, End: from + int32(len(name))}}, def)
}

// split notes the axes of a sharding, split = @pod[{data}, {}], partial = {model}, whose
// mesh n is symbol number i of o.
func (b *builder) split(o *ast.Op, i int, n *Name) {
	from, end := o.Symbols[i].Span.End, o.Len
	before := strings.TrimRight(o.Text(b.x.src, ast.Rel{Start: max(0, from-int32(len(o.Symbols[i].Name))-16), End: o.Symbols[i].Span.Start}), " \t\r\n")
	before, isValue := strings.CutSuffix(before, "=")
	if !isValue || !strings.HasSuffix(strings.TrimRight(before, " \t\r\n"), "split") {
		return
	}
	if i+1 < len(o.Symbols) {
		end = o.Symbols[i+1].Span.Start
	}
	for _, r := range o.Regions {
		if r.Open >= from {
			end = min(end, r.Open)
		}
	}
	text := o.Text(b.x.src, ast.Rel{Start: from, End: end})
	depth := 0
	c := lex.New(text, 0, len(text))
	for t := c.Next(); t.Kind != lex.EOF && t.Kind != lex.RAngle; t = c.Next() {
		switch t.Kind {
		case lex.LBrace:
			depth++
		case lex.RBrace:
			depth--
		case lex.Ident:
			if depth == 1 {
				b.axis(o, n, text, t, from, false)
			}
		}
	}
}

// axesRef notes the list of axes of a collective, which are those of the mesh of its
// function.
func (b *builder) axesRef(o *ast.Op, r *region) {
	if !strings.HasPrefix(o.Name, "dm.") || o.Name == meshOp {
		return
	}
	for _, c := range o.Clauses {
		if c.Name == "axes" {
			b.refs = append(b.refs, symbolRef{in: r, op: o, axes: c.Value})
			return
		}
	}
	if o.Form != ast.Generic {
		return
	}
	for _, dict := range []ast.Rel{o.Props, o.Attrs} {
		if at := b.listEntry(o, dict, "axes"); !at.Empty() {
			b.refs = append(b.refs, symbolRef{in: r, op: o, axes: at})
			return
		}
	}
}

// listEntry is where the value of key, a list, stands in a dictionary of o; empty where there
// is none.
func (b *builder) listEntry(o *ast.Op, dict ast.Rel, key string) ast.Rel {
	text := o.Text(b.x.src, dict)
	i := entry(text, key)
	if i < 0 || i >= len(text) || text[i] != '[' {
		return ast.Rel{}
	}
	end := strings.IndexByte(text[i:], ']')
	if end < 0 {
		return ast.Rel{}
	}
	return ast.Rel{Start: dict.Start + int32(i), End: dict.Start + int32(i+end) + 1}
}

// axisStrings notes the axes in a list of strings or words as uses; n is their mesh, nil where
// it is unknown.
func (b *builder) axisStrings(o *ast.Op, at ast.Rel, n *Name) {
	if n != nil {
		b.axisTexts(o, at, n, false)
	}
}

func (b *builder) axisTexts(o *ast.Op, at ast.Rel, n *Name, def bool) {
	text := o.Text(b.x.src, at)
	for _, t := range lex.Tokens(text, source.Span{End: len(text)}) {
		if t.Kind == lex.String || t.Kind == lex.Ident {
			b.axis(o, n, text, t, at.Start, def)
		}
	}
}

// meshOf is the symbol of the mesh whose devices run the function o, "" where there is none.
func (b *builder) meshOf(o *ast.Op) string {
	if o.Func == nil && o.Name != "func.func" {
		return ""
	}
	for _, dict := range []ast.Rel{o.Props, o.Attrs} {
		text := o.Text(b.x.src, dict)
		if i := entry(text, meshAttr); i >= 0 {
			c := lex.New(text, i, len(text))
			if t := c.Next(); t.Kind == lex.Symbol {
				return symbolText(text[t.Start:t.End])
			}
		}
	}
	return ""
}

// meshNamed is the mesh of the function whose body r is part of, nil where it has none.
func (b *builder) meshNamed(r *region) *Name {
	for up := r; up != nil; up = up.parent {
		if up.mesh == "" {
			continue
		}
		if n := r.lookup(Symbol, up.mesh); n != nil {
			return n
		}
		return b.missing(r, Symbol, up.mesh)
	}
	return nil
}
