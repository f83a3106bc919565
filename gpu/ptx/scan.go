package ptx

import (
	"fmt"
	"strings"
)

// Error is what is wrong with a text, and where.
type Error struct {
	Pos
	Message string
}

// Error is one line: "12:3: a semicolon is missing".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Message) }

// token is a word, a number, a string or a symbol of one byte. The text of the end
// is empty.
type token struct {
	text  string
	kind  byte // 'w' word, 'n' number, 's' string, the byte of a symbol, 0 the end
	first bool // of its line
	pos   Pos
}

// scanner reads tokens and leaves out comments.
type scanner struct {
	text  string
	at    int
	line  int
	start int // of the line
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) fail(at int, format string, args ...any) *Error {
	return &Error{Pos{s.line, at - s.start + 1}, fmt.Sprintf(format, args...)}
}

// blank skips white space and comments, and reports whether a line has ended.
func (s *scanner) blank() (newLine bool, err *Error) {
	newLine = s.at == 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.at++
			s.line, s.start, newLine = s.line+1, s.at, true
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			s.at++
		case strings.HasPrefix(s.text[s.at:], "//"):
			if n := strings.IndexByte(s.text[s.at:], '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(s.text[s.at:], "/*"):
			n := strings.Index(s.text[s.at+2:], "*/")
			if n < 0 {
				return false, s.fail(s.at, "the comment has no end")
			}
			comment := s.text[s.at : s.at+2+n]
			if k := strings.Count(comment, "\n"); k > 0 {
				s.line, s.start, newLine = s.line+k, s.at+strings.LastIndexByte(comment, '\n')+1, true
			}
			s.at += n + 4
		default:
			return newLine, nil
		}
	}
	return true, nil
}

func (s *scanner) next() (token, *Error) {
	first, err := s.blank()
	if err != nil {
		return token{}, err
	}
	from := s.at
	t := token{first: first, pos: Pos{s.line, from - s.start + 1}}
	if from == len(s.text) {
		return t, nil
	}
	c := s.text[from]
	switch {
	case letter(c) || c == '.' && from+1 < len(s.text) && letter(s.text[from+1]) && s.text[from+1] != '%':
		t.kind = 'w'
		for s.at++; s.at < len(s.text); s.at++ {
			c := s.text[s.at]
			if letter(c) && c != '%' || digit(c) || c == '.' {
				continue
			}
			if c == ':' && s.at+2 < len(s.text) && s.text[s.at+1] == ':' && letter(s.text[s.at+2]) && s.text[s.at+2] != '%' {
				s.at++
				continue
			}
			break
		}
	case digit(c):
		t.kind = 'n'
		for s.at++; s.at < len(s.text) && (letter(s.text[s.at]) || digit(s.text[s.at]) || s.text[s.at] == '.'); s.at++ {
		}
	case c == '"':
		t.kind = 's'
		n := strings.IndexAny(s.text[from+1:], "\"\n")
		if n < 0 || s.text[from+1+n] == '\n' {
			return t, s.fail(from, "the string has no end")
		}
		s.at += n + 2
	case strings.IndexByte("{}[]()<>,;:@!|=+-", c) >= 0:
		t.kind = c
		s.at++
	default:
		return t, s.fail(from, "%q means nothing here", string([]rune(s.text[from:min(len(s.text), from+4)])[:1]))
	}
	t.text = s.text[from:s.at]
	return t, nil
}
