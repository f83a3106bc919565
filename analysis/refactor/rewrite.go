package refactor

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// pieces are the stretches of text with nothing but ops of set in them, each
// with the comments above and behind it.
func (g *group) pieces(ops []*ir.Op) []piece {
	var out []piece
	text := g.s.src.Text()
	for i := 0; i < len(ops); {
		first, k := index(ops[i]), i+1
		for k < len(ops) && g.block.Ops[first+k-i] == ops[k] {
			k++
		}
		out = append(out, piece{ops[i:k], source.WithComments(text, source.Span{
			Start: origin.Tree(ops[i]).Off, End: origin.Tree(ops[k-1]).Span().End,
		})})
		i = k
	}
	return out
}

type piece struct {
	ops  []*ir.Op
	span source.Span
}

// text is p's text after the edits. Kernels are opened where flat is set.
func (g *group) text(p piece, edits []diag.Edit, flat bool) string {
	s, text := g.s, g.s.src.Text()
	var out strings.Builder
	at := p.span.Start
	for _, o := range p.ops {
		span := origin.Tree(o).Span()
		out.WriteString(text[at:span.Start])
		if flat && o.Name == op.Kernel {
			out.WriteString(s.opened(o, 0, edits))
			if rest, _, _ := strings.Cut(text[span.End:p.span.End], "\n"); strings.TrimSpace(rest) != "" {
				out.WriteString("\n")
			}
		} else {
			out.WriteString(cut(text, span, edits))
		}
		at = span.End
	}
	out.WriteString(text[at:p.span.End])
	return out.String()
}

// rewrite puts the op that made returns in the place of the group: made is
// given the text of the members. What others call the values is in outside.
func (g *group) rewrite(inner, outside renaming, flat bool, made func(body string) string) []diag.Edit {
	text := g.s.src.Text()
	pieces := g.pieces(g.ops)
	anchor := &pieces[len(pieces)-1]
	if g.atFirst || len(pieces) == 1 {
		anchor = &pieces[0]
	}
	if first := anchor.ops[0]; flat && first.Name == op.Kernel {
		anchor.span.Start = origin.Tree(first).Off // what is said of a kernel is said of the one that replaces it
	}
	moved := g.pieces(g.behind)
	var raw []string
	edits := inner.edits(g.ops)
	for _, p := range pieces {
		raw = append(raw, g.text(p, edits, flat))
	}
	after := made(strings.Join(raw, "\n"))
	elsewhere := outside.uses(g.member, g.block)
	for _, p := range moved {
		after += "\n" + cut(text, p.span, elsewhere)
	}
	off := anchor.span.Start
	after = g.s.write(after, g.block, off)
	if strings.TrimSpace(restOfLine(text, anchor.span.End)) != "" {
		after += g.s.eol() + indentAt(text, off)
	}
	out := replace(text, anchor.span, after)
	gone := []source.Span{anchor.span}
	for i := range pieces {
		if &pieces[i] != anchor {
			out = append(out, removal(text, pieces[i].span))
			gone = append(gone, pieces[i].span)
		}
	}
	for _, p := range moved {
		out = append(out, removal(text, p.span))
		gone = append(gone, p.span)
	}
	for _, e := range elsewhere {
		if !within(e.Span, gone) {
			out = append(out, e)
		}
	}
	return out
}

func within(span source.Span, spans []source.Span) bool {
	for _, s := range spans {
		if s.Start <= span.Start && span.End <= s.End {
			return true
		}
	}
	return false
}

// uses are the edits that respell the values of r where ops use them that are
// not in the members of b.
func (r renaming) uses(member map[*ir.Op]bool, b *ir.Block) []diag.Edit {
	var out []diag.Edit
	for v, to := range r {
		for _, u := range v.Uses {
			t := origin.Tree(u.Op)
			if t != nil && u.Index < len(t.Operands) && !member[enclosing(u.Op, b)] {
				out = append(out, diag.Edit{Span: t.Abs(t.Operands[u.Index].Span), Text: to})
			}
		}
	}
	return tidy(out)
}
