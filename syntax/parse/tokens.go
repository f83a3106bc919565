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

// TokenAt is the end of the token that begins at i, where neither white space nor
// a comment does. foreign tells that MLIR's own syntax has no such token: it is an
// operator of a dialect, among them a "<" that compares, or a string without end.
func TokenAt(text string, i int) (end int, foreign bool) {
	c := cursor{text: text, end: len(text)}
	k, end := c.scan(i)
	return end, k == kOp || k == kBadStr
}
