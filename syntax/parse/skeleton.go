package parse

import (
	"errors"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// opSyntax is the grammar of the ops that dmir reads in full.
type opSyntax struct {
	Results lexer.Token    `parser:"@Results?"`
	Generic *genericSyntax `parser:"( @@"`
	Dm      *dmSyntax      `parser:"| @@"`
	Func    *funcSyntax    `parser:"| @@"`
	Call    *callSyntax    `parser:"| @@"`
	Return  *returnSyntax  `parser:"| @@"`
	Module  *moduleSyntax  `parser:"| @@ )"`
	Loc     lexer.Token    `parser:"@Loc?"`
}

type genericSyntax struct {
	Name     lexer.Token `parser:"@Generic"`
	Operands lexer.Token `parser:"@Paren"`
	Succs    lexer.Token `parser:"@Bracket?"`
	Props    lexer.Token `parser:"@Props?"`
	Regions  lexer.Token `parser:"@Regions?"`
	Attrs    lexer.Token `parser:"@Dict?"`
	Types    lexer.Token `parser:"Colon @Types"`
}

type dmSyntax struct {
	Name     lexer.Token    `parser:"@Dm"`
	Lead     lexer.Token    `parser:"( @(Literal | Word | Bracket | Symbol) Comma?"`
	LeadArgs lexer.Token    `parser:"  @Operands? (Comma? "`
	LeadTail []clauseSyntax `parser:"  @@ (Comma @@)*)?"`
	Operands lexer.Token    `parser:"| @Operands"`
	ArgsTail []clauseSyntax `parser:"  (Comma @@)*"`
	Clauses  []clauseSyntax `parser:"| @@ (Comma @@)* )?"`
	Attrs    lexer.Token    `parser:"@Dict?"`
	Types    lexer.Token    `parser:"( Colon @Types"`
	Arrow    lexer.Token    `parser:"| @Arrow"`
	Out      lexer.Token    `parser:"  @Types )?"`
	Regions  []regionSyntax `parser:"@@*"`
}

type clauseSyntax struct {
	Clause lexer.Token `parser:"@Clause"`
}

type regionSyntax struct {
	Keyword lexer.Token `parser:"@Word?"`
	Body    lexer.Token `parser:"@Region"`
}

type funcSyntax struct {
	Name       lexer.Token `parser:"@Func"`
	Visibility lexer.Token `parser:"@Word?"`
	Symbol     lexer.Token `parser:"@Symbol"`
	Params     lexer.Token `parser:"@Paren"`
	Results    lexer.Token `parser:"(Arrow @Types)?"`
	Attrs      lexer.Token `parser:"(Attributes @Dict)?"`
	Body       lexer.Token `parser:"@Region?"`
}

type callSyntax struct {
	Name     lexer.Token `parser:"@Call"`
	Callee   lexer.Token `parser:"@Symbol"`
	Operands lexer.Token `parser:"@Paren"`
	Attrs    lexer.Token `parser:"@Dict?"`
	Types    lexer.Token `parser:"Colon @Types"`
}

type returnSyntax struct {
	Name     lexer.Token `parser:"@Return"`
	Attrs    lexer.Token `parser:"@Dict?"`
	Operands lexer.Token `parser:"(@Operands"`
	Types    lexer.Token `parser:"  Colon @Types)?"`
}

type moduleSyntax struct {
	Name   lexer.Token `parser:"@Module"`
	Symbol lexer.Token `parser:"@Symbol?"`
	Attrs  lexer.Token `parser:"(Attributes @Dict)?"`
	Body   lexer.Token `parser:"@Region"`
}

var skeletonParser = sync.OnceValue(func() *participle.Parser[opSyntax] {
	return participle.MustBuild[opSyntax](participle.Lexer(skeletonLexer{}), participle.UseLookahead(3))
})

// part is what a coarse token is to its op.
type part uint8

const (
	pResults part = iota
	pName
	pLead
	pOperands     // %x, %y
	pOperandParen // (%x, %y)
	pSuccs
	pProps
	pAttrs
	pTypes
	pArrow
	pLoc
	pVisibility
	pSymbol
	pParams
	pFuncResults
	nParts
)

// shape is the result of parsing a sequence of coarse token kinds: which token
// plays which part. The kinds decide it alone, and they repeat from op to op
// even more than types do, so a sequence is parsed once and its shape kept.
type shape struct {
	at      [nParts]int32 // index of the token plus one, 0 where absent
	clauses []int32       // indices of tokens
	bad     int           // index of the unexpected token, -1 if there is none
	want    string        // what the grammar wanted there
}

const (
	maxShapes   = 1 << 12 // kept shapes; ops in practice have some dozens
	maxShapeLen = 48      // tokens; longer sequences are parsed each time
)

var shapes = struct {
	sync.RWMutex
	m map[string]*shape
}{m: map[string]*shape{}}

// shapeOf is the shape of toks.
func shapeOf(toks []coarse) *shape {
	if len(toks) > maxShapeLen {
		return parseShape(toks)
	}
	var buf [maxShapeLen]byte
	key := buf[:len(toks)]
	for i, t := range toks {
		key[i] = byte(t.Kind)
	}
	shapes.RLock()
	s := shapes.m[string(key)]
	shapes.RUnlock()
	if s != nil {
		return s
	}
	s = parseShape(toks)
	shapes.Lock()
	defer shapes.Unlock()
	if len(shapes.m) >= maxShapes {
		clear(shapes.m)
	}
	shapes.m[string(key)] = s
	return s
}

func parseShape(toks []coarse) *shape {
	s := &shape{bad: -1}
	peek, err := lexer.Upgrade(&replay{toks: toks})
	if err == nil {
		var tree *opSyntax
		if tree, err = skeletonParser().ParseFromLexer(peek); err == nil {
			s.fill(tree)
			return s
		}
	}
	s.bad = len(toks)
	var unexpected *participle.UnexpectedTokenError
	if errors.As(err, &unexpected) {
		s.bad = unexpected.Unexpected.Pos.Offset
	}
	_, want, ok := strings.Cut(err.Error(), "(expected ")
	if ok {
		s.want = phrase(strings.TrimSuffix(want, ")"))
	}
	return s
}

func (s *shape) set(p part, t lexer.Token) {
	if t.Type != 0 {
		s.at[p] = int32(t.Pos.Offset + 1)
	}
}

func (s *shape) fill(t *opSyntax) {
	s.set(pResults, t.Results)
	s.set(pLoc, t.Loc)
	switch {
	case t.Generic != nil:
		g := t.Generic
		s.set(pName, g.Name)
		s.set(pOperandParen, g.Operands)
		s.set(pSuccs, g.Succs)
		s.set(pProps, g.Props)
		s.set(pAttrs, g.Attrs)
		s.set(pTypes, g.Types)
	case t.Dm != nil:
		d := t.Dm
		s.set(pName, d.Name)
		s.set(pLead, d.Lead)
		s.set(pOperands, d.LeadArgs)
		s.set(pOperands, d.Operands)
		s.set(pAttrs, d.Attrs)
		s.set(pTypes, d.Types)
		s.set(pArrow, d.Arrow)
		s.set(pTypes, d.Out)
		for _, list := range [][]clauseSyntax{d.LeadTail, d.ArgsTail, d.Clauses} {
			for _, c := range list {
				s.clauses = append(s.clauses, int32(c.Clause.Pos.Offset))
			}
		}
	case t.Func != nil:
		f := t.Func
		s.set(pName, f.Name)
		s.set(pVisibility, f.Visibility)
		s.set(pSymbol, f.Symbol)
		s.set(pParams, f.Params)
		s.set(pFuncResults, f.Results)
		s.set(pAttrs, f.Attrs)
	case t.Call != nil:
		c := t.Call
		s.set(pName, c.Name)
		s.set(pSymbol, c.Callee)
		s.set(pOperandParen, c.Operands)
		s.set(pAttrs, c.Attrs)
		s.set(pTypes, c.Types)
	case t.Return != nil:
		r := t.Return
		s.set(pName, r.Name)
		s.set(pAttrs, r.Attrs)
		s.set(pOperands, r.Operands)
		s.set(pTypes, r.Types)
	case t.Module != nil:
		m := t.Module
		s.set(pName, m.Name)
		s.set(pSymbol, m.Symbol)
		s.set(pAttrs, m.Attrs)
	}
}

// phrase describes what the grammar expected.
func phrase(want string) string {
	for _, p := range phrases {
		if strings.HasPrefix(want, p.token) {
			return p.words
		}
	}
	return ""
}

var phrases = []struct{ token, words string }{
	{"<colon>", "`:` and the op's type"},
	{"<types>", "a type"},
	{"<paren>", "a list in parentheses"},
	{"<operands>", "operands"},
	{"<symbol>", "a name such as `@main`"},
	{"<dict>", "a dictionary `{…}`"},
	{"<region>", "a region `{…}`"},
	{"<clause>", "an operand or `name = value`"},
	{"<comma>", "`,`"},
}
