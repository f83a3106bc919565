// Package escape writes text that comes from a program, a path or a compiled
// file for the place where it will stand. Each kind of place has one function;
// escaped text cannot end its context and has no meaning beyond its characters.
package escape

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden replaces a character that is not shown.
const hidden = '·'

// Terminal is s for a line on a terminal or in a log: characters that would end the
// line, move the cursor, change the terminal or the direction of text are replaced by
// one column.
func Terminal(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError || Control(r):
			return hidden
		}
		return r
	}, s)
}

// Control reports whether r is a control character for a terminal or for the layout
// of text. The joiners that scripts need are not.
func Control(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return r != joiner && r != nonJoiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Comment is s within a comment of C++, CUDA, C or MLIR, from // to the end of
// the line as well as between /* and */: nothing in it ends the comment or takes
// the next line along, with trigraphs or without.
func Comment(s string) string {
	var b strings.Builder
	var before rune
	for _, r := range Terminal(s) {
		if r == '\\' {
			r = '/'
		}
		if before == '*' && r == '/' || before == '/' && r == '*' || before == '?' && r == '?' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// String is s as a string literal of C++, CUDA and C, quotes included. The text between the quotes has the same meaning in Go.
func String(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '?' && i > 0 && s[i-1] == '?', r == utf8.RuneError && n == 1, Control(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c) // three digits: one more belongs to the text
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// Line is the path s as the literal after #line. Compilers pass it to assemblers,
// NVRTC without escaping, so it has no quotes and no line ends; it is for display.
func Line(s string) string { return String(strings.ReplaceAll(Terminal(s), `"`, "'")) }

// Identifier is s as an identifier of C++ and C: letters, digits and single
// underscores. It may be a keyword or a macro; callers add a prefix.
func Identifier(s string) string {
	var b strings.Builder
	before := byte(0)
	add := func(c byte) {
		if c != '_' || before != '_' { // two in a row are the implementation's
			b.WriteByte(c)
		}
		before = c
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			add(byte(r))
		case r >= '0' && r <= '9':
			if b.Len() == 0 {
				add('v')
			}
			add(byte(r))
		default:
			add('_')
		}
	}
	if b.Len() == 0 {
		return "v"
	}
	return b.String()
}

// FileName is s as the name of a file, without what comes behind its last dot: in
// the folder where it is put, on every system, and not too long.
func FileName(s string) string {
	const most = 150 // bytes, of the 255 that systems allow
	var b strings.Builder
	for _, r := range s {
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		if r == utf8.RuneError || Control(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ValueName is s, the path of a value in a structure such as params['w'][0], as the name of a value of MLIR
// and of a file, params.w.0: letters, digits, "_" and single dots, not too long. It is "" where s has none of these.
func ValueName(s string) string {
	const most = 100
	var b strings.Builder
	gap := false
	for _, r := range s {
		c := byte('_')
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			c = byte(r)
		case r < 0x80 && r != '_':
			gap = b.Len() > 0
			continue
		}
		if b.Len() >= most {
			break
		}
		if gap {
			b.WriteByte('.')
			gap = false
		}
		b.WriteByte(c)
	}
	name := b.String()
	if name != "" && name[0] >= '0' && name[0] <= '9' && strings.Trim(name, "0123456789") != "" {
		return "v" + name // names of digits are numbers
	}
	return name
}
