package format

import (
	"strings"

	"dmir/syntax/parse"
)

// kind tells the tokens apart as far as layout needs it.
type kind uint8

const (
	tEOF     kind = iota
	tComment      // // … without the line end
	tWord         // identifiers, keywords, numbers, and the pieces of a shape
	tLess         // a "<" that compares
	tValue        // %x, %x#1
	tLabel        // ^bb
	tAt           // @f, @"f"
	tSymbol       // #a, !a, and #d.a<…> with its body
	tString       // "…"
	tPunct        // anything else
	tRaw          // a stretch kept byte for byte
)

// token is text[start:end].
type token struct {
	kind       kind
	start, end int
	newlines   int  // line ends between the previous token and this one
	blank      bool // any white space there
}

// scanner cuts MLIR text into the tokens of the parser, but that comments are
// tokens too, a dialect's body is one with its name, and a resource section is
// not one but those inside of it. It accepts any bytes.
type scanner struct {
	text string
	pos  int

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

// next is the next token, with the white space before it skipped.
func (s *scanner) next() token {
	t := token{}
	from := s.pos
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		// A carriage return on its own ends a line too: it ends comments.
		if c := s.text[s.pos]; c == '\n' || c == '\r' && !strings.HasPrefix(s.text[s.pos+1:], "\n") {
			t.newlines++
		}
		s.pos++
	}
	t.blank = s.pos > from
	t.start = s.pos
	t.kind, s.pos = s.token(s.pos)
	t.end = s.pos
	return t
}

// token is the kind and the end of the token that starts at i.
func (s *scanner) token(i int) (kind, int) {
	if i >= len(s.text) {
		return tEOF, i
	}
	switch rest := s.text[i:]; {
	case strings.HasPrefix(rest, "//"):
		end := i + commentLen(rest)
		return tComment, len(strings.TrimRight(s.text[:end], " \t"))
	case strings.HasPrefix(rest, "{-#"):
		return tPunct, i + len("{-#")
	}
	end, foreign := parse.TokenAt(s.text, i)
	switch c := s.text[i]; {
	case isWord(c):
		return tWord, end
	case c == '<' && foreign && end == i+1:
		return tLess, end
	case c == '%':
		return tValue, end
	case c == '^':
		return tLabel, end
	case c == '@':
		return tAt, s.trimmed(end)
	case c == '"':
		return tString, s.trimmed(end)
	case c == '!', c == '#' && s.text[i:end] != "#-}":
		if end > i+1 && strings.HasPrefix(s.text[end:], "<") {
			if e, ok := s.body(end); ok {
				return tSymbol, e
			}
		}
		return tSymbol, end
	}
	return tPunct, end
}

// trimmed is the end of a token without the white space that a string has at its
// end where its line ends before it does.
func (s *scanner) trimmed(end int) int {
	return len(strings.TrimRight(s.text[:end], " \t\r\n"))
}

// commentLen is the length of the comment that rest begins with.
func commentLen(rest string) int {
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		return i
	}
	return len(rest)
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
	for j := i; j < len(s.text); {
		c := s.text[j]
		switch c {
		case '"':
			end, open := parse.TokenAt(s.text, j)
			if open {
				s.fail(j)
				return 0, false
			}
			j = end
			continue
		case '-':
			if strings.HasPrefix(s.text[j+1:], ">") {
				j++
			}
		case '/':
			if rest := s.text[j:]; strings.HasPrefix(rest, "//") {
				n := commentLen(rest)
				if strings.ContainsAny(rest[:n], "<>()[]{}\"") {
					s.fail(j)
					return 0, false
				}
				j += n
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
	s.fail(len(s.text))
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

func skip(text string, i int, in func(byte) bool) int {
	for i < len(text) && in(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
