package parse

import (
	"slices"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// customScan reads an op whose form dmir has no grammar for. The rules below
// are how MLIR's dialects introduce values in their own forms:
//
//	%i = …                       in or outside of brackets (loops, iter_args)
//	%i in …, %i : T = …          in front of a region
//	(%i, %j) = …, (%i, %j) in …  (parallel loops), with types or without
//	case a(%x) { … }             (matches)
//	… as %x, … -> %x             (captures)
//	(%a: T, %b: T) { … }         typed lists before a region whose entry block has no label
//	@f(%a: T, in %b : T)         lists of a function-like op
//
// Every other %name is a use.
type customScan struct {
	src  string
	op   *ast.Op
	lex  coarseLexer
	toks []lex.Token
	pair []int  // index of the other bracket, for brackets
	deep []int  // how many brackets are open around the token
	body []bool // whether what follows the token, types and lists aside, is a region without arguments of its own
	br   brackets
}

func (s *customScan) scan(op *ast.Op, src string) {
	s.src, s.op = src, op
	s.toks, s.pair, s.deep, s.body = s.toks[:0], s.pair[:0], s.deep[:0], s.body[:0]
	s.br.reset()
	s.lex.src, s.lex.op, s.lex.cur = src, op, lex.New(src, 0, len(src))
	s.tokens()
	i := s.results()
	if i+1 < len(s.toks) && (s.toks[i].Kind == lex.Bang || s.toks[i].Kind == lex.Hash) && s.toks[i+1].Kind == lex.Eq {
		op.Name, op.NameSpan = src[s.toks[i].Start:s.toks[i].End], rel(s.toks[i].Start, s.toks[i].End) // an alias, which its name defines and does not use
		op.Own().Aliases = slices.DeleteFunc(op.Aliases, func(a ast.Alias) bool { return a.Span == op.NameSpan })
	} else if i < len(s.toks) {
		if t := s.toks[i]; t.Kind == lex.Ident || t.Kind == lex.String {
			op.Name, op.NameSpan = Unquote(src[t.Start:t.End]), rel(t.Start, t.End)
			i++
		}
	}
	s.parts(i)
	s.values(i)
	s.symbolDef(i)
}

// tokens reads all tokens and pairs the brackets.
func (s *customScan) tokens() {
	for t := s.lex.next(); t.Kind != lex.EOF; t = s.lex.next() {
		i := len(s.toks)
		other := -1
		switch t.Kind {
		case lex.LParen, lex.LBrack, lex.LBrace, lex.LAngle:
			s.br.push(lex.Token{Kind: t.Kind, Span: source.Span{Start: i}}) // the index stands in for the place
		case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
			if opener, _, ok := s.br.pop(t); ok {
				other = opener.Start
				s.pair[other] = i
			}
		}
		s.toks = append(s.toks, t)
		s.pair = append(s.pair, other)
		s.deep = append(s.deep, s.br.depth())
	}
}

func (s *customScan) kind(i int) lex.Kind {
	if i < 0 || i >= len(s.toks) {
		return lex.EOF
	}
	return s.toks[i].Kind
}

func (s *customScan) text(i int) string {
	if i < 0 || i >= len(s.toks) {
		return ""
	}
	return s.src[s.toks[i].Start:s.toks[i].End]
}

// over is the index of the bracket that closes the one at i, and i for anything
// else. Looking at a list by way of it reads every token once for the list that
// holds it, and not once for every list around.
func (s *customScan) over(i int) int { return max(i, s.pair[i]) }

// unclosed reports whether a bracket opens at i that nothing closes.
func (s *customScan) unclosed(i int) bool {
	switch s.kind(i) {
	case lex.LParen, lex.LBrack, lex.LBrace, lex.LAngle:
		return s.pair[i] < 0
	}
	return false
}

// results reads "%a:2, %b =" if the op begins so and returns the index behind it.
func (s *customScan) results() int {
	if s.kind(0) != lex.Value {
		return 0
	}
	for i := range s.toks {
		switch s.toks[i].Kind {
		case lex.Value, lex.Comma, lex.Colon, lex.Number:
		case lex.Eq:
			if r, err := parseResults(nil, s.src, s.toks[0].Start, s.toks[i].End); err == nil {
				s.op.Results = r
				return i + 1
			}
			return 0
		default:
			return 0
		}
	}
	return 0
}

// parts finds the dictionary, the type, the location and the successors.
func (s *customScan) parts(from int) {
	op := s.op
	colon, last := -1, len(s.toks)
	for i := from; i < len(s.toks); i++ {
		t := s.toks[i]
		top := s.deep[i] == 0
		switch t.Kind {
		case lex.LBrace:
			if s.deep[i] == 1 && op.Attrs.Empty() && s.pair[i] >= 0 {
				op.Attrs = rel(t.Start, s.toks[s.pair[i]].End)
			}
		case lex.Colon:
			if top {
				colon, last = i, len(s.toks)
			}
		case lex.Eq:
			if top && colon >= 0 {
				last = min(last, i)
				if s.kind(i+1) == lex.Region {
					last = min(last, i-1) // the word in front introduces it
				}
			}
		case lex.Label:
			op.Own().Succs = append(op.Succs, s.successor(i))
		case lex.Ident:
			if top && s.text(i) == "loc" && s.kind(i+1) == lex.LParen && s.pair[i+1] == len(s.toks)-1 {
				op.Loc = rel(t.Start, s.toks[len(s.toks)-1].End)
			}
		}
	}
	if colon < 0 || colon+1 >= len(s.toks) {
		return
	}
	end := colon
	for i := colon + 1; i < last; i++ {
		t := s.toks[i]
		if s.deep[i] == 0 && t.Kind == lex.Region || s.deep[i] == 1 && t.Kind == lex.LBrace || op.Loc.Start > 0 && int32(t.Start) >= op.Loc.Start {
			break
		}
		end = i
	}
	if end > colon {
		op.Sig = rel(s.toks[colon+1].Start, s.toks[end].End)
	}
}

func (s *customScan) successor(i int) ast.Successor {
	u := ast.Successor{Name: s.text(i), Span: rel(s.toks[i].Start, s.toks[i].End)}
	if s.kind(i+1) == lex.LParen && s.pair[i+1] >= 0 {
		for j := i + 2; j < s.pair[i+1] && s.kind(j) != lex.Colon; j = s.over(j) + 1 {
			if s.kind(j) == lex.Value {
				u.Args = append(u.Args, makeUse(s.src, s.toks[j]))
			}
		}
	}
	return u
}

// values separates the definitions among the %names from the uses.
func (s *customScan) values(from int) {
	likeFunc := s.likeFunc(from)
	defs := -1  // index of the ")" up to which typed names are definitions
	lists := -1 // index of the ")" up to which all names are definitions
	for i := from; i < len(s.toks); i++ {
		switch s.kind(i) {
		case lex.LParen:
			if i < defs || i < lists || s.pair[i] < 0 {
				continue
			}
			switch {
			case s.namesLoop(i), s.op.Name == "case" && s.kind(s.pair[i]+1) == lex.Region:
				lists = s.pair[i]
			case likeFunc && s.deep[i] == 1 || lists < 0 && s.namesBlock(i):
				defs = s.pair[i]
			}
		case lex.Value:
			def := s.kind(i+1) == lex.Eq || s.kind(i-1) == lex.Arrow || s.text(i-1) == "as" || i < lists ||
				i < defs && s.kind(i+1) == lex.Colon || s.deep[i] == 0 && len(s.op.Regions) > 0 && s.counts(i)
			if def && strings.IndexByte(s.text(i), '#') < 0 {
				s.define(i)
			} else {
				s.op.Operands = append(s.op.Operands, makeUse(s.src, s.toks[i]))
			}
		}
	}
}

// define adds the value at i to the definitions, with its type if one follows.
func (s *customScan) define(i int) {
	t := s.toks[i]
	a := ast.BlockArg{Name: s.text(i), Span: rel(t.Start, t.End)}
	if s.kind(i+1) == lex.Colon {
		level := s.deep[i]
		end := -1
		for j := i + 2; j < len(s.toks); j++ {
			k := s.kind(j)
			if s.text(j) == "loc" && s.kind(j+1) == lex.LParen && s.pair[j+1] > 0 {
				a.Loc = rel(s.toks[j].Start, s.toks[s.pair[j+1]].End)
				break
			}
			if s.deep[j] < level || k == lex.Comma || k == lex.Eq || k == lex.Region || k == lex.Value || k == lex.LBrace || s.unclosed(j) {
				break
			}
			j = s.over(j)
			end = j
		}
		if end > 0 {
			a.Type = rel(s.toks[i+2].Start, s.toks[end].End)
		}
		if s.kind(end+1) == lex.LBrace && end > 0 && s.pair[end+1] > 0 {
			a.Attrs = rel(s.toks[end+1].Start, s.toks[s.pair[end+1]].End)
		}
	}
	s.op.Own().Defs = append(s.op.Defs, a)
}

// counts reports whether "in" or "=" follows the value at i, with a type between
// or not.
func (s *customScan) counts(i int) bool {
	j := i + 1
	if s.kind(j) == lex.Colon {
		for j++; s.text(j) != "in" && s.kind(j) != lex.Eq; j++ {
			switch s.kind(j) {
			case lex.Ident, lex.Bang, lex.Hash:
				if k := s.kind(j - 1); k != lex.Colon && k != lex.Arrow {
					return false // a word behind the type
				}
			case lex.LAngle, lex.LParen, lex.LBrack, lex.Arrow:
			default:
				return false
			}
			if s.unclosed(j) {
				return false
			}
			j = s.over(j)
		}
	}
	return s.kind(j) == lex.Eq || s.text(j) == "in"
}

// namesLoop reports whether the list that opens at i is "(%i, %j)" followed by
// "=" or "in", with a type between or not, or "(%i: T, %j: T)" followed by "=" in
// an op with a region.
func (s *customScan) namesLoop(i int) bool {
	end := s.pair[i]
	if end == i+1 {
		return false
	}
	if s.kind(end+1) == lex.Eq && len(s.op.Regions) > 0 && s.typedNames(i) {
		return true
	}
	for j := i + 1; j < end; j++ {
		if k := s.kind(j); k != lex.Value && k != lex.Comma {
			return false
		}
	}
	j := end + 1
	if s.kind(j) == lex.Colon {
		for j++; j < len(s.toks) && s.kind(j) != lex.Eq; j++ {
			j = s.over(j)
			if k := s.kind(j); s.deep[j] < s.deep[end] || k != lex.Ident && k != lex.Bang && k != lex.Comma && k != lex.RAngle {
				return false
			}
		}
	}
	return s.kind(j) == lex.Eq || s.text(j) == "in"
}

// typedNames reports whether the list that opens at i is "(%a: T, …)", all names
// with a type of their own.
func (s *customScan) typedNames(i int) bool {
	start := true
	for j := i + 1; j < s.pair[i]; j = s.over(j) + 1 {
		k := s.kind(j)
		if start && (k != lex.Value || s.kind(j+1) != lex.Colon) {
			return false
		}
		start = s.deep[j] == s.deep[i] && k == lex.Comma
	}
	return true
}

// namesBlock reports whether the list that opens at i is "(%a: T, …)", all
// names with a type of their own, and leads to a region whose entry block has
// no arguments of its own.
func (s *customScan) namesBlock(i int) bool {
	end := s.pair[i]
	if s.kind(i-1) == lex.Ident && s.toks[i-1].End == s.toks[i].Start && s.toks[i-1].Start > int(s.op.NameSpan.Start) {
		switch s.text(i - 1) { // keyword(…) lists operands, but for these
		case "reducer", "count", "body":
		default:
			return false
		}
	}
	return end != i+1 && s.leadsToBody(end+1) && s.typedNames(i)
}

// leadsToBody reports whether only types and lists stand between the token at i
// and a region whose entry block has no arguments of its own. The answers for
// all tokens are computed in one pass from the end, on first use.
func (s *customScan) leadsToBody(i int) bool {
	if len(s.op.Regions) == 0 || i >= len(s.toks) {
		return false
	}
	if len(s.body) == 0 {
		s.body = slices.Grow(s.body, len(s.toks)+1)[:len(s.toks)+1]
		s.body[len(s.toks)] = false
		for j := len(s.toks) - 1; j >= 0; j-- {
			s.body[j] = s.body[j+1]
			if s.deep[j] > 0 {
				continue
			}
			switch s.kind(j) {
			case lex.Region:
				s.body[j] = !s.hasEntryArgs(s.toks[j].Start)
			case lex.RParen, lex.RBrace, lex.RBrack, lex.RAngle, lex.Arrow, lex.Bang, lex.Ident, lex.Hash:
			default:
				s.body[j] = false
			}
		}
	}
	return s.body[i]
}

func (s *customScan) hasEntryArgs(open int) bool {
	r := regionAt(s.op, open)
	return r != nil && len(r.Blocks) > 0 && len(r.Blocks[0].Args) > 0
}

// likeFunc reports whether the op defines a symbol that takes arguments:
// "hw.module private @m(…) { … }", but not "foo.call @f(%x : t)".
func (s *customScan) likeFunc(from int) bool {
	i := s.defined(from)
	if i < 0 {
		return false
	}
	return len(s.op.Regions) > 0 || i > from || strings.Contains(s.op.Name, "func") || strings.Contains(s.op.Name, "module")
}

// defined is the index of the @name behind the op's name and keywords that the
// op may define, -1 if there is none or the op calls it.
func (s *customScan) defined(from int) int {
	i := from
	for s.kind(i) == lex.Ident || s.kind(i) == lex.String {
		i++
	}
	if s.kind(i) != lex.Symbol || len(s.op.Results) > 0 {
		return -1
	}
	for _, w := range []string{"call", "launch", "return"} {
		if strings.Contains(s.op.Name, w) {
			return -1
		}
	}
	return i
}

// symbolDef marks the name that the op defines.
func (s *customScan) symbolDef(from int) {
	i := s.defined(from)
	if i < 0 {
		return
	}
	last := s.op.Name[strings.LastIndexByte(s.op.Name, '.')+1:]
	defines := len(s.op.Regions) > 0
	switch strings.Trim(s.text(from), `"`) {
	case "private", "public", "nested":
		defines = true
	}
	for _, w := range []string{"func", "module", "global", "extern", "component", "symbol", "decl", "machine", "mesh", "table", "variable"} {
		defines = defines || strings.Contains(strings.ToLower(last), w)
	}
	if !defines {
		return
	}
	for j := range s.op.Symbols {
		if int(s.op.Symbols[j].Span.Start) == s.toks[i].Start {
			s.op.Symbols[j].Def = true
		}
	}
}
