package loc

import (
	"fmt"
	"strings"

	"dmir/syntax/parse"
)

// Write is the text of n without "loc(…)" around it. inside is the text of a location in it.
func (n *Node) Write(inside func(Loc) string) string {
	switch n.Kind {
	case File:
		return n.place()
	case Name:
		if n.A == nil {
			return parse.Quote(n.Text)
		}
		return parse.Quote(n.Text) + "(" + inside(n.A) + ")"
	case Call:
		return "callsite(" + inside(n.A) + " at " + inside(n.B) + ")"
	case Fused, With:
		head, parts := "fused"+n.Text, []string{}
		if n.Kind == With {
			head += "<" + with + ">"
		}
		for _, l := range n.members() {
			parts = append(parts, inside(l))
		}
		return head + "[" + strings.Join(parts, ", ") + "]"
	}
	return n.Text
}

// members are the locations that n joins, of joins of the same kind in it those that they join.
func (n *Node) members() []Loc {
	var out []Loc
	for _, l := range []Loc{n.A, n.B} {
		switch {
		case l == nil:
		case l == n.A && l.Kind == n.Kind && l.Text == "":
			out = append(out, l.members()...)
		default:
			out = append(out, l)
		}
	}
	return out
}

func (n *Node) place() string {
	text := fmt.Sprintf("%s:%d:%d", parse.Quote(n.Text), n.Line, n.Col)
	switch {
	case n.EndCol == 0 && n.EndLine == 0:
	case n.EndLine == n.Line:
		text += fmt.Sprintf(" to :%d", n.EndCol)
	default:
		text += fmt.Sprintf(" to %d:%d", n.EndLine, n.EndCol)
	}
	return text
}
