package loc

import (
	"strconv"
	"strings"

	"dmir/syntax/parse"
)

// Reader reads the locations of one text, each alias once.
type Reader struct {
	env     Env
	aliases map[string]Loc
	texts   map[string]Loc
	reading map[string]bool
}

// Env are the aliases of a text.
type Env interface {
	Alias(name string) string  // the definition of "#name", "" where there is none
	Expand(text string) string // the text without aliases
}

// NewReader reads the locations of a text with these aliases.
func NewReader(env Env) *Reader {
	return &Reader{env: env, aliases: map[string]Loc{}, texts: map[string]Loc{}, reading: map[string]bool{}}
}

// Read is the location with the text "loc(…)", nil for one that is unknown or refers to itself.
func (r *Reader) Read(text string) Loc {
	if l, known := r.texts[text]; known {
		return l
	}
	l := r.location(text, 0)
	r.texts[text] = l
	return l
}

// deepest bounds how far locations are taken apart; those of programs are stacks of calls.
const deepest = 1000

func (r *Reader) location(text string, depth int) Loc {
	text = strings.TrimSpace(text)
	inside := func(s string) Loc { return r.location(s, depth+1) }
	switch {
	case text == "" || text == "unknown" || depth > deepest:
		return nil
	case strings.HasPrefix(text, "#"):
		return r.named(text, depth)
	case within(text, "loc("):
		return inside(text[len("loc(") : len(text)-1])
	case within(text, "callsite("):
		callee, caller := cut(text[len("callsite("):len(text)-1], " at ")
		return Called(inside(callee), inside(caller))
	case strings.HasPrefix(text, "fused") && strings.HasSuffix(text, "]"):
		return r.fused(text, inside)
	case strings.HasPrefix(text, `"`):
		return r.quoted(text, inside)
	}
	return r.opaque(text)
}

func (r *Reader) opaque(text string) Loc { return &Node{Kind: Opaque, Text: r.env.Expand(text)} }

// fused is "fused[a, b]", which may have metadata: fused<…>[a, b].
func (r *Reader) fused(text string, inside func(string) Loc) Loc {
	head, list := cut(text, "[")
	meta := strings.TrimSpace(strings.TrimPrefix(head, "fused"))
	join := Fuse
	if meta == "<"+with+">" {
		join, meta = Include, ""
	}
	var l Loc
	for rest := strings.TrimSuffix(list, "]"); rest != ""; {
		var part string
		part, rest = cut(rest, ",")
		l = join(l, inside(part))
	}
	if meta == "" {
		return l
	}
	return &Node{Kind: Fused, Text: r.env.Expand(meta), A: l}
}

// with is the metadata of a fused location whose first part alone has what the op costs.
const with = `"with"`

func within(text, open string) bool {
	return strings.HasPrefix(text, open) && strings.HasSuffix(text, ")")
}

func (r *Reader) named(name string, depth int) Loc {
	if l, known := r.aliases[name]; known {
		return l
	}
	if r.reading[name] {
		return nil
	}
	r.reading[name] = true
	l := r.location(r.env.Alias(name), depth+1)
	delete(r.reading, name)
	r.aliases[name] = l
	return l
}

// quoted is a location that begins with a string: a name, or a place in a file, "f.py":1:2 or with its end: to 3:4, to :4.
func (r *Reader) quoted(text string, inside func(string) Loc) Loc {
	end := parse.StringEnd(text)
	if end == 0 {
		return r.opaque(text)
	}
	name, rest := parse.Unquote(text[:end]), strings.TrimSpace(text[end:])
	switch {
	case rest == "":
		return Named(name, nil)
	case within(rest, "("):
		return Named(name, inside(rest[1:len(rest)-1]))
	}
	begin, to, ranged := strings.Cut(rest, " to ")
	n := &Node{Kind: File, Text: name}
	ok := false
	if begin, ok = strings.CutPrefix(begin, ":"); ok {
		n.Line, n.Col, ok = pair(begin, 0)
	}
	if ok && ranged {
		n.EndLine, n.EndCol, ok = pair(strings.TrimSpace(to), n.Line)
	}
	if !ok {
		return r.opaque(text)
	}
	return n
}

// pair reads "line:column"; an empty line is the one given.
func pair(text string, line int32) (int32, int32, bool) {
	a, b, ok := strings.Cut(text, ":")
	if a = strings.TrimSpace(a); a != "" {
		n, err := strconv.ParseInt(a, 10, 32)
		line, ok = int32(n), ok && err == nil && n >= 0
	}
	col, err := strconv.ParseInt(strings.TrimSpace(b), 10, 32)
	return line, int32(col), ok && err == nil && col >= 0
}

// cut cuts text at the first separator outside of strings and brackets.
func cut(text, at string) (before, after string) {
	depth := 0
	for i := 0; i < len(text); i++ {
		if depth == 0 && strings.HasPrefix(text[i:], at) {
			return text[:i], text[i+len(at):]
		}
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '[', '<', '{':
			depth++
		case ')', ']', '>', '}':
			depth--
		}
	}
	return text, ""
}
