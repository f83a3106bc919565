package export

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dmir/internal/escape"
)

// comment is s for a comment to the end of a line, in any of the languages that are written.
func comment(s string) string { return escape.Terminal(s) }

// pyString is s as a string of Python, in ASCII.
func pyString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// pyTuple is a tuple of numbers of Python.
func pyTuple(list []int64) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = fmt.Sprint(n)
	}
	text := strings.Join(parts, ", ")
	if len(list) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

// pyBool is a truth value of Python.
func pyBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
