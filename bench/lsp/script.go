package main

import "strings"

// document is the text as the editor has it, in lines without their ends.
type document struct {
	lines   []string
	version int
}

func newDocument(text string) *document {
	return &document{lines: strings.Split(text, "\n"), version: 1}
}

func (d *document) text() string { return strings.Join(d.lines, "\n") }

// An edit replaces the text between two places; columns are in bytes, which
// are UTF-16 units too, because the texts are ASCII.
type edit struct {
	kind                 string
	line, col, end, ecol int
	text                 string
}

// apply changes the text and gives the parameters of didChange.
func (d *document) apply(e edit) map[string]any {
	changed := strings.Split(d.lines[e.line][:e.col]+e.text+d.lines[e.end][e.ecol:], "\n")
	if len(changed) == e.end-e.line+1 {
		copy(d.lines[e.line:], changed)
	} else {
		d.lines = append(d.lines[:e.line:e.line], append(changed, d.lines[e.end+1:]...)...)
	}
	d.version++
	return map[string]any{
		"textDocument": map[string]any{"uri": uri, "version": d.version},
		"contentChanges": []any{map[string]any{
			"range": span(e.line, e.col, e.end, e.ecol),
			"text":  e.text,
		}},
	}
}

func span(line, col, end, ecol int) map[string]any {
	return map[string]any{"start": place(line, col), "end": place(end, ecol)}
}

func place(line, col int) map[string]any { return map[string]any{"line": line, "character": col} }

// script plays what people do to a text, at places spread over it. Every
// session of edits leaves the text as it was, but for the op that is being
// typed, which grows from round to round and is deleted when it is complete.
type script struct {
	doc   *document
	place uint64
	round int
	typed int // characters of the op that is being typed
}

// newOp is typed character by character.
const newOp = `%fresh = "dm.neg"(%y0) : (tensor<8x512x1536xf16>) -> tensor<8x512x1536xf16>`

// opLine is the next place: a line with an op. Places follow the golden ratio,
// which spreads any number of them evenly.
func (s *script) opLine() int {
	s.place += 0x9E3779B97F4A7C15
	n := len(s.doc.lines)
	at := int(s.place >> 32 * uint64(n) >> 32)
	for !strings.HasPrefix(s.doc.lines[at], "  %value_") {
		at = (at + 1) % n
	}
	return at
}

// A session is a few edits that belong together: a person makes them one after
// the other and then looks at the result.
type session func(do func(edit) error) error

// next are the sessions of one round, about forty edits.
func (s *script) next() []session {
	s.round++
	all := []session{
		s.replace("type", func(line string) (int, string) { return strings.LastIndex(line, "tensor<") + len("tensor<"), "9" }),
		s.replace("attribute", func(line string) (int, string) { return strings.LastIndex(line, ":17)") + 2, "8" }),
		s.rename(),
		s.replace("operand", func(line string) (int, string) { return strings.Index(line, ", %y") + len(", %y"), "" }),
		s.replace("bracket", func(line string) (int, string) {
			// In turn the bracket behind the operands or the first type, and the one before it.
			if s.round%2 == 0 {
				return strings.IndexAny(line[strings.Index(line, "tensor<"):], ">") + strings.Index(line, "tensor<"), ""
			}
			return strings.IndexAny(line, "(<"), ""
		}),
		s.newline(), s.comment(), s.line(), s.block(), s.typing(),
	}
	return all
}

// replace changes one character of a line and changes it back.
func (s *script) replace(kind string, where func(line string) (col int, with string)) session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col, with := where(s.doc.lines[at])
		old := s.doc.lines[at][col : col+1]
		if err := do(edit{kind, at, col, at, col + 1, with}); err != nil {
			return err
		}
		return do(edit{kind, at, col, at, col + len(with), old})
	}
}

// rename types two characters behind the name of a value where it is defined,
// so that its use is undefined, and takes them away.
func (s *script) rename() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col := strings.Index(s.doc.lines[at], " =")
		for i, c := range []string{"_", "b"} {
			if err := do(edit{"rename", at, col + i, at, col + i, c}); err != nil {
				return err
			}
		}
		for i := range 2 {
			if err := do(edit{"rename", at, col + 1 - i, at, col + 2 - i, ""}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *script) newline() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col := len(s.doc.lines[at])
		if err := do(edit{"newline", at, col, at, col, "\n"}); err != nil {
			return err
		}
		return do(edit{"newline", at, col, at + 1, 0, ""})
	}
}

func (s *script) comment() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col := len(s.doc.lines[at])
		const note = " // why"
		for i, c := range note {
			if err := do(edit{"comment", at, col + i, at, col + i, string(c)}); err != nil {
				return err
			}
		}
		return do(edit{"comment", at, col, at, col + len(note), ""})
	}
}

// line deletes a line, whose value is then undefined, and puts it back.
func (s *script) line() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		old := s.doc.lines[at] + "\n"
		if err := do(edit{"line", at, 0, at + 1, 0, ""}); err != nil {
			return err
		}
		return do(edit{"line", at, 0, at, 0, old})
	}
}

// block cuts twenty lines and pastes them back.
func (s *script) block() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		end := at
		for end < at+20 && strings.HasPrefix(s.doc.lines[end], "  %value_") {
			end++
		}
		old := strings.Join(s.doc.lines[at:end], "\n") + "\n"
		if err := do(edit{"block", at, 0, end, 0, ""}); err != nil {
			return err
		}
		return do(edit{"block", at, 0, at, 0, old})
	}
}

// typing goes on with the op that is being typed, a dozen characters at a time.
func (s *script) typing() session {
	return func(do func(edit) error) error {
		at := -1
		for i, line := range s.doc.lines {
			if rest, ok := strings.CutPrefix(line, "  %"); ok && strings.HasPrefix(newOp, "%"+rest) {
				at = i
				break
			}
		}
		if at < 0 {
			at = s.opLine()
			col := len(s.doc.lines[at])
			if err := do(edit{"newline", at, col, at, col, "\n"}); err != nil {
				return err
			}
			at++
			if err := do(edit{"newline", at, 0, at, 0, "  %"}); err != nil {
				return err
			}
			s.typed = 1
		}
		for range 12 {
			if s.typed == len(newOp) {
				return do(edit{"line", at, 0, at + 1, 0, ""})
			}
			c := newOp[s.typed]
			if err := do(edit{"typed op", at, 2 + s.typed, at, 2 + s.typed, string(c)}); err != nil {
				return err
			}
			s.typed++
		}
		return nil
	}
}

// farReaching are edits that change what a whole function means: a type of one
// of its arguments, its name, its braces.
func (s *script) farReaching() []session {
	head := func(kind, find, old, with string) session {
		return func(do func(edit) error) error {
			at := s.opLine()
			for !strings.HasPrefix(s.doc.lines[at], "func.func") {
				at--
			}
			col := strings.Index(s.doc.lines[at], find) + len(find)
			if err := do(edit{kind, at, col, at, col + len(old), with}); err != nil {
				return err
			}
			return do(edit{kind, at, col, at, col + len(with), old})
		}
	}
	return []session{
		head("signature", "%y0: tensor<", "8", "9"),
		head("argument", "%y1", "", "x"),
		head("function", "@layer", "", "s"),
		head("open brace", "xf16> ", "{", ""),
		func(do func(edit) error) error {
			at := s.opLine()
			for s.doc.lines[at] != "}" {
				at++
			}
			if err := do(edit{"close brace", at, 0, at, 1, ""}); err != nil {
				return err
			}
			return do(edit{"close brace", at, 0, at, 0, "}"})
		},
	}
}
