package parse

import (
	"strings"

	"dmir/syntax/source"
)

// kind tells the tokens of the byte scanner apart.
type kind uint8

const (
	kEOF      kind = iota
	kValue         // %x, %x#1
	kLabel         // ^bb0
	kSymbol        // @f, @"f"
	kHash          // #map, #dm.at
	kBang          // !t, !dm.token
	kString        // "…"
	kBadStr        // a string whose closing quote is missing on its line
	kNumber        // 4, 0xFF, 1.0e-5, 4x8xf32 inside a shape
	kIdent         // tensor, dm.add, loc
	kArrow         // ->
	kColon         // :
	kDColon        // ::
	kComma         // ,
	kEq            // =
	kLParen        // (
	kRParen        // )
	kLBrack        // [
	kRBrack        // ]
	kLBrace        // {
	kRBrace        // }
	kLAngle        // <
	kRAngle        // >
	kOp            // any other character, and the operators >=, <=, ==
	kSplit         // a "// -----" line
	kResource      // {-# … #-}
	kRegion        // { … } that holds ops; only in the token list of an op's header
)

// Classes of bytes. A byte outside ASCII belongs to no class and is a kOp.
const (
	cSpace  = 1 << iota // space, tab, CR, LF
	cDigit              // 0-9
	cLetter             // A-Z a-z _
	cSuffix             // what may follow in a %, ^, # or ! name: letters, digits, $ . - _
	cWord               // what may follow in a bare identifier or number: letters, digits, $ . _
)

var class = func() (t [256]uint8) {
	for _, c := range []byte(" \t\r\n") {
		t[c] |= cSpace
	}
	for c := '0'; c <= '9'; c++ {
		t[c] |= cDigit | cSuffix | cWord
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= cLetter | cSuffix | cWord
		t[c-'a'+'A'] |= cLetter | cSuffix | cWord
	}
	t['_'] |= cLetter | cSuffix | cWord
	t['$'] |= cSuffix | cWord
	t['.'] |= cSuffix | cWord
	t['-'] |= cSuffix
	return t
}()

var single = func() (t [256]kind) {
	for i := range t {
		t[i] = kOp
	}
	t[','], t['('], t[')'] = kComma, kLParen, kRParen
	t['['], t[']'], t['}'] = kLBrack, kRBrack, kRBrace
	return t
}()

// token is a piece of text with no blanks or comments around it.
type token struct {
	kind       kind
	first      bool // nothing but blanks before it on its line
	start, end int
}

// cursor walks over the tokens of text[:end]. Copying it is how one looks ahead.
type cursor struct {
	text string
	pos  int
	end  int
	line bool // only blanks seen since the start of the line

	splits bool // "// -----" lines are tokens, not comments
}

func newCursor(text string, pos, end int) cursor {
	if pos == 0 && strings.HasPrefix(text, source.ByteOrderMark) {
		pos = min(len(source.ByteOrderMark), end)
	}
	return cursor{text: text, pos: pos, end: end, line: true}
}

// peek is the next token, which stays unread.
func (c *cursor) peek() token {
	d := *c
	return d.next()
}

// next reads a token; at the end it returns kEOF again and again.
func (c *cursor) next() token {
	text, end, i := c.text, c.end, c.pos
	first := c.line
	for i < end {
		b := text[i]
		if class[b]&cSpace != 0 {
			first = first || b == '\n' || b == '\r'
			i++
			continue
		}
		if b == '/' && i+1 < end && text[i+1] == '/' {
			stop := lineEnd(text, i, end)
			if c.splits && isSplit(text[i:stop]) && (i == 0 || text[i-1] == '\n' || text[i-1] == '\r') {
				c.pos, c.line = stop, false
				return token{kSplit, true, i, stop}
			}
			i = stop
			continue
		}
		break
	}
	t := token{kind: kEOF, first: first, start: i, end: i}
	c.line = false
	if i >= end {
		c.pos, c.line = end, first
		return t
	}
	t.kind, t.end = c.scan(i)
	c.pos = t.end
	return t
}

// scan reads the token that starts at i.
func (c *cursor) scan(i int) (kind, int) {
	text, end := c.text, c.end
	b := text[i]
	next := byte(0)
	if i+1 < end {
		next = text[i+1]
	}
	switch b {
	case '%':
		j := suffix(text, i+1, end)
		if j < end && text[j] == '#' && j+1 < end && class[text[j+1]]&cDigit != 0 {
			j = run(text, j+1, end, cDigit)
		}
		return kValue, j
	case '^':
		return kLabel, suffix(text, i+1, end)
	case '@':
		if next == '"' {
			k, j := scanString(text, i+1, end)
			if k == kBadStr {
				return k, j
			}
			return kSymbol, j
		}
		return kSymbol, run(text, i+1, end, cWord)
	case '#':
		if next == '-' && i+2 < end && text[i+2] == '}' {
			return kOp, i + 3
		}
		return sigil(kHash, text, i, end)
	case '!':
		return sigil(kBang, text, i, end)
	case '"':
		return scanString(text, i, end)
	case '-':
		if next == '>' {
			return kArrow, i + 2
		}
		return kOp, i + 1
	case ':':
		if next == ':' {
			return kDColon, i + 2
		}
		return kColon, i + 1
	case '=':
		if next == '=' {
			return kOp, i + 2
		}
		return kEq, i + 1
	case '>':
		if next == '=' {
			return kOp, i + 2
		}
		return kRAngle, i + 1
	case '<':
		if next == '=' {
			return kOp, i + 2
		}
		if (next == ' ' || next == '\t') && isLess(text, i, end) {
			return kOp, i + 1
		}
		return kLAngle, i + 1
	case '{':
		if next == '-' && i+2 < end && text[i+2] == '#' {
			return kResource, scanResource(text, i, end)
		}
		return kLBrace, i + 1
	}
	switch {
	case class[b]&cLetter != 0:
		return kIdent, run(text, i+1, end, cWord)
	case class[b]&cDigit != 0:
		return kNumber, scanNumber(text, i, end)
	case b >= 0x80: // keep a rune in one piece
		j := i + 1
		for j < end && text[j]&0xC0 == 0x80 {
			j++
		}
		return kOp, j
	}
	return single[b], i + 1
}

// sigil reads the name behind the # or ! at i; without one that is an operator.
func sigil(k kind, text string, i, end int) (kind, int) {
	j := suffix(text, i+1, end)
	if j == i+1 {
		return kOp, j
	}
	return k, j
}

// isLess tells whether the "<" at i, with a blank behind it, is a comparison of
// another dialect and no bracket: white space is before it as well, and what it
// compares with follows on its line. Properties, as in "() < {a = 1}>", are none.
func isLess(text string, i, end int) bool {
	if i == 0 || class[text[i-1]]&cSpace == 0 {
		return false
	}
	for i++; i < end && (text[i] == ' ' || text[i] == '\t'); i++ {
	}
	return i < end && text[i] != '\n' && text[i] != '\r' && text[i] != '{' && !strings.HasPrefix(text[i:end], "//")
}

// suffix is the end of the name behind a %, ^, # or ! before i: digits alone, or
// letters, digits, $ . _ and - (but the - of an arrow does not belong to it).
func suffix(text string, i, end int) int {
	if i < end && class[text[i]]&cDigit != 0 {
		return run(text, i, end, cDigit)
	}
	for i < end && class[text[i]]&cSuffix != 0 {
		if text[i] == '-' && i+1 < end && text[i+1] == '>' {
			break
		}
		i++
	}
	return i
}

// run is the end of the bytes of a class that start at i.
func run(text string, i, end int, mask uint8) int {
	for i < end && class[text[i]]&mask != 0 {
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
		if class[b]&cWord != 0 {
			i++
			continue
		}
		if (b == '-' || b == '+') && (text[i-1] == 'e' || text[i-1] == 'E') && isDecimal(text[start:i-1]) &&
			i+1 < end && class[text[i+1]]&cDigit != 0 {
			i++
			continue
		}
		break
	}
	return i
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if class[s[i]]&cDigit == 0 && s[i] != '.' {
			return false
		}
	}
	return s != ""
}

// scanString reads a string; a string never crosses a line end.
func scanString(text string, i, end int) (kind, int) {
	for j := i + 1; j < end; j++ {
		switch text[j] {
		case '"':
			return kString, j + 1
		case '\\':
			j++
			if j < end && text[j] == '\n' {
				return kBadStr, j
			}
		case '\n':
			return kBadStr, j
		}
	}
	return kBadStr, end
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
				j = lineEnd(text, j, end) - 1
			}
		case '#':
			if j+2 < end && text[j+1] == '-' && text[j+2] == '}' {
				return j + 3
			}
		}
	}
	return end
}

// lineEnd is where a comment ends; as in MLIR, a carriage return ends it too.
func lineEnd(text string, i, end int) int {
	for i < end && text[i] != '\n' && text[i] != '\r' {
		i++
	}
	return i
}

// isSplit reports whether a comment is MLIR's split marker.
func isSplit(comment string) bool {
	const marker = "// -----"
	if len(comment) < len(marker) || comment[:len(marker)] != marker {
		return false
	}
	for _, b := range []byte(comment[len(marker):]) {
		if b != '-' && class[b]&cSpace == 0 {
			return false
		}
	}
	return true
}

// dotted reports whether a name has a dialect prefix.
func dotted(s string) bool {
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '.' {
			return true
		}
	}
	return false
}
