package parse

import (
	"io"

	"github.com/alecthomas/participle/v2/lexer"
)

// The tokens of types and attributes. What no grammar of dmir's looks into is
// one balanced token here too.
const (
	eScalar    lexer.TokenType = iota + 1 // f32, index
	eShaped                               // tensor, memref, vector, in front of "<"
	eDims                                 // 4x?x[8]x or *x
	eRest                                 // what follows the element type: an encoding, a layout
	eTuple                                // tuple, in front of "<"
	eComplex                              // complex, in front of "<"
	eTypeAlias                            // !t
	eDialect                              // !llvm.ptr<…>
	eAlias                                // #map
	eAttr                                 // #dm.at<…>
	eString
	eNumber // with its sign
	eBool
	eUnit
	eSymbol   // @f::@g
	eDense    // dense<…>
	eResource // dense_resource<…>
	eArray    // array<…>
	eNumbers  // [ … ] of numbers without types, and lists of such
	eSparse   // sparse<…>
	eAffine   // affine_map<…>, affine_set<…>
	eLoc      // loc(…)
	eBuiltin  // any other word<…>, distinct[…]<…>
	eWord
	eKey // a name of a dictionary
	eArrow
	eComma
	eColon
	eEq
	eOpen  // <
	eClose // >
	eLParen
	eRParen
	eLBrack
	eRBrack
	eLBrace
	eRBrace
	eJunk
)

var exprSymbols = map[string]lexer.TokenType{
	"EOF": lexer.EOF, "Scalar": eScalar, "Shaped": eShaped, "Dims": eDims, "Rest": eRest, "Tuple": eTuple,
	"Complex": eComplex, "TypeAlias": eTypeAlias, "Dialect": eDialect, "Alias": eAlias, "Attr": eAttr,
	"String": eString, "Number": eNumber, "Bool": eBool, "Unit": eUnit, "Symbol": eSymbol, "Dense": eDense,
	"Resource": eResource, "Array": eArray, "Numbers": eNumbers, "Sparse": eSparse, "Affine": eAffine, "Loc": eLoc,
	"Builtin": eBuiltin, "Word": eWord, "Key": eKey, "Arrow": eArrow, "Comma": eComma, "Colon": eColon,
	"Eq": eEq, "Open": eOpen, "Close": eClose, "LParen": eLParen, "RParen": eRParen, "LBrack": eLBrack,
	"RBrack": eRBrack, "LBrace": eLBrace, "RBrace": eRBrace, "Junk": eJunk,
}

var exprWords = map[string]lexer.TokenType{
	"dense": eDense, "dense_resource": eResource, "array": eArray, "sparse": eSparse,
	"affine_map": eAffine, "affine_set": eAffine,
}

var exprSingles = map[kind]lexer.TokenType{
	kArrow: eArrow, kComma: eComma, kColon: eColon, kEq: eEq, kRAngle: eClose, kLParen: eLParen, kRParen: eRParen,
	kLBrack: eLBrack, kRBrack: eRBrack, kLBrace: eLBrace, kRBrace: eRBrace, kString: eString, kLAngle: eOpen,
}

// maxNesting bounds how deep types and attributes nest before they are an error.
const maxNesting = 200

// exprLexer is the lexer.Definition of types and attributes.
type exprLexer struct{}

func (exprLexer) Symbols() map[string]lexer.TokenType { return exprSymbols }

func (d exprLexer) Lex(name string, r io.Reader) (lexer.Lexer, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return d.LexString(name, string(b))
}

func (exprLexer) LexString(_, text string) (lexer.Lexer, error) {
	return &exprScan{cur: newCursor(text, 0, len(text))}, nil
}

// exprScan is one run over a text. open holds a letter for each open bracket:
// s(haped), t(uple), (, [ and {.
type exprScan struct {
	cur  cursor
	open []byte
	dims bool // dimensions may come next
	key  bool // a dictionary's name comes next
	rest bool // the rest of a shaped type comes next
	end  int  // of the token before
}

// Next makes the next token. Pos.Offset is where it starts and Pos.Line where
// the token before it ended, so that a node's EndPos.Line is its own end.
func (x *exprScan) Next() (lexer.Token, error) {
	if x.dims {
		x.dims = false
		if t, ok := x.dimensions(); ok {
			return t, nil
		}
	}
	t := x.cur.next()
	if x.rest {
		x.rest = false
		end, err := x.restEnd(t)
		return x.make(eRest, t.start, end), err
	}
	key := x.key
	x.key = false
	switch t.kind {
	case kEOF:
		return lexer.Token{Type: lexer.EOF, Pos: lexer.Position{Offset: t.start, Line: x.end}}, nil
	case kIdent:
		if key {
			return x.make(eKey, t.start, t.end), nil
		}
		return x.word(t)
	case kHash, kBang:
		return x.sigil(t)
	case kSymbol:
		end := t.end
		for x.cur.peek().kind == kDColon {
			x.cur.next()
			end = x.cur.next().end
		}
		return x.make(eSymbol, t.start, end), nil
	case kNumber:
		return x.make(eNumber, t.start, t.end), nil
	case kOp:
		if next := x.cur.peek(); x.cur.text[t.start] == '-' && next.kind == kNumber && next.start == t.end {
			x.cur.next()
			return x.make(eNumber, t.start, next.end), nil
		}
		return x.make(eJunk, t.start, t.end), nil
	case kLBrack:
		if end := numbersEnd(x.cur.text, t.start, x.cur.end); end > 0 {
			x.cur.pos = end
			return x.make(eNumbers, t.start, end), nil
		}
	case kString:
		if key {
			return x.make(eKey, t.start, t.end), nil
		}
	}
	k, ok := exprSingles[t.kind]
	if !ok {
		return x.make(eJunk, t.start, t.end), nil
	}
	if err := x.bracket(t); err != nil {
		return lexer.Token{}, err
	}
	return x.make(k, t.start, t.end), nil
}

// sigil makes the token of a name with # or !: an alias, or a dialect's
// attribute or type with what it holds.
func (x *exprScan) sigil(t token) (lexer.Token, error) {
	alias, whole := eAlias, eAttr
	if t.kind == kBang {
		alias, whole = eTypeAlias, eDialect
	}
	switch next := x.cur.peek(); {
	case next.kind == kLAngle && next.start == t.end:
		return x.makeGroup(whole, t.start)
	case isAlias(x.cur.text, t):
		return x.make(alias, t.start, t.end), nil
	}
	return x.make(whole, t.start, t.end), nil
}

func (x *exprScan) make(k lexer.TokenType, start, end int) lexer.Token {
	t := lexer.Token{Type: k, Value: x.cur.text[start:end], Pos: lexer.Position{Offset: start, Line: x.end}}
	x.end = end
	return t
}

// numbersEnd is the end of the list of numbers at i, -1 if it holds anything
// else. Such lists can be long, and participle takes a million tokens at most.
func numbersEnd(text string, i, end int) int {
	for deep := 0; i < end; i++ {
		switch b := text[i]; {
		case b == '[':
			deep++
		case b == ']':
			if deep--; deep == 0 {
				return i + 1
			}
		case class[b]&(cDigit|cSpace) == 0 && b != ',' && b != '-' && b != '.' && b != '+' && (b|0x20 != 'e' || class[text[i-1]]&cWord == 0):
			return -1
		}
	}
	return -1
}

// makeGroup makes the token from start to the end of the bracket that comes next.
func (x *exprScan) makeGroup(k lexer.TokenType, start int) (lexer.Token, error) {
	end, err := x.group(x.cur.next())
	return x.make(k, start, end), err
}

// group reads to the bracket that closes open. What is between must be
// balanced, except for "<" and ">", which can be operators there.
func (x *exprScan) group(open token) (int, error) {
	var br brackets
	br.push(open)
	end := open.end
	for br.depth() > 0 {
		t := x.cur.next()
		if t.kind == kEOF {
			return end, newError("DM042", open.start, open.end, "this `%s` is never closed", x.cur.text[open.start:open.end])
		}
		switch t.kind {
		case kRParen, kRBrack, kRBrace, kRAngle:
			if _, o, ok := br.pop(t); o.kind != kEOF {
				return end, newError("DM042", o.start, o.end, "this `%s` is never closed", x.cur.text[o.start:o.end])
			} else if !ok && t.kind != kRAngle {
				return end, newError("DM042", t.start, t.end, "this `%s` closes nothing", x.cur.text[t.start:t.end])
			}
		default:
			br.track(t)
		}
		end = t.end
	}
	return end, nil
}

// bracket keeps the stack of brackets and what it means for the next token.
func (x *exprScan) bracket(t token) error {
	top := byte(0)
	if len(x.open) > 0 {
		top = x.open[len(x.open)-1]
	}
	switch t.kind {
	case kLParen, kLBrack, kLBrace:
		x.key = t.kind == kLBrace
		return x.push(x.cur.text[t.start], t)
	case kRParen, kRBrack, kRBrace, kRAngle:
		if top != 0 {
			x.open = x.open[:len(x.open)-1]
		}
	case kComma:
		x.key = top == '{'
		x.rest = top == 's'
	}
	return nil
}

func (x *exprScan) push(b byte, t token) error {
	x.open = append(x.open, b)
	if len(x.open) > maxNesting {
		return newError("DM002", t.start, t.end, "brackets are nested more than %d deep", maxNesting)
	}
	return nil
}

// word makes the token of a bare identifier.
func (x *exprScan) word(t token) (lexer.Token, error) {
	w := x.cur.text[t.start:t.end]
	next := x.cur.peek()
	if next.kind == kLAngle {
		k := eBuiltin
		switch w {
		case "tensor", "memref", "vector":
			return x.make(eShaped, t.start, t.end), x.angle('s', true)
		case "tuple":
			return x.make(eTuple, t.start, t.end), x.angle('t', false)
		case "complex":
			return x.make(eComplex, t.start, t.end), x.angle('t', false)
		}
		if e, ok := exprWords[w]; ok {
			k = e
		}
		return x.makeGroup(k, t.start)
	}
	k := eWord
	switch {
	case isScalar(w):
		k = eScalar
	case w == "true" || w == "false":
		k = eBool
	case w == "unit":
		k = eUnit
	case w == "loc" && next.kind == kLParen:
		return x.makeGroup(eLoc, t.start)
	case next.kind == kLBrack && next.start == t.end:
		end, err := x.group(x.cur.next())
		if err == nil && x.cur.peek().kind == kLAngle {
			end, err = x.group(x.cur.next())
		}
		return x.make(eBuiltin, t.start, end), err
	}
	return x.make(k, t.start, t.end), nil
}

// angle takes the "<" of a builtin type, which the grammar does not see.
func (x *exprScan) angle(b byte, dims bool) error {
	t := x.cur.next()
	x.end = t.end
	x.dims = dims
	return x.push(b, t)
}

// dimensions reads "4x?x[8]x" or "*x".
func (x *exprScan) dimensions() (lexer.Token, bool) {
	text, end := x.cur.text, x.cur.end
	start := run(text, x.cur.pos, end, cSpace)
	i := start
	if i < end && text[i] == '*' {
		if j := run(text, i+1, end, cSpace); j < end && text[j] == 'x' {
			i = j + 1
		}
	} else {
		for {
			j := dimension(text, i, end)
			if j < 0 {
				break
			}
			if j = run(text, j, end, cSpace); j >= end || text[j] != 'x' {
				break
			}
			i = run(text, j+1, end, cSpace)
		}
	}
	if i == start {
		return lexer.Token{}, false
	}
	x.cur.pos = i
	for text[i-1] != 'x' {
		i--
	}
	return x.make(eDims, start, i), true
}

// dimension is the end of "4", "?", "[4]" at i, -1 if there is none.
func dimension(text string, i, end int) int {
	if i >= end {
		return -1
	}
	scalable := text[i] == '['
	if scalable {
		i++
	} else if text[i] == '?' {
		return i + 1
	}
	j := run(text, i, end, cDigit)
	if j == i {
		return -1
	}
	if scalable {
		if j >= end || text[j] != ']' {
			return -1
		}
		j++
	}
	return j
}

// restEnd reads from t to the ">" of the shaped type.
func (x *exprScan) restEnd(t token) (int, error) {
	var br brackets
	end := t.start
	for {
		if t.kind == kEOF || br.depth() == 0 && t.kind == kRAngle {
			x.cur.pos = t.start
			if n := br.depth(); n > 0 {
				o := br.open[n-1]
				return end, newError("DM042", o.start, o.end, "this `%s` is never closed", x.cur.text[o.start:o.end])
			}
			return end, nil
		}
		br.track(t)
		end = t.end
		t = x.cur.next()
	}
}
