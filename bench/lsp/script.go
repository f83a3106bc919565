package main

import "strings"

// document is the editor's text, as lines without line ends.
type document struct {
	lines   []string
	version int
}

func newDocument(text string) *document {
	return &document{lines: strings.Split(text, "\n"), version: 1}
}

func (d *document) text() string { return strings.Join(d.lines, "\n") }

// An edit replaces the text between two positions; columns are in bytes, which
// equal UTF-16 units, because the texts are ASCII.
type edit struct {
	kind                 string
	line, col, end, ecol int
	text                 string
	breaks               bool // the text has an error after it
}

func (d *document) apply(e edit) {
	changed := strings.Split(d.lines[e.line][:e.col]+e.text+d.lines[e.end][e.ecol:], "\n")
	if len(changed) == e.end-e.line+1 {
		copy(d.lines[e.line:], changed)
	} else {
		d.lines = append(d.lines[:e.line:e.line], append(changed, d.lines[e.end+1:]...)...)
	}
	d.version++
}

func span(line, col, end, ecol int) map[string]any {
	return map[string]any{"start": place(line, col), "end": place(end, ecol)}
}

func place(line, col int) map[string]any { return map[string]any{"line": line, "character": col} }

// script simulates typical edits of a text, at positions spread over it. Every
// session of edits restores the text.
type script struct {
	doc   *document
	place uint64
	round int
}

// newOp is typed character by character; it is valid at any position.
const newOp = `%fresh = "dm.neg"(%y0) : (tensor<8x512x1536xf16>) -> tensor<8x512x1536xf16>`

// opLine returns the next position, a line with an op. Positions follow the golden
// ratio, which spreads any number of them evenly.
func (s *script) opLine() int {
	s.place += 0x9E3779B97F4A7C15
	n := len(s.doc.lines)
	at := int(s.place >> 32 * uint64(n) >> 32)
	for !strings.HasPrefix(s.doc.lines[at], "  %value_") {
		at = (at + 1) % n
	}
	return at
}

// used reports whether a value of the lines from at to end is used after them:
// on the next line or, at the end of a chain, by the return.
func (s *script) used(at, end int) bool {
	last := end
	for !strings.HasPrefix(s.doc.lines[last], "  return") {
		last++
	}
	for _, line := range s.doc.lines[at:end] {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(s.doc.lines[end], name) || strings.Contains(s.doc.lines[last], name+" ") {
			return true
		}
	}
	return false
}

// A session is a group of edits that a user makes one after
// the other before reading the result.
type session func(do func(edit) error) error

// next returns the sessions of one round, about forty edits.
func (s *script) next() []session {
	s.round++
	all := []session{
		s.replace("type", func(line string) (int, string) { return strings.LastIndex(line, "tensor<") + len("tensor<"), "9" }),
		s.replace("attribute", func(line string) (int, string) { return strings.LastIndex(line, ":17)") + 2, "8" }),
		s.rename(),
		s.replace("operand", func(line string) (int, string) { return strings.Index(line, ", %y") + len(", %y"), "" }),
		s.replace("bracket", func(line string) (int, string) {
			// Alternate between the bracket after the operands or the first type and the one before it.
			if s.round%2 == 0 {
				return strings.IndexAny(line[strings.Index(line, "tensor<"):], ">") + strings.Index(line, "tensor<"), ""
			}
			return strings.IndexAny(line, "(<"), ""
		}),
		s.newline(), s.comment(), s.line(), s.block(), s.typing(),
	}
	return all
}

// replace changes one character of a line and restores it.
func (s *script) replace(kind string, where func(line string) (col int, with string)) session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col, with := where(s.doc.lines[at])
		old := s.doc.lines[at][col : col+1]
		if err := do(edit{kind, at, col, at, col + 1, with, kind != "attribute"}); err != nil {
			return err
		}
		return do(edit{kind, at, col, at, col + len(with), old, false})
	}
}

// rename types two characters after the name of a value at its definition,
// so that its use is undefined, and deletes them.
func (s *script) rename() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col := strings.Index(s.doc.lines[at], " =")
		used := s.used(at, at+1)
		for i, c := range []string{"_", "b"} {
			if err := do(edit{"rename", at, col + i, at, col + i, c, used}); err != nil {
				return err
			}
		}
		for i := range 2 {
			if err := do(edit{"rename", at, col + 1 - i, at, col + 2 - i, "", i == 0 && used}); err != nil {
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
		if err := do(edit{"newline", at, col, at, col, "\n", false}); err != nil {
			return err
		}
		return do(edit{"newline", at, col, at + 1, 0, "", false})
	}
}

func (s *script) comment() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		col := len(s.doc.lines[at])
		const note = " // why" // a single slash is an error
		commented := strings.Contains(s.doc.lines[at], "//")
		for i, c := range note {
			if err := do(edit{"comment", at, col + i, at, col + i, string(c), i == 1 && !commented}); err != nil {
				return err
			}
		}
		return do(edit{"comment", at, col, at, col + len(note), "", false})
	}
}

// line deletes a line, whose value is then undefined, and restores it.
func (s *script) line() session {
	return func(do func(edit) error) error {
		at := s.opLine()
		old := s.doc.lines[at] + "\n"
		if err := do(edit{"line", at, 0, at + 1, 0, "", s.used(at, at+1)}); err != nil {
			return err
		}
		return do(edit{"line", at, 0, at, 0, old, false})
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
		if err := do(edit{"block", at, 0, end, 0, "", s.used(at, end)}); err != nil {
			return err
		}
		return do(edit{"block", at, 0, at, 0, old, false})
	}
}

// typing pastes the beginning of an op on a new line, types a dozen
// characters one by one, pastes the rest, and deletes the line. The next round
// types the next dozen.
func (s *script) typing() session {
	return func(do func(edit) error) error {
		at := s.opLine() + 1
		from := 12 * (s.round - 1) % len(newOp)
		to := min(from+12, len(newOp))
		for _, e := range []edit{
			{"newline", at - 1, len(s.doc.lines[at-1]), at - 1, len(s.doc.lines[at-1]), "\n", false},
			{"paste", at, 0, at, 0, "  " + newOp[:from], from > 0},
		} {
			if err := do(e); err != nil {
				return err
			}
		}
		for i := from; i < to; i++ {
			if err := do(edit{"typed op", at, 2 + i, at, 2 + i, newOp[i : i+1], i+1 < len(newOp)}); err != nil {
				return err
			}
		}
		if to < len(newOp) {
			if err := do(edit{"paste", at, 2 + to, at, 2 + to, newOp[to:], false}); err != nil {
				return err
			}
		}
		return do(edit{"line", at, 0, at + 1, 0, "", false})
	}
}

// farReaching returns edits that change the meaning of a whole function: a type of one
// of its arguments, its name, its braces.
func (s *script) farReaching() []session {
	head := func(kind, find, old, with string) session {
		return func(do func(edit) error) error {
			at := s.opLine()
			for !strings.HasPrefix(s.doc.lines[at], "func.func") {
				at--
			}
			col := strings.Index(s.doc.lines[at], find) + len(find)
			if err := do(edit{kind, at, col, at, col + len(old), with, true}); err != nil {
				return err
			}
			return do(edit{kind, at, col, at, col + len(with), old, false})
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
			if err := do(edit{"close brace", at, 0, at, 1, "", true}); err != nil {
				return err
			}
			return do(edit{"close brace", at, 0, at, 0, "}", false})
		},
	}
}
