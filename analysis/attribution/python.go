package attribution

import (
	"regexp"
	"strings"
)

// Scope is a function or a class of a Python file.
type Scope struct {
	Name      string // with those around it: "Block.forward"
	Class     bool
	Line, End int // of "def" or "class", and the last one, from 1
	indent    int
}

var definition = regexp.MustCompile(`^(?:async\s+)?(def|class)\s+(\w+)`)

// Scopes are the functions and classes of f in the order of the text, by their indentation.
func (f *File) Scopes() []Scope {
	f.outlined.Do(func() { f.scope = outline(f.Lines) })
	return f.scope
}

// Around is the innermost function that holds line n, nil where there is none.
func (f *File) Around(n int) *Scope {
	var in *Scope
	scopes := f.Scopes()
	for i := range scopes {
		if x := &scopes[i]; x.Line <= n && n <= x.End && !x.Class {
			in = x
		}
	}
	return in
}

func outline(lines []string) []Scope {
	out := []Scope{}
	var open []int // in out
	quote := ""    // of the string of several lines that we are in
	depth := 0     // of brackets
	last := 0      // the last line with something in it
	for i, line := range lines {
		inside := quote != "" || depth > 0
		text := strings.TrimLeft(line, " \t")
		quote, depth = scan(line, quote, depth)
		if text == "" || strings.HasPrefix(text, "#") && !inside {
			continue
		}
		if !inside {
			indent := len(line) - len(text)
			for len(open) > 0 && out[open[len(open)-1]].indent >= indent {
				out[open[len(open)-1]].End = last
				open = open[:len(open)-1]
			}
			if m := definition.FindStringSubmatch(text); m != nil {
				name := m[2]
				if len(open) > 0 {
					name = out[open[len(open)-1]].Name + "." + name
				}
				open = append(open, len(out))
				out = append(out, Scope{Name: name, Class: m[1] == "class", Line: i + 1, indent: indent})
			}
		}
		last = i + 1
	}
	for _, k := range open {
		out[k].End = last
	}
	return out
}

// scan follows strings and brackets through a line: the quotes of a string that goes on behind it, and how many brackets are open.
func scan(line, quote string, depth int) (string, int) {
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case quote != "":
			switch {
			case rest[0] == '\\':
				i++
			case strings.HasPrefix(rest, quote):
				i += len(quote) - 1
				quote = ""
			}
		case rest[0] == '#':
			return quote, depth
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
			quote = rest[:3]
			i += 2
		case rest[0] == '"' || rest[0] == '\'':
			quote = rest[:1]
		case strings.IndexByte("([{", rest[0]) >= 0:
			depth++
		case strings.IndexByte(")]}", rest[0]) >= 0:
			depth = max(0, depth-1)
		}
	}
	if len(quote) == 1 { // it ends with its line
		quote = ""
	}
	return quote, depth
}
