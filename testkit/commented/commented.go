// Package commented writes comments to every statement of a program and finds
// those that a change of the program has moved away from their statement.
package commented

import (
	"fmt"
	"regexp"
	"strings"
)

var definition = regexp.MustCompile(`%[\w$.:-]+ = `)

var statement = regexp.MustCompile(`^\s*(%[\w$.-]+) = "?([\w.]+).*[^{]$`)

// Program is text, whose statements have a line each, with a comment above and
// one behind every statement that gives a value, has no region and has its line
// for itself. Lines end in \n.
func Program(text string) string {
	var out []string
	for i, l := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if m := statement.FindStringSubmatch(l); m != nil && !strings.Contains(l, "//") && len(definition.FindAllString(l, 2)) < 2 {
			indent := l[:strings.Index(l, "%")]
			what := fmt.Sprintf("%d of %s", i, m[1])
			out = append(out, indent+"// above "+what)
			l += " // behind " + what
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// Check compares the comments of a changed program with those before it: each
// is there once, and where its statement is still there, at that statement.
func Check(before, after string) error {
	was, is, lines := definitions(before), definitions(after), strings.Split(after, "\n")
	for _, l := range strings.Split(before, "\n") {
		for _, where := range []string{"above", "behind"} {
			_, what, found := strings.Cut(l, "// "+where+" ")
			if !found {
				continue
			}
			comment, at := "// "+where+" "+what, -1
			for i, l := range lines {
				if strings.HasSuffix(l, comment) {
					if at >= 0 {
						return fmt.Errorf("%q is there twice", comment)
					}
					at = i
				}
			}
			if at < 0 {
				return fmt.Errorf("%q is lost", comment)
			}
			if where == "above" {
				for at < len(lines)-1 && strings.HasPrefix(strings.TrimSpace(lines[at]), "//") {
					at++
				}
			}
			for where == "behind" && at > 0 && strings.HasPrefix(strings.TrimSpace(lines[at]), ": ") {
				at-- // the statement's types stand on a line of their own
			}
			_, name, _ := strings.Cut(what, " of ")
			if was[name] != "" && was[name] == is[name] && !strings.HasPrefix(strings.TrimSpace(lines[at]), name+" = ") {
				return fmt.Errorf("%q is at another statement: %s", comment, lines[at])
			}
		}
	}
	return nil
}

// definitions are the ops by the names of their results, "" for a name of several.
func definitions(text string) map[string]string {
	ops := map[string]string{}
	for _, l := range strings.Split(text, "\n") {
		code, _, _ := strings.Cut(l, " // ")
		if m := statement.FindStringSubmatch(code); m != nil {
			_, again := ops[m[1]]
			ops[m[1]] = m[2]
			if again {
				ops[m[1]] = ""
			}
		}
	}
	return ops
}
