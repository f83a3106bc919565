package export

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dmir/base/escape"
)

// comment is s for a comment to the end of a line, in any of the languages that are written.
func comment(s string) string { return escape.Terminal(s) }

// commented is lines as comments behind "#".
func commented(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("# "+comment(l), " ") + "\n")
	}
	return b.String()
}

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

// ShellWord is s as a word of a POSIX shell: itself, or in single quotes.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,%@+", r)
	}
	if s != "" && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 || strings.HasPrefix(s, "--") && len(s) > 2 && ShellWord(s[2:]) == s[2:] {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// label is s as a name of a Kubernetes object and of a job: lower-case letters, digits and single hyphens.
func label(s string) string {
	const most = 40
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case b.Len() >= most:
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" || name[0] < 'a' {
		return strings.TrimSuffix("dmir-"+name, "-")
	}
	return name
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
