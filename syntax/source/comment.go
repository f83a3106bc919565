package source

import "strings"

// WithComments is span, which one statement or several have, with the comments
// that belong to them: those on lines of their own right above, without a blank
// line between, and the one behind on the last line.
func WithComments(text string, span Span) Span {
	return Span{Start: Above(text, span.Start), End: Behind(text, span.End)}
}

// Behind is where the comment ends that stands behind end on its line, end
// itself where there is none.
func Behind(text string, end int) int {
	at := end
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	if !strings.HasPrefix(text[at:], "//") {
		return end
	}
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + len(strings.TrimRight(text[at:at+n], " \t\r"))
	}
	return at + len(strings.TrimRight(text[at:], " \t\r"))
}

// Above is where the comment begins that stands on lines of its own right above
// off, off itself where there is none. A line that parts two modules is none.
func Above(text string, off int) int {
	line := strings.LastIndexByte(text[:off], '\n') + 1
	if strings.Trim(text[line:off], " \t") != "" {
		return off
	}
	at := off
	for line > 0 {
		start := strings.LastIndexByte(text[:line-1], '\n') + 1
		words := strings.TrimLeft(text[start:line], " \t")
		if !strings.HasPrefix(words, "//") || IsSplit(text[start:line]) {
			break
		}
		at, line = line-len(words), start
	}
	return at
}

// IsSplit reports whether a comment that begins its line is MLIR's split marker, which
// parts two modules: "// -----" with nothing but dashes and white space behind it.
func IsSplit(comment string) bool {
	rest, ok := strings.CutPrefix(comment, "// -----")
	return ok && strings.Trim(rest, "- \t\r\n") == ""
}

// LineEnd is what ends the lines of a text, as its first one shows.
func LineEnd(text string) string {
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
