package escapetest

import (
	"regexp"
	"strings"
)

var joined = regexp.MustCompile(`(\\|\?\?/)[ \t\v\f\r]*\n`)

// Code is the part of text that a C++ compiler reads as code: without comments,
// literals and the files of #line. It is pessimistic: every character that some
// compiler ends a line at ends one, and trigraphs count.
func Code(text string) string {
	text = joined.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	var b strings.Builder
	r := []rune(text)
	end := func(c rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029\ufffd", c) }
	for i := 0; i < len(r); {
		switch {
		case r[i] == '/' && i+1 < len(r) && r[i+1] == '/':
			for i < len(r) && !end(r[i]) {
				i++
			}
		case r[i] == '/' && i+1 < len(r) && r[i+1] == '*':
			for i += 2; i < len(r) && !(r[i-1] == '*' && r[i] == '/'); {
				i++
			}
			i++
		case r[i] == '"' || r[i] == '\'' && (i == 0 || r[i-1] < '0' || r[i-1] > '9'):
			quote := r[i]
			for i++; i < len(r) && r[i] != quote && !end(r[i]); i++ {
				if r[i] == '\\' {
					i++
				}
			}
			i++
			b.WriteString(`""`)
		default:
			b.WriteRune(r[i])
			i++
		}
	}
	return b.String()
}
