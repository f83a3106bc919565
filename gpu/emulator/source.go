package emulator

import (
	"regexp"
	"strconv"
	"strings"
)

// programName is the file name of the program's text while it is compiled.
const programName = "program.cu"

var lineDirective = regexp.MustCompile(`^[ \t]*#[ \t]*line[ \t]+(\d+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?`)

// withoutLines is source with every #line blank, so that the compiler and the
// emulation report lines of the source itself.
func withoutLines(source string) string {
	var b strings.Builder
	b.Grow(len(source))
	for line := range strings.Lines(source) {
		if lineDirective.MatchString(line) {
			line = "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// sourcePlace is the place that line n, 1-based, of source comes from, by the last
// #line before it; line is 0 if there is none.
func sourcePlace(source string, n int) (file string, line int) {
	i := 0
	for text := range strings.Lines(source) {
		i++
		if i >= n {
			break
		}
		if m := lineDirective.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits; one that is too large is no place
			if m[2] != "" {
				file = m[2]
				if s, err := strconv.Unquote(`"` + m[2] + `"`); err == nil {
					file = s
				}
			}
		}
	}
	return file, line
}
