package parse

import (
	"errors"
	"io"
	"slices"

	"dmir/syntax/ast"
	"dmir/syntax/lex"

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
	Kind       lexer.TokenType
	Start, End int
}

// coarseLexer cuts an op's text into coarse tokens. It gathers the symbols and
// aliases inside the groups on the way, since nothing else looks into them.
type coarseLexer struct {
	src  string
	cur  lex.Cursor
	op   *ast.Op
	form form
	br   brackets
	out  []coarse
}

func (l *coarseLexer) lex(op *ast.Op, src string) {
	l.src, l.op, l.out = src, op, l.out[:0]
	l.cur = lex.New(src, 0, len(src))
	t := l.next()
	if t.Kind == lex.Value {
		start := t.Start
		for t.Kind != lex.Eq && t.Kind != lex.EOF {
			t = l.next()
		}
		l.emit(tResults, start, t.End)
		t = l.next()
	}
	switch t.Kind {
	case lex.String:
		l.form = fGeneric
		l.emit(tGeneric, t.Start, t.End)
	case lex.Ident:
		l.form = formOf(src[t.Start:t.End])
		l.emit(formTokens[l.form], t.Start, t.End)
	default:
		l.form = fBad
		if t.Kind != lex.EOF {
			l.emit(tJunk, t.Start, t.End)
		}
	}
	for t = l.next(); t.Kind != lex.EOF; t = l.next() {
		l.token(t)
	}
}

func (l *coarseLexer) emit(k lexer.TokenType, start, end int) {
	l.out = append(l.out, coarse{k, start, end})
}

// next reads a fine token, notes symbols and aliases, and jumps over regions.
func (l *coarseLexer) next() lex.Token {
	t := l.cur.Next()
	switch t.Kind {
	case lex.LBrace:
		if r := regionAt(l.op, t.Start); r != nil {
			t.Kind, t.End = lex.Region, len(l.src)
			if r.Close >= 0 && int(r.Close) < len(l.src) {
				t.End = int(r.Close) + 1
			}
			l.cur.Pos = t.End
		}
	case lex.Symbol:
		parts := l.op.Own()
		parts.Symbols = append(parts.Symbols, ast.Symbol{Name: l.src[t.Start:t.End], Span: rel(t.Start, t.End)})
	case lex.Hash, lex.Bang:
		if isAlias(l.src, t) {
			parts := l.op.Own()
			parts.Aliases = append(parts.Aliases, ast.Alias{Name: l.src[t.Start:t.End], Span: rel(t.Start, t.End)})
		}
	}
	return t
}

// isAlias distinguishes #map and !t from #dm.at, !llvm.ptr and #dialect<…>.
func isAlias(src string, t lex.Token) bool {
	for i := t.Start; i < t.End; i++ {
		if src[i] == '.' {
			return false
		}
	}
	return t.End >= len(src) || src[t.End] != '<'
}

// group reads to the bracket that closes t.
func (l *coarseLexer) group(t lex.Token) int {
	l.br.reset()
	l.br.push(t)
	end := t.End
	for l.br.depth() > 0 {
		u := l.next()
		if u.Kind == lex.EOF {
			break
		}
		l.br.track(u)
		end = u.End
	}
	return end
}

// token turns t, and what belongs to it, into a coarse token.
func (l *coarseLexer) token(t lex.Token) {
	switch t.Kind {
	case lex.Value:
		l.operands(t)
	case lex.LParen:
		kind := tParen
		if p := l.cur.Peek(); p.Kind == lex.LBrace && regionAt(l.op, p.Start) != nil {
			kind = tRegions
		}
		l.emit(kind, t.Start, l.group(t))
	case lex.LBrack:
		l.emit(tBracket, t.Start, l.group(t))
	case lex.LBrace:
		l.emit(tDict, t.Start, l.group(t))
	case lex.Region:
		l.emit(tRegion, t.Start, t.End)
	case lex.LAngle:
		if l.cur.Peek().Kind == lex.LBrace {
			l.emit(tProps, t.Start, l.group(t))
			return
		}
		l.emit(tJunk, t.Start, t.End)
	case lex.Colon:
		l.emit(tColon, t.Start, t.End)
		l.types()
	case lex.Arrow:
		l.emit(tArrow, t.Start, t.End)
		l.types()
	case lex.Comma:
		l.emit(tComma, t.Start, t.End)
	case lex.Symbol:
		end := t.End
		for l.cur.Peek().Kind == lex.DColon {
			l.next()
			end = l.next().End
		}
		l.emit(tSymbol, t.Start, end)
	case lex.Ident:
		l.word(t)
	case lex.String, lex.Number, lex.Hash, lex.Bang:
		l.emit(tLiteral, t.Start, l.primary(t))
	case lex.Op:
		if next := l.cur.Peek(); l.src[t.Start] == '-' && (next.Kind == lex.Number || ast.NotFinite(l.src[next.Start:next.End])) {
			l.emit(tLiteral, t.Start, l.next().End)
			return
		}
		l.emit(tJunk, t.Start, t.End)
	default:
		l.emit(tJunk, t.Start, t.End)
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
func (l *coarseLexer) operands(t lex.Token) {
	start, end := t.Start, t.End
	for {
		c := l.cur
		if c.Next().Kind != lex.Comma {
			break
		}
		u := c.Next()
		if u.Kind != lex.Value {
			break
		}
		l.cur, end = c, u.End
	}
	l.emit(tOperands, start, end)
}

// word reads a clause, a location, a literal that begins with a word, or a word.
func (l *coarseLexer) word(t lex.Token) {
	switch next := l.cur.Peek(); {
	case next.Kind == lex.Eq && l.form == fDm:
		l.next()
		end := next.End
		if u := l.cur.Peek(); u.Kind != lex.EOF && u.Kind != lex.Comma && u.Kind != lex.Colon {
			end = l.value(l.next())
		}
		l.emit(tClause, t.Start, end)
	case next.Kind == lex.LParen && l.src[t.Start:t.End] == "loc":
		l.emit(tLoc, t.Start, l.group(l.next()))
	case next.Kind == lex.LAngle:
		l.emit(tLiteral, t.Start, l.group(l.next()))
	case l.src[t.Start:t.End] == "attributes":
		l.emit(tAttributes, t.Start, t.End)
	default:
		l.emit(tWord, t.Start, t.End)
	}
}

// value reads the value of a clause. A ":" belongs to it only if the op's own
// ":" is still to come, or another clause.
func (l *coarseLexer) value(t lex.Token) int {
	end := l.primary(t)
	if l.cur.Peek().Kind == lex.Colon && l.colonIsInner() {
		l.next()
		end = l.primary(l.next())
	}
	return end
}

// primary reads one attribute or type without a trailing ": type".
func (l *coarseLexer) primary(t lex.Token) int {
	end := t.End
	switch t.Kind {
	case lex.Op:
		return l.next().End
	case lex.LBrack, lex.LBrace:
		return l.group(t)
	case lex.LParen:
		end = l.group(t)
		if l.cur.Peek().Kind == lex.Arrow {
			l.next()
			end = l.primary(l.next())
		}
		return end
	case lex.Symbol:
		for l.cur.Peek().Kind == lex.DColon {
			l.next()
			end = l.next().End
		}
		return end
	case lex.Ident, lex.Hash, lex.Bang:
		for {
			switch u := l.cur.Peek(); u.Kind {
			case lex.LAngle, lex.LBrack:
				if u.Start != end {
					return end
				}
				end = l.group(l.next())
			case lex.LParen:
				if t.Kind != lex.Ident || u.Start != end {
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
	c.Next()
	var br brackets
	comma := false
	for {
		t := c.Next()
		if t.Kind == lex.EOF || t.Kind == lex.LBrace && br.depth() == 0 && regionAt(l.op, t.Start) != nil {
			return false
		}
		if br.depth() == 0 {
			if t.Kind == lex.Colon || comma && t.Kind == lex.Ident && c.Peek().Kind == lex.Eq {
				return true
			}
			comma = t.Kind == lex.Comma
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
		t := l.cur.Peek()
		if t.Kind == lex.EOF || t.Kind == lex.Arrow && start < 0 || t.Kind == lex.Colon || t.Kind == lex.LBrace || t.Kind == lex.Ident && !more {
			break
		}
		l.next()
		if start < 0 {
			start = t.Start
		}
		end, more = t.End, open(t.Kind)
		switch t.Kind {
		case lex.LParen, lex.LBrack, lex.LAngle:
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
	t := lexer.Token{Type: r.toks[r.i].Kind, Pos: lexer.Position{Offset: r.i}}
	r.i++
	return t, nil
}
