package units

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a formula into lines of at most width characters: at blanks, where it
// must behind a "*", and within a name only if it is longer than a line. A width below
// 1 is no limit.
func Wrap(s string, width int) []string {
	if width < 1 {
		return []string{s}
	}
	var lines []string
	line, used := "", 0
	add := func(gap, part string) {
		n := utf8.RuneCountInString(part)
		if used > 0 && used+len(gap)+n <= width {
			line, used = line+gap+part, used+len(gap)+n
			return
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for n > width {
			head := string([]rune(part)[:width])
			lines, part, n = append(lines, head), part[len(head):], n-width
		}
		line, used = part, n
	}
	for word := range strings.FieldsSeq(s) {
		if utf8.RuneCountInString(word) <= width {
			add(" ", word)
			continue
		}
		gap := " "
		for factor := range strings.SplitAfterSeq(word, "*") {
			add(gap, factor)
			gap = ""
		}
	}
	return append(lines, line)
}
