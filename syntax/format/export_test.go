package format

import (
	"strings"

	"dmir/syntax/lex"
)

// Tokens is the token sequence that formatting must not change.
func Tokens(text string) []string { return tokensOf(text) }

// Respace is text with other blanks between the tokens of a line and at the
// beginning of lines, but for split marks.
func Respace(text string, blanks func() string) string {
	s := newScanner(text, 0)
	var b strings.Builder
	for {
		t := s.next()
		word := text[t.Start:t.End]
		b.WriteString(strings.Repeat("\n", t.newlines))
		if t.newlines == 0 && t.blank || t.newlines > 0 && !strings.HasPrefix(word, splitMark) {
			b.WriteString(blanks())
		}
		b.WriteString(word)
		if t.Kind == lex.EOF {
			return b.String()
		}
	}
}
