package parse

import "dmir/syntax/source"

// Tokens are the spans of the tokens that begin in a stretch of a text, without
// comments and blanks; what a token is shows in its first byte. No token but a
// resource section crosses a line end, so that a stretch may begin at any line.
func Tokens(text string, in source.Span) []source.Span {
	var out []source.Span
	end := min(in.End, len(text))
	for c := newCursor(text, in.Start, end); ; {
		t := c.next()
		if t.kind == kEOF {
			return out
		}
		out = append(out, source.Span{Start: t.start, End: t.end})
	}
}
