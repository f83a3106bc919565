package refactor

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// lineOf is the start of the line of off.
func lineOf(text string, off int) int { return strings.LastIndexByte(text[:off], '\n') + 1 }

// beginsLine reports whether only blanks stand before off on its line.
func beginsLine(text string, off int) bool {
	return strings.Trim(text[lineOf(text, off):off], " \t") == ""
}

// indentAt is the white space before the first word of the line of off.
func indentAt(text string, off int) string {
	start := lineOf(text, off)
	end := start
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return text[start:end]
}

// removal is the edit that takes a stretch of whole ops out of the text, with
// its lines where it has them for itself.
func removal(text string, span source.Span) diag.Edit {
	end := span.End
	for end < len(text) && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r') {
		end++
	}
	if !beginsLine(text, span.Start) {
		return diag.Edit{Span: span}
	}
	switch {
	case end < len(text) && text[end] == '\n':
		return diag.Edit{Span: source.Span{Start: lineOf(text, span.Start), End: end + 1}}
	case end == len(text):
		return diag.Edit{Span: source.Span{Start: lineOf(text, span.Start), End: end}}
	}
	return diag.Edit{Span: source.Span{Start: span.Start, End: end}}
}

// comments are those in a stretch of the text that is dropped, each a line.
func comments(text string, span source.Span) string {
	var out strings.Builder
	for i := span.Start; i < span.End; i++ {
		switch {
		case text[i] == '"':
			for i++; i < span.End && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(text[i:], "//"):
			end := i
			for end < len(text) && text[end] != '\n' {
				end++
			}
			out.WriteString(strings.TrimRight(text[i:end], " \t\r") + "\n")
			i = end
		}
	}
	return out.String()
}

// body is the text inside region n of o with the edits applied: all of it
// without the block's label and the terminator, whose comments stay.
func (s *selection) body(o *ir.Op, n int, edits []diag.Edit) string {
	text, t := s.src.Text(), origin.Tree(o)
	r := t.Regions[n]
	start, end := t.Off+int(r.Open)+1, t.Off+int(r.Close)
	out := ""
	if l := label(text, t, r); l.Len() > 0 {
		out = comments(text, source.Span{Start: start, End: l.End})
		start = l.End
	}
	last := origin.Tree(o.Body(n).Terminator()).Span()
	out += cut(text, source.Span{Start: start, End: last.Start}, edits) + "\n"
	return out + comments(text, source.Span{Start: last.Start, End: end})
}

// opened is the text of o without o: the inside of region n with the edits, and
// the comments that stood around it.
func (s *selection) opened(o *ir.Op, n int, edits []diag.Edit) string {
	text, span, r := s.src.Text(), origin.Tree(o).Span(), origin.Tree(o).Regions[n]
	return strings.Trim(comments(text, source.Span{Start: span.Start, End: origin.Tree(o).Off + int(r.Open)})+
		strings.Trim(s.body(o, n, edits), blanks)+"\n"+
		comments(text, source.Span{Start: origin.Tree(o).Off + int(r.Close), End: span.End}), blanks)
}

// cut is the text of span with those of the edits applied that lie in it.
func cut(text string, span source.Span, edits []diag.Edit) string {
	var out strings.Builder
	at := span.Start
	for _, e := range tidy(edits) {
		if e.Span.Start < at || e.Span.End > span.End {
			continue
		}
		out.WriteString(text[at:e.Span.Start])
		out.WriteString(e.Text)
		at = e.Span.End
	}
	out.WriteString(text[at:span.End])
	return out.String()
}

// depthOf is how many regions lie around the ops of b.
func depthOf(m *ir.Module, b *ir.Block) int {
	n := 0
	if m.Outer != nil {
		n++
	}
	for ; b != nil; b = b.Region.Op.Parent {
		n++
	}
	return n
}

// write is ops laid out to stand at off of the text, in b.
func (s *selection) write(ops string, b *ir.Block, off int) string {
	return strings.ReplaceAll(format.Ops(ops, depthOf(s.m, b), indentAt(s.src.Text(), off)), "\n", s.eol())
}

// eol is how the text ends its lines.
func (s *selection) eol() string {
	return source.LineEnd(s.src.Text())
}
