package format

import "strings"

// kind tells the tokens apart as far as layout needs it.
type kind uint8

const (
	tEOF     kind = iota
	tComment      // // … without the line end
	tWord         // identifiers, keywords, numbers, and the pieces of a shape
	tValue        // %x, %x#1
	tLabel        // ^bb
	tAt           // @f, @"f"
	tSymbol       // #a, !a, and #d.a<…> with its body
	tString       // "…"
	tPunct        // anything else: one byte, or one of the puncts
	tRaw          // a stretch kept byte for byte
)

// token is text[start:end].
type token struct {
	kind       kind
	start, end int
	newlines   int  // line ends between the previous token and this one
	blank      bool // any white space there
}

// scanner cuts MLIR text into tokens by the rules of MLIR's lexer. It accepts
// any bytes.
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

var puncts = [...]string{"->", "::", ">=", "<=", "==", "{-#", "#-}"}

// token is the kind and the end of the token that starts at i.
func (s *scanner) token(i int) (kind, int) {
	if i >= len(s.text) {
		return tEOF, i
	}
	c := s.text[i]
	switch {
	case isWord(c):
		return tWord, skip(s.text, i+1, isWord)
	case c == '"':
		return tString, stringEnd(s.text, i)
	case c == '/' && strings.HasPrefix(s.text[i:], "//"):
		end := i + 2
		for end < len(s.text) && s.text[end] != '\n' && s.text[end] != '\r' {
			end++
		}
		return tComment, len(strings.TrimRight(s.text[:end], " \t"))
	case c == '@' && strings.HasPrefix(s.text[i+1:], `"`):
		return tAt, stringEnd(s.text, i+1)
	}
	switch c {
	case '@':
		return tAt, skip(s.text, i+1, isWord)
	case '^':
		return tLabel, suffixEnd(s.text, i+1)
	case '%':
		end := suffixEnd(s.text, i+1)
		if end > i+1 && strings.HasPrefix(s.text[end:], "#") {
			if n := skip(s.text, end+1, isDigit); n > end+1 {
				end = n
			}
		}
		return tValue, end
	}
	for _, p := range puncts {
		if c == p[0] && strings.HasPrefix(s.text[i:], p) {
			return tPunct, i + len(p)
		}
	}
	if c != '#' && c != '!' {
		return tPunct, i + 1
	}
	end := suffixEnd(s.text, i+1)
	if end > i+1 && strings.HasPrefix(s.text[end:], "<") {
		if e, ok := s.body(end); ok {
			return tSymbol, e
		}
	}
	return tSymbol, end
}

// body is the end of the balanced <…> that opens at i. As in MLIR, only strings
// and arrows are more than single characters in it; there are no comments.
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
			j = stringEnd(s.text, j)
			continue
		case '-':
			if strings.HasPrefix(s.text[j+1:], ">") {
				j++
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

// stringEnd is the offset behind the string that opens at i; a string ends with
// its line at the latest.
func stringEnd(text string, i int) int {
	j := i + 1
	for j < len(text) && text[j] != '\n' {
		switch {
		case text[j] == '"':
			return j + 1
		case text[j] == '\\' && j+1 < len(text) && text[j+1] != '\n':
			j++
		}
		j++
	}
	return len(strings.TrimRight(text[:j], " \t\r"))
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

// suffixEnd is the end of a name behind its sigil: a number, or letters, digits
// and $._-.
func suffixEnd(text string, i int) int {
	if i < len(text) && isDigit(text[i]) {
		return skip(text, i, isDigit)
	}
	return skip(text, i, isSuffix)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_' || c == '$' || c == '.'
}

func isSuffix(c byte) bool { return isWord(c) || c == '-' }
