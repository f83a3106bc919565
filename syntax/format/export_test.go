package format

import "strings"

// Tokens is the token sequence that formatting must not change.
func Tokens(text string) []string { return tokensOf(text) }

// Respace is text with other blanks between the tokens of a line and at the
// beginning of lines, but for split marks.
func Respace(text string, blanks func() string) string {
	s := scanner{text: text}
	var b strings.Builder
	for {
		t := s.next()
		word := text[t.start:t.end]
		b.WriteString(strings.Repeat("\n", t.newlines))
		if t.newlines == 0 && t.blank || t.newlines > 0 && !strings.HasPrefix(word, splitMark) {
			b.WriteString(blanks())
		}
		b.WriteString(word)
		if t.kind == tEOF {
			return b.String()
		}
	}
}
