package parse

import (
	"io"

	"dmir/syntax/ast"
	"dmir/syntax/lex"

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

var exprSingles = map[lex.Kind]lexer.TokenType{
	lex.Arrow: eArrow, lex.Comma: eComma, lex.Colon: eColon, lex.Eq: eEq, lex.RAngle: eClose, lex.LParen: eLParen, lex.RParen: eRParen,
	lex.LBrack: eLBrack, lex.RBrack: eRBrack, lex.LBrace: eLBrace, lex.RBrace: eRBrace, lex.String: eString, lex.LAngle: eOpen,
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
	return &exprScan{cur: lex.New(text, 0, len(text))}, nil
}

// exprScan is one run over a text. open holds a letter for each open bracket:
// s(haped), t(uple), (, [ and {.
type exprScan struct {
	cur  lex.Cursor
	open []byte
	dims bool // dimensions may come next
	key  bool // a dictionary's name comes next
	rest bool // the rest of a shaped type comes next
	end  int  // of the token before
}

// Next makes the next token. The end of the text stands where the last token
// ends, and not behind white space.
func (x *exprScan) Next() (lexer.Token, error) {
	if x.dims {
		x.dims = false
		if t, ok := x.dimensions(); ok {
			return t, nil
		}
	}
	t := x.cur.Next()
	if x.rest {
		x.rest = false
		end, err := x.restEnd(t)
		return x.make(eRest, t.Start, end), err
	}
	key := x.key
	x.key = false
	switch t.Kind {
	case lex.EOF:
		return lexer.Token{Type: lexer.EOF, Pos: lexer.Position{Offset: x.end}}, nil
	case lex.Ident:
		if key {
			return x.make(eKey, t.Start, t.End), nil
		}
		return x.word(t)
	case lex.Hash, lex.Bang:
		return x.sigil(t)
	case lex.Symbol:
		end := t.End
		for x.cur.Peek().Kind == lex.DColon {
			x.cur.Next()
			end = x.cur.Next().End
		}
		return x.make(eSymbol, t.Start, end), nil
	case lex.Number:
		return x.make(eNumber, t.Start, t.End), nil
	case lex.Op:
		if next := x.cur.Peek(); x.cur.Text[t.Start] == '-' && next.Start == t.End && (next.Kind == lex.Number || ast.NotFinite(x.cur.Text[next.Start:next.End])) {
			x.cur.Next()
			return x.make(eNumber, t.Start, next.End), nil
		}
		return x.make(eJunk, t.Start, t.End), nil
	case lex.LBrack:
		if end := numbersEnd(x.cur.Text, t.Start, x.cur.End); end > 0 {
			x.cur.Pos = end
			return x.make(eNumbers, t.Start, end), nil
		}
	case lex.String:
		if key {
			return x.make(eKey, t.Start, t.End), nil
		}
	}
	k, ok := exprSingles[t.Kind]
	if !ok {
		return x.make(eJunk, t.Start, t.End), nil
	}
	if err := x.bracket(t); err != nil {
		return lexer.Token{}, err
	}
	return x.make(k, t.Start, t.End), nil
}

// sigil makes the token of a name with # or !: an alias, or a dialect's
// attribute or type with what it holds.
func (x *exprScan) sigil(t lex.Token) (lexer.Token, error) {
	alias, whole := eAlias, eAttr
	if t.Kind == lex.Bang {
		alias, whole = eTypeAlias, eDialect
	}
	switch next := x.cur.Peek(); {
	case next.Kind == lex.LAngle && next.Start == t.End:
		return x.makeGroup(whole, t.Start)
	case isAlias(x.cur.Text, t):
		return x.make(alias, t.Start, t.End), nil
	}
	return x.make(whole, t.Start, t.End), nil
}

func (x *exprScan) make(k lexer.TokenType, start, end int) lexer.Token {
	t := lexer.Token{Type: k, Value: x.cur.Text[start:end], Pos: lexer.Position{Offset: start}}
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
		case !lex.Is(b, lex.Digit|lex.Space) && b != ',' && b != '-' && b != '.' && b != '+' && (b|0x20 != 'e' || !lex.Is(text[i-1], lex.Word)):
			return -1
		}
	}
	return -1
}

// makeGroup makes the token from start to the end of the bracket that comes next.
func (x *exprScan) makeGroup(k lexer.TokenType, start int) (lexer.Token, error) {
	end, err := x.group(x.cur.Next())
	return x.make(k, start, end), err
}

// group reads to the bracket that closes open. What is between must be
// balanced, except for "<" and ">", which can be operators there.
func (x *exprScan) group(open lex.Token) (int, error) {
	var br brackets
	br.push(open)
	end := open.End
	for br.depth() > 0 {
		t := x.cur.Next()
		if t.Kind == lex.EOF {
			return end, newError("DM042", open.Start, open.End, "this `%s` is never closed", x.cur.Text[open.Start:open.End])
		}
		switch t.Kind {
		case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
			if _, o, ok := br.pop(t); o.Kind != lex.EOF {
				return end, newError("DM042", o.Start, o.End, "this `%s` is never closed", x.cur.Text[o.Start:o.End])
			} else if !ok && t.Kind != lex.RAngle {
				return end, newError("DM042", t.Start, t.End, "this `%s` has no opening bracket", x.cur.Text[t.Start:t.End])
			}
		default:
			br.track(t)
		}
		end = t.End
	}
	return end, nil
}

// bracket keeps the stack of brackets and what it means for the next token.
func (x *exprScan) bracket(t lex.Token) error {
	top := byte(0)
	if len(x.open) > 0 {
		top = x.open[len(x.open)-1]
	}
	switch t.Kind {
	case lex.LParen, lex.LBrack, lex.LBrace:
		x.key = t.Kind == lex.LBrace
		return x.push(x.cur.Text[t.Start], t)
	case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
		if top != 0 {
			x.open = x.open[:len(x.open)-1]
		}
	case lex.Comma:
		x.key = top == '{'
		x.rest = top == 's'
	}
	return nil
}

func (x *exprScan) push(b byte, t lex.Token) error {
	x.open = append(x.open, b)
	if len(x.open) > maxNesting {
		return newError("DM002", t.Start, t.End, "brackets are nested more than %d deep", maxNesting)
	}
	return nil
}

// word makes the token of a bare identifier.
func (x *exprScan) word(t lex.Token) (lexer.Token, error) {
	w := x.cur.Text[t.Start:t.End]
	next := x.cur.Peek()
	if next.Kind == lex.LAngle {
		k := eBuiltin
		switch w {
		case "tensor", "memref", "vector":
			return x.make(eShaped, t.Start, t.End), x.angle('s', true)
		case "tuple":
			return x.make(eTuple, t.Start, t.End), x.angle('t', false)
		case "complex":
			return x.make(eComplex, t.Start, t.End), x.angle('t', false)
		}
		if e, ok := exprWords[w]; ok {
			k = e
		}
		return x.makeGroup(k, t.Start)
	}
	k := eWord
	switch {
	case isScalar(w):
		k = eScalar
	case w == "true" || w == "false":
		k = eBool
	case w == "unit":
		k = eUnit
	case w == "loc" && next.Kind == lex.LParen:
		return x.makeGroup(eLoc, t.Start)
	case next.Kind == lex.LBrack && next.Start == t.End:
		end, err := x.group(x.cur.Next())
		if err == nil && x.cur.Peek().Kind == lex.LAngle {
			end, err = x.group(x.cur.Next())
		}
		return x.make(eBuiltin, t.Start, end), err
	}
	return x.make(k, t.Start, t.End), nil
}

// angle takes the "<" of a builtin type, which the grammar does not see.
func (x *exprScan) angle(b byte, dims bool) error {
	t := x.cur.Next()
	x.end = t.End
	x.dims = dims
	return x.push(b, t)
}

// dimensions reads "4x?x[8]x" or "*x".
func (x *exprScan) dimensions() (lexer.Token, bool) {
	text, end := x.cur.Text, x.cur.End
	start := lex.Run(text, x.cur.Pos, end, lex.Space)
	i := start
	if i < end && text[i] == '*' {
		if j := lex.Run(text, i+1, end, lex.Space); j < end && text[j] == 'x' {
			i = j + 1
		}
	} else {
		for {
			j := dimension(text, i, end)
			if j < 0 {
				break
			}
			if j = lex.Run(text, j, end, lex.Space); j >= end || text[j] != 'x' {
				break
			}
			i = lex.Run(text, j+1, end, lex.Space)
		}
	}
	if i == start {
		return lexer.Token{}, false
	}
	x.cur.Pos = i
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
	j := lex.Run(text, i, end, lex.Digit)
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
func (x *exprScan) restEnd(t lex.Token) (int, error) {
	var br brackets
	end := t.Start
	for {
		if t.Kind == lex.EOF || br.depth() == 0 && t.Kind == lex.RAngle {
			x.cur.Pos = t.Start
			if n := br.depth(); n > 0 {
				o := br.open[n-1]
				return end, newError("DM042", o.Start, o.End, "this `%s` is never closed", x.cur.Text[o.Start:o.End])
			}
			return end, nil
		}
		br.track(t)
		end = t.End
		t = x.cur.Next()
	}
}
