package refactor

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// The details of the form action: what the ops become.
const (
	toGeneric = "generic"
	toPretty  = "pretty"
)

// offerForm offers the other form of the selected ops, those in their regions
// included.
func offerForm(s *selection) []Action {
	first, last := s.ops[0], s.ops[len(s.ops)-1]
	if s.cursor && !s.onHead(first) || !s.clean(source.Span{Start: first.Span.Start, End: last.Span.End}) {
		return nil
	}
	var out []Action
	what := ""
	if o := s.one(); o != nil && o.Name == op.Func {
		what = "@" + o.Str("sym_name") + " "
	}
	for _, f := range []struct{ to, title string }{{toPretty, "in its own form"}, {toGeneric, "in generic form"}} {
		seen, found := 0, false
		ir.Walk(s.ops, func(o *ir.Op) bool {
			seen++
			found = found || changes(o, f.to)
			return !found && seen < maxListed
		})
		if found {
			out = append(out, Action{ID: "form:" + f.to, Kind: Rewrite, Title: "Write " + what + f.title})
		}
	}
	return out
}

// changes reports whether o has the other form. What stands in a form of another
// dialect cannot be derived from its text.
func changes(o *ir.Op, to string) bool {
	t := origin.Tree(o)
	if t == nil || o.Bad {
		return false
	}
	if to == toGeneric {
		return t.Form == ast.Pretty
	}
	return t.Form == ast.Generic && (op.Of(o) != nil || o.Name == op.Func || o.Name == op.Call || o.Name == op.Return)
}

func applyForm(s *selection, to string) (*Change, error) {
	if to != toGeneric && to != toPretty {
		return nil, refuse("there is no form %q", to)
	}
	if err := s.flawed(s.ops); err != nil {
		return nil, err
	}
	var edits []diag.Edit
	var err error
	ir.Walk(s.ops, func(o *ir.Op) bool {
		if err != nil || !changes(o, to) {
			return err == nil
		}
		var more []diag.Edit
		more, err = s.reform(o, to == toGeneric)
		edits = append(edits, more...)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if len(edits) == 0 {
		return nil, refuse("there is nothing to change")
	}
	text := s.src.Text()
	span := source.Span{Start: origin.Tree(s.ops[0]).Off, End: origin.Tree(s.ops[len(s.ops)-1]).Span().End}
	return &Change{Edits: replace(text, span, s.write(cut(text, span, edits), s.block, span.Start))}, nil
}

// reform writes o, but not the ops in its regions, in the other form: what
// stands around the regions, and the labels that only one of the forms has.
func (s *selection) reform(o *ir.Op, generic bool) ([]diag.Edit, error) {
	line, err := s.line(shallow(o), generic)
	if err != nil {
		return nil, err
	}
	file := parse.File(source.New("", line))
	if len(file.Items) != 1 || len(file.Diags) > 0 {
		return nil, refuse("%s has no other form", describe(o))
	}
	t, n, text := origin.Tree(o), file.Items[0], s.src.Text()
	if len(t.Regions) != len(n.Regions) {
		if len(t.Regions) > 0 {
			return nil, refuse("%s has no other form", describe(o))
		}
		return []diag.Edit{{Span: t.Span(), Text: comments(text, t.Span()) + line}}, nil // a declaration
	}
	var edits []diag.Edit
	at, by := t.Off, 0
	for i, r := range t.Regions {
		if r.Close < 0 || n.Regions[i].Close < 0 {
			return nil, refuse("a region of %s is not closed", describe(o))
		}
		open, to := t.Off+int(r.Open)+1, int(n.Regions[i].Open)+1
		head := diag.Edit{Span: source.Span{Start: at, End: open}, Text: line[by:to]}
		if i == 0 {
			head.Text = comments(text, head.Span) + head.Text
		} else {
			head.Text += " " + comments(text, head.Span)
		}
		if len(r.Blocks) > 0 && len(n.Regions[i].Blocks) > 0 {
			was, is := label(text, t, r), label(line, n, n.Regions[i])
			switch {
			case was.Len() == 0 && len(n.Regions[i].Blocks[0].Args) > 0:
				head.Text += "\n" + line[is.Start:is.End]
			case was.Len() > 0 && is.Len() == 0:
				kept := comments(text, was)
				edits = append(edits, diag.Edit{Span: was, Text: kept})
			}
		}
		edits = append(edits, head)
		at, by = t.Off+int(r.Close), int(n.Regions[i].Close)
	}
	tail := diag.Edit{Span: source.Span{Start: at, End: t.Span().End}, Text: line[by:]}
	if kept := comments(text, tail.Span); kept != "" {
		if len(t.Regions) > 0 {
			tail.Text += " " + strings.TrimSuffix(kept, "\n")
		} else {
			tail.Text = kept + tail.Text
		}
	}
	return append(edits, tail), nil
}

// shallow is o with nothing in its blocks but their arguments.
func shallow(o *ir.Op) *ir.Op {
	c := *o
	c.Regions = make([]*ir.Region, len(o.Regions))
	for i, r := range o.Regions {
		c.Regions[i] = &ir.Region{Op: &c, Blocks: make([]*ir.Block, len(r.Blocks))}
		for j, b := range r.Blocks {
			c.Regions[i].Blocks[j] = &ir.Block{Label: b.Label, Region: c.Regions[i], Args: b.Args}
		}
	}
	return &c
}

// label is where the label of the first block of r is written, its colon
// included; an empty span where it has none.
func label(text string, t *ast.Op, r *ast.Region) source.Span {
	b := r.Blocks[0]
	if b.Label == "" {
		return source.Span{}
	}
	span := t.Abs(b.Span)
	stop := t.Off + int(r.Close)
	if len(b.Ops) > 0 {
		stop = b.Ops[0].Off
	}
	depth := 0
	for i := span.End; i < stop; i++ {
		switch text[i] {
		case '(', '<', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case '>':
			if text[i-1] != '-' { // not an arrow
				depth--
			}
		case '/':
			if strings.HasPrefix(text[i:], "//") {
				for i < stop && text[i] != '\n' {
					i++
				}
			}
		case ':':
			if depth == 0 {
				span.End = i + 1
				return span
			}
		}
	}
	span.End = stop
	return span
}
