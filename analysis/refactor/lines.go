package refactor

import (
	"strings"
	"unicode/utf8"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// The details of the lines action.
const (
	toSplit = "split"
	toJoin  = "join"
)

// wide is how many characters a line may have before it is offered to be split.
const wide = 100

// hang is by how much more than the first line of an op package format indents its
// others.
const hang = "    "

// offerLines offers to split the selected ops, those in their regions included, that
// are wider than most windows, and to join one that takes several lines. Editors fold
// lines and nothing smaller: this is how long types become what can be folded.
func offerLines(s *selection) []Action {
	if s.cursor && !s.onHead(s.ops[0]) {
		return nil
	}
	var out []Action
	seen, found := 0, false
	ir.Walk(s.ops, func(o *ir.Op) bool {
		seen++
		found = found || len(s.split(o)) > 0
		return !found && seen < maxListed
	})
	if found {
		out = append(out, Action{ID: "lines:" + toSplit, Kind: Rewrite, Title: "Split long lines at their types"})
	}
	if o := s.one(); o != nil && len(s.join(o)) > 0 {
		out = append(out, Action{ID: "lines:" + toJoin, Kind: Rewrite, Title: "Join into one line"})
	}
	return out
}

func applyLines(s *selection, to string) (*Change, error) {
	var edits []diag.Edit
	switch to {
	case toSplit:
		ir.Walk(s.ops, func(o *ir.Op) bool {
			edits = append(edits, s.split(o)...)
			return true
		})
	case toJoin:
		if o := s.one(); o != nil {
			edits = s.join(o)
		}
	}
	if len(edits) == 0 {
		return nil, refuse("there is nothing to change")
	}
	return &Change{Edits: edits}, nil
}

// head is what o writes before its regions; "" where that may have blanks that
// count, as ops of other dialects may.
func (s *selection) head(o *ir.Op) (t *ast.Op, head string) {
	if t = origin.Tree(o); t == nil || t.Form != ast.Pretty && t.Form != ast.Generic {
		return t, ""
	}
	span := t.Span()
	if len(t.Regions) > 0 {
		span.End = t.Off + int(t.Regions[0].Open)
	}
	return t, s.src.Slice(span)
}

// split are the edits by which the head of o, if it is one long line, becomes one that
// folds: an argument of a function on each line, the types of another op on the second.
func (s *selection) split(o *ir.Op) []diag.Edit {
	t, head := s.head(o)
	if head == "" || strings.Contains(head, "\n") {
		return nil
	}
	at := s.src.Pos(t.Off)
	line := s.src.Line(at.Line)
	if utf8.RuneCountInString(line[:at.Col])+utf8.RuneCountInString(head) <= wide {
		return nil
	}
	var starts []int // of the new lines
	switch f := t.Func; {
	case f != nil:
		for _, a := range f.Args {
			if a.Span.Empty() { // of a declaration
				a.Span = a.Type
			}
			starts = append(starts, int(a.Span.Start))
		}
		if len(f.Results) > 0 {
			starts = append(starts, strings.LastIndex(head[:f.Results[0].Type.Start], "->"))
		}
		if len(starts) < 2 {
			return nil // the line of the body's brace does not fold
		}
	case len(t.Regions) > 0 || t.Sig.Empty():
		return nil
	case strings.HasPrefix(head[t.Sig.Start:], "->"):
		starts = []int{int(t.Sig.Start)}
	default:
		starts = []int{strings.LastIndexByte(head[:t.Sig.Start], ':')}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, blanks))]
	var edits []diag.Edit
	for _, start := range starts {
		if start <= 0 {
			return nil
		}
		before := len(strings.TrimRight(head[:start], blanks))
		edits = append(edits, diag.Edit{Span: source.Span{Start: t.Off + before, End: t.Off + start}, Text: s.eol() + indent + hang})
	}
	return edits
}

// join are the edits by which the head of o becomes one line; none where a comment or
// a line break inside of a type or of a constant is in the way.
func (s *selection) join(o *ir.Op) []diag.Edit {
	t, head := s.head(o)
	if !strings.Contains(head, "\n") || comments(head, source.Span{End: len(head)}) != "" {
		return nil
	}
	var edits []diag.Edit
	depth, quoted := 0, false
	for i := 0; i < len(head); i++ {
		switch c := head[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			depth++
		case c == '>' && head[i-1] != '-': // no arrow
			depth--
		case strings.IndexByte(blanks, c) >= 0:
			end := len(head) - len(strings.TrimLeft(head[i:], blanks))
			if strings.Contains(head[i:end], "\n") {
				if depth > 0 {
					return nil
				}
				between := " "
				if strings.IndexByte("([{", head[i-1]) >= 0 || end < len(head) && strings.IndexByte(")]},", head[end]) >= 0 {
					between = ""
				}
				edits = append(edits, diag.Edit{Span: source.Span{Start: t.Off + i, End: t.Off + end}, Text: between})
			}
			i = end - 1
		}
	}
	return edits
}
