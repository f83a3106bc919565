package config

import (
	"fmt"
	"slices"
	"strings"

	"dmir/syntax/source"
)

// A Completion is a text for a place in dmir.toml.
type Completion struct {
	Label, Doc string // Doc is Markdown
	Text       string // what replaces the span
	Value      bool   // it is a value, no key
}

// Complete returns what may be written at off, and the span it replaces. The text
// need not be valid TOML: only the line counts, and the table's header above it.
func Complete(src *source.File, off int, rules []Choice) ([]Completion, source.Span) {
	c := cursorAt(src, off)
	switch {
	case c.comment:
		return nil, c.word
	case c.header:
		return c.tables(), c.word
	case c.value:
		return c.values(rules), c.word
	}
	return c.keys(src, rules), c.word
}

// Hover returns the documentation of the key at off, "" where there is none.
func Hover(src *source.File, off int) (string, source.Span) {
	line := src.Line(src.Pos(off).Line)
	start := src.LineStart(src.Pos(off).Line)
	in := off - start
	from, to := in, in
	for from > 0 && wordByte(line[from-1]) {
		from--
	}
	for to < len(line) && wordByte(line[to]) {
		to++
	}
	c := cursorAt(src, start+to)
	if from == to || c.comment || c.value {
		return "", source.Span{}
	}
	path := append(slices.Clip(c.path), line[from:to])
	n, ok := root().at(path)
	if !ok {
		return "", source.Span{}
	}
	return n.text(strings.Join(path, ".")), source.Span{Start: start + from, End: start + to}
}

// A cursor is a place in a dmir.toml.
type cursor struct {
	path                   []string // of the table that the place is in; with a value, also its key
	word                   source.Span
	typed                  string // the text of word
	header, value, comment bool
	quoted                 bool // the word is in quotes that are open
}

func cursorAt(src *source.File, off int) cursor {
	off = min(max(off, 0), src.Len())
	n := src.Pos(off).Line
	start := src.LineStart(n)
	before := src.Line(n)[:min(off-start, len(src.Line(n)))]
	c := cursor{word: source.Span{Start: off, End: off}}
	size := 0
	for size < len(before) && wordByte(before[len(before)-1-size]) {
		size++
	}
	c.word.Start = off - size
	c.typed = before[len(before)-size:]
	rest := strings.TrimSpace(before[:len(before)-size])
	quotes := strings.Count(rest, `"`)
	c.quoted = quotes%2 == 1
	c.comment = strings.Contains(rest, "#") && !c.quoted

	for k := n - 1; k >= 0 && c.path == nil; k-- {
		if text := strings.TrimSpace(src.Line(k)); strings.HasPrefix(text, "[") {
			c.path = split(strings.Trim(text, "[] "))
		}
	}
	above, open := openArray(src, n)
	key, _, assigned := strings.Cut(rest, "=")
	switch {
	case assigned:
		c.value = true
		c.path = append(c.path, split(key)...)
	case open:
		c.value = true
		c.path = append(c.path, split(above)...)
	case strings.HasPrefix(rest, "["):
		c.header = true
		c.path = split(strings.TrimPrefix(rest, "["))
	default:
		c.path = append(c.path, split(rest)...)
	}
	return c
}

// openArray returns the key whose array the lines before line n leave open.
func openArray(src *source.File, n int) (key string, ok bool) {
	depth := 0
	for k := n - 1; k >= 0; k-- {
		text := strings.TrimSpace(src.Line(k))
		if strings.HasPrefix(text, "[") {
			break
		}
		depth += strings.Count(text, "[") - strings.Count(text, "]")
		if key, _, assigned := strings.Cut(text, "="); assigned {
			return key, depth > 0
		}
	}
	return "", false
}

// split returns the parts of a dotted key, the empty last one left out.
func split(key string) []string {
	var parts []string
	for part := range strings.SplitSeq(bare.Replace(strings.TrimSpace(key)), ".") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func wordByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// tables are the tables of the one whose header has been begun.
func (c cursor) tables() []Completion {
	n, ok := root().at(c.path)
	if !ok {
		return nil
	}
	var found []Completion
	for _, t := range n.children() {
		if !t.table() {
			continue
		}
		more := Completion{Label: t.name, Text: t.name, Doc: t.text(t.name)}
		if t.open() && t.entry().table() { // the name is one's own
			more.Text += "."
		}
		found = append(found, more)
	}
	return found
}

// keys are those of the table that it does not have yet.
func (c cursor) keys(src *source.File, rules []Choice) []Completion {
	n, ok := root().at(c.path)
	if !ok || !n.table() {
		return nil
	}
	set := placesOf(src)
	set.index()
	var found []Completion
	add := func(child node) {
		full := strings.Join(append(slices.Clip(c.path), child.name), ".")
		if line, ok := set.lines[full]; ok && line != src.Pos(c.word.Start).Line {
			return
		}
		text := child.name
		switch _, example := child.kind(); {
		case child.table():
			text += "."
		default:
			text += " = " + example
		}
		found = append(found, Completion{Label: child.name, Text: text, Doc: child.text(full)})
	}
	for _, child := range n.children() {
		add(child)
	}
	if n.open() {
		for _, name := range n.choices(rules) {
			child := n.entry()
			child.name = name.Name
			add(child)
		}
	}
	return found
}

// values are the names that the value at the cursor may have.
func (c cursor) values(rules []Choice) []Completion {
	n, ok := root().at(c.path)
	if !ok {
		return nil
	}
	var found []Completion
	if kinds, _ := n.kind(); kinds[0] == "boolean" {
		return []Completion{{Label: "true", Text: "true", Value: true}, {Label: "false", Text: "false", Value: true}}
	}
	for _, name := range n.choices(rules) {
		text := name.Name
		if !c.quoted {
			text = fmt.Sprintf("%q", text)
		}
		found = append(found, Completion{Label: name.Name, Doc: name.Doc, Text: text, Value: true})
	}
	return found
}
