package parse

import (
	"errors"
	"io"
	"slices"

	"dmir/syntax/ast"

	"github.com/alecthomas/participle/v2/lexer"
)

// The coarse tokens of an op. A balanced group is one token, whatever is in it.
const (
	tResults    lexer.TokenType = iota + 1 // %a:2, %b =
	tGeneric                               // "dialect.op"
	tDm                                    // dm.einsum
	tFunc                                  // func.func
	tCall                                  // func.call, call
	tReturn                                // func.return, return
	tModule                                // builtin.module, module
	tOperands                              // %x, %y
	tParen                                 // ( … )
	tBracket                               // [ … ]
	tProps                                 // <{ … }>
	tDict                                  // { … }
	tRegions                               // ({ … }, { … })
	tRegion                                // { … } with ops
	tColon                                 // :
	tArrow                                 // ->
	tTypes                                 // (A, B) -> C
	tComma                                 // ,
	tClause                                // dims = [1, 0]
	tLiteral                               // "bln,nu->blu", dense<1.0>, -1, #dm.x<…>
	tWord                                  // private, add, else
	tSymbol                                // @f
	tAttributes                            // attributes
	tLoc                                   // loc( … )
	tJunk                                  // nothing of the above
)

var coarseSymbols = map[string]lexer.TokenType{
	"EOF": lexer.EOF, "Results": tResults, "Generic": tGeneric, "Dm": tDm, "Func": tFunc, "Call": tCall,
	"Return": tReturn, "Module": tModule, "Operands": tOperands, "Paren": tParen, "Bracket": tBracket,
	"Props": tProps, "Dict": tDict, "Regions": tRegions, "Region": tRegion, "Colon": tColon, "Arrow": tArrow,
	"Types": tTypes, "Comma": tComma, "Clause": tClause, "Literal": tLiteral, "Word": tWord,
	"Symbol": tSymbol, "Attributes": tAttributes, "Loc": tLoc, "Junk": tJunk,
}

var formTokens = [...]lexer.TokenType{
	fCustom: tJunk, fDm: tDm, fFunc: tFunc, fCall: tCall, fReturn: tReturn, fModule: tModule,
}

// coarse is one coarse token: a kind and a range of the op's text.
type coarse struct {
	kind       lexer.TokenType
	start, end int
}

// coarseLexer cuts an op's text into coarse tokens. It gathers the symbols and
// aliases inside the groups on the way, since nothing else looks into them.
type coarseLexer struct {
	src  string
	cur  cursor
	op   *ast.Op
	form form
	br   brackets
	out  []coarse
}

func (l *coarseLexer) lex(op *ast.Op, src string) {
	l.src, l.op, l.out = src, op, l.out[:0]
	l.cur = newCursor(src, 0, len(src))
	t := l.next()
	if t.kind == kValue {
		start := t.start
		for t.kind != kEq && t.kind != kEOF {
			t = l.next()
		}
		l.emit(tResults, start, t.end)
		t = l.next()
	}
	switch t.kind {
	case kString:
		l.form = fGeneric
		l.emit(tGeneric, t.start, t.end)
	case kIdent:
		l.form = formOf(src[t.start:t.end])
		l.emit(formTokens[l.form], t.start, t.end)
	default:
		l.form = fBad
		if t.kind != kEOF {
			l.emit(tJunk, t.start, t.end)
		}
	}
	for t = l.next(); t.kind != kEOF; t = l.next() {
		l.token(t)
	}
}

func (l *coarseLexer) emit(k lexer.TokenType, start, end int) {
	l.out = append(l.out, coarse{k, start, end})
}

// next reads a fine token, notes symbols and aliases, and jumps over regions.
func (l *coarseLexer) next() token {
	t := l.cur.next()
	switch t.kind {
	case kLBrace:
		if r := regionAt(l.op, t.start); r != nil {
			t.kind, t.end = kRegion, len(l.src)
			if r.Close >= 0 && int(r.Close) < len(l.src) {
				t.end = int(r.Close) + 1
			}
			l.cur.pos = t.end
		}
	case kSymbol:
		l.op.Symbols = append(l.op.Symbols, ast.Symbol{Name: l.src[t.start:t.end], Span: rel(t.start, t.end)})
	case kHash, kBang:
		if isAlias(l.src, t) {
			l.op.Aliases = append(l.op.Aliases, ast.Alias{Name: l.src[t.start:t.end], Span: rel(t.start, t.end)})
		}
	}
	return t
}

// isAlias tells #map and !t from #dm.at, !llvm.ptr and #dialect<…>.
func isAlias(src string, t token) bool {
	for i := t.start; i < t.end; i++ {
		if src[i] == '.' {
			return false
		}
	}
	return t.end >= len(src) || src[t.end] != '<'
}

// group reads to the bracket that closes t.
func (l *coarseLexer) group(t token) int {
	l.br.reset()
	l.br.push(t)
	end := t.end
	for l.br.depth() > 0 {
		u := l.next()
		if u.kind == kEOF {
			break
		}
		l.br.track(u)
		end = u.end
	}
	return end
}

// token turns t, and what belongs to it, into a coarse token.
func (l *coarseLexer) token(t token) {
	switch t.kind {
	case kValue:
		l.operands(t)
	case kLParen:
		kind := tParen
		if p := l.cur.peek(); p.kind == kLBrace && regionAt(l.op, p.start) != nil {
			kind = tRegions
		}
		l.emit(kind, t.start, l.group(t))
	case kLBrack:
		l.emit(tBracket, t.start, l.group(t))
	case kLBrace:
		l.emit(tDict, t.start, l.group(t))
	case kRegion:
		l.emit(tRegion, t.start, t.end)
	case kLAngle:
		if l.cur.peek().kind == kLBrace {
			l.emit(tProps, t.start, l.group(t))
			return
		}
		l.emit(tJunk, t.start, t.end)
	case kColon:
		l.emit(tColon, t.start, t.end)
		l.types()
	case kArrow:
		l.emit(tArrow, t.start, t.end)
		l.types()
	case kComma:
		l.emit(tComma, t.start, t.end)
	case kSymbol:
		end := t.end
		for l.cur.peek().kind == kDColon {
			l.next()
			end = l.next().end
		}
		l.emit(tSymbol, t.start, end)
	case kIdent:
		l.word(t)
	case kString, kNumber, kHash, kBang:
		l.emit(tLiteral, t.start, l.primary(t))
	case kOp:
		if l.src[t.start] == '-' && l.cur.peek().kind == kNumber {
			l.emit(tLiteral, t.start, l.next().end)
			return
		}
		l.emit(tJunk, t.start, t.end)
	default:
		l.emit(tJunk, t.start, t.end)
	}
}

// regionAt is the region of op that opens at off, nil if there is none.
func regionAt(op *ast.Op, off int) *ast.Region {
	i, ok := slices.BinarySearchFunc(op.Regions, off, func(r *ast.Region, off int) int { return int(r.Open) - off })
	if !ok {
		return nil
	}
	return op.Regions[i]
}

// operands reads "%x, %y", leaving a comma that does not lead to a value.
func (l *coarseLexer) operands(t token) {
	start, end := t.start, t.end
	for {
		c := l.cur
		if c.next().kind != kComma {
			break
		}
		u := c.next()
		if u.kind != kValue {
			break
		}
		l.cur, end = c, u.end
	}
	l.emit(tOperands, start, end)
}

// word reads a clause, a location, a literal that begins with a word, or a word.
func (l *coarseLexer) word(t token) {
	switch next := l.cur.peek(); {
	case next.kind == kEq && l.form == fDm:
		l.next()
		end := next.end
		if u := l.cur.peek(); u.kind != kEOF && u.kind != kComma && u.kind != kColon {
			end = l.value(l.next())
		}
		l.emit(tClause, t.start, end)
	case next.kind == kLParen && l.src[t.start:t.end] == "loc":
		l.emit(tLoc, t.start, l.group(l.next()))
	case next.kind == kLAngle:
		l.emit(tLiteral, t.start, l.group(l.next()))
	case l.src[t.start:t.end] == "attributes":
		l.emit(tAttributes, t.start, t.end)
	default:
		l.emit(tWord, t.start, t.end)
	}
}

// value reads the value of a clause. A ":" belongs to it only if the op's own
// ":" is still to come, or another clause.
func (l *coarseLexer) value(t token) int {
	end := l.primary(t)
	if l.cur.peek().kind == kColon && l.colonIsInner() {
		l.next()
		end = l.primary(l.next())
	}
	return end
}

// primary reads one attribute or type without a trailing ": type".
func (l *coarseLexer) primary(t token) int {
	end := t.end
	switch t.kind {
	case kOp:
		return l.next().end
	case kLBrack, kLBrace:
		return l.group(t)
	case kLParen:
		end = l.group(t)
		if l.cur.peek().kind == kArrow {
			l.next()
			end = l.primary(l.next())
		}
		return end
	case kSymbol:
		for l.cur.peek().kind == kDColon {
			l.next()
			end = l.next().end
		}
		return end
	case kIdent, kHash, kBang:
		for {
			switch u := l.cur.peek(); u.kind {
			case kLAngle, kLBrack:
				if u.start != end {
					return end
				}
				end = l.group(l.next())
			case kLParen:
				if t.kind != kIdent || u.start != end {
					return end
				}
				end = l.group(l.next())
			default:
				return end
			}
		}
	}
	return end
}

// colonIsInner looks behind the next colon for another one, or for another
// clause, outside of brackets.
func (l *coarseLexer) colonIsInner() bool {
	c := l.cur
	c.next()
	var br brackets
	comma := false
	for {
		t := c.next()
		if t.kind == kEOF || t.kind == kLBrace && br.depth() == 0 && regionAt(l.op, t.start) != nil {
			return false
		}
		if br.depth() == 0 {
			if t.kind == kColon || comma && t.kind == kIdent && c.peek().kind == kEq {
				return true
			}
			comma = t.kind == kComma
		}
		br.track(t)
	}
}

// types reads what follows ":" or "->": up to a region, the word before a
// region, a dictionary, a location or another colon.
func (l *coarseLexer) types() {
	start, end := -1, 0
	more := true // a type must follow, so that a word is one
	for {
		t := l.cur.peek()
		if t.kind == kEOF || t.kind == kArrow && start < 0 || t.kind == kColon || t.kind == kLBrace || t.kind == kIdent && !more {
			break
		}
		l.next()
		if start < 0 {
			start = t.start
		}
		end, more = t.end, open(t.kind)
		switch t.kind {
		case kLParen, kLBrack, kLAngle:
			end = l.group(t)
		}
	}
	if start >= 0 {
		l.emit(tTypes, start, end)
	}
}

// skeletonLexer makes the coarse lexer usable by participle.
type skeletonLexer struct{}

func (skeletonLexer) Symbols() map[string]lexer.TokenType { return coarseSymbols }

func (skeletonLexer) Lex(string, io.Reader) (lexer.Lexer, error) {
	return nil, errors.New("an op is lexed together with the regions found in it: use coarseLexer")
}

// replay is a lexer.Lexer over coarse tokens. Offset is the token's index, so
// that what the grammar captures tells which token plays which part.
type replay struct {
	toks []coarse
	i    int
}

func (r *replay) Next() (lexer.Token, error) {
	if r.i >= len(r.toks) {
		return lexer.Token{Type: lexer.EOF, Pos: lexer.Position{Offset: r.i}}, nil
	}
	t := lexer.Token{Type: r.toks[r.i].kind, Pos: lexer.Position{Offset: r.i}}
	r.i++
	return t, nil
}
