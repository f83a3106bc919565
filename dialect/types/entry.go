package types

import (
	"strings"

	"dmir/syntax/lex"
)

// In is where the entry that is wrong stands in text, which begins with the literal; the whole literal where none is.
func (e *Error) In(text string) (start, end int) {
	open := strings.IndexByte(text, '<')
	if len(e.Path) == 0 || open < 0 {
		return 0, len(text)
	}
	c := lex.New(text, open+1, len(text))
	t := c.Next()
	for _, n := range e.Path {
		if t.Kind != lex.LBrack {
			return 0, len(text)
		}
		t = c.Next()
		for depth := 0; n > 0; t = c.Next() {
			switch t.Kind {
			case lex.LBrack, lex.LParen:
				depth++
			case lex.RBrack, lex.RParen:
				depth--
			case lex.Comma:
				if depth == 0 {
					n--
				}
			case lex.EOF:
				return 0, len(text)
			}
		}
	}
	start, end = t.Start, t.End
	if t.Kind != lex.LBrack {
		for next := c.Next(); next.Kind != lex.EOF && next.Start == end && next.Kind != lex.Comma && next.Kind != lex.RBrack; next = c.Next() {
			end = next.End // a number whose text the lexer cuts
		}
		return start, end
	}
	for depth := 1; depth > 0; {
		t = c.Next()
		switch t.Kind {
		case lex.LBrack:
			depth++
		case lex.RBrack:
			depth--
		case lex.EOF:
			return 0, len(text)
		}
	}
	return start, t.End
}
