// Package lex cuts MLIR text into tokens. It is the only lexer of MLIR here: the
// parser, the formatter and the editor's colours walk over its tokens with a
// Cursor. White space is between tokens, and so are comments unless a Cursor asks
// for them as tokens.
//
// A Cursor accepts any bytes and takes time in proportion to them. No token but a
// resource section reaches beyond its line.
package lex

import (
	"strings"

	"dmir/syntax/source"
)

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens. An opening bracket and its closing one follow each other.
const (
	EOF       Kind = iota
	Value          // %x, %x#1
	Label          // ^bb0
	Symbol         // @f, @"f"
	Hash           // #map, #dm.at
	Bang           // !t, !dm.token
	String         // "…"
	BadString      // a string, or a symbol's, whose closing quote is missing on its line
	Number         // 4, 0xFF, 1.0e-5, 4x8xf32 inside a shape
	Ident          // tensor, dm.add, loc
	Arrow          // ->
	Colon          // :
	DColon         // ::
	Comma          // ,
	Eq             // =
	LParen         // (
	RParen         // )
	LBrack         // [
	RBrack         // ]
	LBrace         // {
	RBrace         // }
	LAngle         // <
	RAngle         // >
	Op             // any other character, the operators >=, <=, ==, and a "<" that compares
	Comment        // // …, without the line end
	Split          // a "// -----" line
	Resource       // {-# … #-}
	Region         // { … } that holds ops; only the parser makes it
)

// Token is a piece of text with no white space or comments around it.
type Token struct {
	source.Span
	Kind  Kind
	First bool // nothing but blanks before it on its line
}

// Mode selects what a Cursor makes tokens of.
type Mode uint8

// The modes of a Cursor.
const (
	Comments Mode = 1 << iota // comments are tokens
	Splits                    // "// -----" lines are tokens, and no comments
	Sections                  // what is in a resource section is tokens, and no section is
)

// Cursor walks over the tokens of Text[:End]. A copy of it looks ahead.
type Cursor struct {
	Text string
	Pos  int // where the next token is looked for
	End  int
	Line bool // only blanks are between the start of the line and Pos
	Mode Mode
}

// New returns a Cursor over text[pos:end] that passes over a byte order mark.
func New(text string, pos, end int) Cursor {
	if pos == 0 && strings.HasPrefix(text, source.ByteOrderMark) {
		pos = min(len(source.ByteOrderMark), end)
	}
	return Cursor{Text: text, Pos: pos, End: end, Line: true}
}

// Peek returns the next token, which stays unread.
func (c *Cursor) Peek() Token {
	d := *c
	return d.Next()
}

// Next reads a token; at the end it returns EOF again and again.
func (c *Cursor) Next() Token {
	text, end, i := c.Text, c.End, c.Pos
	first := c.Line
	for i < end {
		b := text[i]
		if class[b]&Space != 0 {
			first = first || b == '\n' || b == '\r'
			i++
			continue
		}
		if b == '/' && i+1 < end && text[i+1] == '/' {
			stop := LineEnd(text, i, end)
			if c.Mode != 0 {
				if k := c.comment(i, stop); k != EOF {
					c.Pos, c.Line = stop, false
					return Token{source.Span{Start: i, End: stop}, k, first || k == Split}
				}
			}
			i = stop
			continue
		}
		break
	}
	t := Token{source.Span{Start: i, End: i}, EOF, first}
	if i >= end {
		c.Pos, c.Line = end, first
		return t
	}
	c.Line = false
	t.Kind, t.End = c.scan(i)
	c.Pos = t.End
	return t
}

// comment is the kind of the token that text[i:stop] is, EOF where it is none.
func (c *Cursor) comment(i, stop int) Kind {
	switch {
	case c.Mode&Splits != 0 && source.IsSplit(c.Text[i:stop]) && (i == 0 || c.Text[i-1] == '\n' || c.Text[i-1] == '\r'):
		return Split
	case c.Mode&Comments != 0:
		return Comment
	}
	return EOF
}

// scan reads the token that starts at i.
func (c *Cursor) scan(i int) (Kind, int) {
	text, end := c.Text, c.End
	b := text[i]
	if k := single[b]; k != EOF {
		return k, i + 1
	}
	if class[b]&letter != 0 {
		return Ident, Run(text, i+1, end, Word)
	}
	if class[b]&Digit != 0 {
		return Number, scanNumber(text, i, end)
	}
	next := byte(0)
	if i+1 < end {
		next = text[i+1]
	}
	switch b {
	case '%':
		j := suffix(text, i+1, end)
		if j < end && text[j] == '#' && j+1 < end && class[text[j+1]]&Digit != 0 {
			j = Run(text, j+1, end, Digit)
		}
		return Value, j
	case '^':
		return Label, suffix(text, i+1, end)
	case '@':
		if next == '"' {
			k, j := scanString(text, i+1, end)
			if k == BadString {
				return k, j
			}
			return Symbol, j
		}
		return Symbol, Run(text, i+1, end, Word)
	case '#':
		if next == '-' && i+2 < end && text[i+2] == '}' {
			return Op, i + 3
		}
		return sigil(Hash, text, i, end)
	case '!':
		return sigil(Bang, text, i, end)
	case '"':
		return scanString(text, i, end)
	case '-':
		if next == '>' {
			return Arrow, i + 2
		}
	case ':':
		if next == ':' {
			return DColon, i + 2
		}
		return Colon, i + 1
	case '=':
		if next == '=' {
			return Op, i + 2
		}
		return Eq, i + 1
	case '>':
		if next == '=' {
			return Op, i + 2
		}
		return RAngle, i + 1
	case '<':
		if next == '=' {
			return Op, i + 2
		}
		if (next == ' ' || next == '\t') && isLess(text, i, end) {
			return Op, i + 1
		}
		return LAngle, i + 1
	case '{':
		switch {
		case next != '-' || i+2 >= end || text[i+2] != '#':
			return LBrace, i + 1
		case c.Mode&Sections != 0:
			return Op, i + 3
		}
		return Resource, scanResource(text, i, end)
	}
	j := i + 1
	for b >= 0x80 && j < end && text[j]&0xC0 == 0x80 { // keep a rune in one piece
		j++
	}
	return Op, j
}

// Classes of bytes. A byte outside of ASCII belongs to none.
const (
	Space  = 1 << iota // space, tab, CR, LF
	Digit              // 0-9
	Word               // what may follow in a bare identifier or number: letters, digits, $ . _
	letter             // A-Z a-z _
	named              // what may follow in a %, ^, # or ! name: letters, digits, $ . - _
)

var class = func() (t [256]uint8) {
	for _, c := range []byte(" \t\r\n") {
		t[c] |= Space
	}
	for c := '0'; c <= '9'; c++ {
		t[c] |= Digit | named | Word
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= letter | named | Word
		t[c-'a'+'A'] |= letter | named | Word
	}
	t['_'] |= letter | named | Word
	t['$'] |= named | Word
	t['.'] |= named | Word
	t['-'] |= named
	return t
}()

// single is the kind of the tokens that are always one byte.
var single = [256]Kind{',': Comma, '(': LParen, ')': RParen, '[': LBrack, ']': RBrack, '}': RBrace}

// Is reports whether b belongs to one of the classes.
func Is(b byte, classes uint8) bool { return class[b]&classes != 0 }

// Run returns the end of the bytes of the classes that start at i.
func Run(text string, i, end int, classes uint8) int {
	for i < end && class[text[i]]&classes != 0 {
		i++
	}
	return i
}

// sigil reads the name behind the # or ! at i; without one that is an operator.
func sigil(k Kind, text string, i, end int) (Kind, int) {
	j := suffix(text, i+1, end)
	if j == i+1 {
		return Op, j
	}
	return k, j
}

// isLess tells whether the "<" at i, with a blank behind it, is a comparison of
// another dialect and no bracket: white space is before it as well, and what it
// compares with follows on its line. Properties, as in "() < {a = 1}>", are none.
func isLess(text string, i, end int) bool {
	if i == 0 || class[text[i-1]]&Space == 0 {
		return false
	}
	for i++; i < end && (text[i] == ' ' || text[i] == '\t'); i++ {
	}
	return i < end && text[i] != '\n' && text[i] != '\r' && text[i] != '{' && !strings.HasPrefix(text[i:end], "//")
}

// suffix is the end of the name behind a %, ^, # or ! before i: digits alone, or
// letters, digits, $ . _ and - (but the - of an arrow does not belong to it).
func suffix(text string, i, end int) int {
	if i < end && class[text[i]]&Digit != 0 {
		return Run(text, i, end, Digit)
	}
	for i < end && class[text[i]]&named != 0 {
		if text[i] == '-' && i+1 < end && text[i+1] == '>' {
			break
		}
		i++
	}
	return i
}

// scanNumber reads digits, a fraction, an exponent, a hexadecimal number, and
// whatever word characters follow, so that 4x8xf32 is one token.
func scanNumber(text string, i, end int) int {
	start := i
	for i < end {
		b := text[i]
		if class[b]&Word != 0 {
			i++
			continue
		}
		if (b == '-' || b == '+') && (text[i-1] == 'e' || text[i-1] == 'E') && isDecimal(text[start:i-1]) &&
			i+1 < end && class[text[i+1]]&Digit != 0 {
			i++
			continue
		}
		break
	}
	return i
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if class[s[i]]&Digit == 0 && s[i] != '.' {
			return false
		}
	}
	return s != ""
}

// scanString reads a string; a string never crosses a line end.
func scanString(text string, i, end int) (Kind, int) {
	// Most strings, and all that are megabytes long, have neither escapes nor errors.
	if n := strings.IndexByte(text[i+1:end], '"'); n >= 0 {
		if s := text[i+1 : i+1+n]; strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '\n') < 0 {
			return String, i + n + 2
		}
	}
	for j := i + 1; j < end; j++ {
		switch text[j] {
		case '"':
			return String, j + 1
		case '\\':
			j++
			if j < end && text[j] == '\n' {
				return BadString, j
			}
		case '\n':
			return BadString, j
		}
	}
	return BadString, end
}

// scanResource finds the end of {-# … #-}; without one it ends with the text.
func scanResource(text string, i, end int) int {
	for j := i + 3; j < end; j++ {
		switch text[j] {
		case '"':
			_, k := scanString(text, j, end)
			j = k - 1
		case '/':
			if j+1 < end && text[j+1] == '/' {
				j = LineEnd(text, j, end) - 1
			}
		case '#':
			if j+2 < end && text[j+1] == '-' && text[j+2] == '}' {
				return j + 3
			}
		}
	}
	return end
}

// LineEnd returns where the line of i ends; as in MLIR, a carriage return ends
// it too.
func LineEnd(text string, i, end int) int {
	for i < end && text[i] != '\n' && text[i] != '\r' {
		i++
	}
	return i
}

// Tokens returns the tokens that begin in a stretch of a text, which may begin at
// any line.
func Tokens(text string, in source.Span) []Token {
	var out []Token
	c := New(text, in.Start, min(in.End, len(text)))
	for t := c.Next(); t.Kind != EOF; t = c.Next() {
		out = append(out, t)
	}
	return out
}
