package format

import (
	"strings"

	"dmir/syntax/lex"
)

// token is a token of the text, with what stands between the token before and it.
type token struct {
	lex.Token
	newlines int  // line ends
	blank    bool // any white space
}

// scanner reads tokens of package lex, comments among them. The name and the body
// of a dialect's type or attribute are one token.
type scanner struct {
	lex.Cursor

	// Once the search for the end of a body has failed, the angle brackets that
	// were matched on the way answer for all searches starting before failedTo,
	// so that no text is searched twice.
	failedTo int
	matched  map[int]int
	pairs    [][2]int
	stack    []opener
}

type opener struct {
	at   int
	char byte
}

func newScanner(text string, pos int) scanner {
	return scanner{Cursor: lex.Cursor{Text: text, Pos: pos, End: len(text), Mode: lex.Comments | lex.Sections}}
}

// next is the next token, with the white space before it skipped.
func (s *scanner) next() token {
	from := s.Pos
	t := token{Token: s.Next()}
	t.blank = t.Start > from
	for i := from; i < t.Start; i++ {
		// A carriage return on its own ends a line too: it ends comments.
		if c := s.Text[i]; c == '\n' || c == '\r' && !strings.HasPrefix(s.Text[i+1:], "\n") {
			t.newlines++
		}
	}
	switch t.Kind {
	case lex.Comment, lex.BadString: // without the blanks at their ends
		t.End = t.Start + len(strings.TrimRight(s.Text[t.Start:t.End], " \t\r\n"))
		s.Pos = t.End
	case lex.Hash, lex.Bang:
		if strings.HasPrefix(s.Text[t.End:], "<") {
			if end, ok := s.body(t.End); ok {
				t.End, s.Pos = end, end
			}
		}
	}
	return t
}

// body is the end of the balanced <…> that opens at i. As in MLIR, only strings
// and arrows are more than single characters in it, and there are no comments;
// but where one would hide a bracket or a quote from the parser, this is no body.
func (s *scanner) body(i int) (int, bool) {
	if i < s.failedTo {
		end, ok := s.matched[i]
		return end, ok
	}
	s.pairs, s.stack = s.pairs[:0], s.stack[:0]
	for j := i; j < len(s.Text); {
		c := s.Text[j]
		switch c {
		case '"':
			str := lex.Cursor{Text: s.Text, Pos: j, End: len(s.Text)}
			t := str.Next()
			if t.Kind != lex.String {
				s.fail(j)
				return 0, false
			}
			j = t.End
			continue
		case '-':
			if strings.HasPrefix(s.Text[j+1:], ">") {
				j++
			}
		case '/':
			if strings.HasPrefix(s.Text[j:], "//") {
				end := lex.LineEnd(s.Text, j, len(s.Text))
				if strings.ContainsAny(s.Text[j:end], "<>()[]{}\"") {
					s.fail(j)
					return 0, false
				}
				j = end
				continue
			}
		case '<', '(', '[', '{':
			s.stack = append(s.stack, opener{j, c})
		case '>', ')', ']', '}':
			top := s.stack[len(s.stack)-1]
			if closerOf(top.char) != c {
				s.fail(j)
				return 0, false
			}
			s.stack = s.stack[:len(s.stack)-1]
			if len(s.stack) == 0 {
				return j + 1, true
			}
			if c == '>' {
				s.pairs = append(s.pairs, [2]int{top.at, j + 1})
			}
		}
		j++
	}
	s.fail(len(s.Text))
	return 0, false
}

func (s *scanner) fail(at int) {
	s.failedTo = at
	s.matched = make(map[int]int, len(s.pairs))
	for _, p := range s.pairs {
		s.matched[p[0]] = p[1]
	}
}

func closerOf(c byte) byte {
	switch c {
	case '(':
		return ')'
	case '[':
		return ']'
	case '{':
		return '}'
	case '<':
		return '>'
	}
	return 0
}

// closes reports whether a token closes a bracket; '#' is that of "{-#".
func closes(char byte, text string) bool {
	if char == '#' {
		return text == "#-}"
	}
	return len(text) == 1 && text[0] == closerOf(char)
}
