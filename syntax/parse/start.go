package parse

import (
	"strings"

	"dmir/syntax/lex"
)

// defKind is what stands right of "=" where a list of values is left of it.
type defKind uint8

const (
	noDef  defKind = iota // no such list
	anyDef                // something that is not clearly an op
	weak                  // a bare word: %x = call, but also %i = max in a loop's header
	strong                // a dialect's op, or a generic one
)

// def looks whether t begins "%a:2, %b = …".
func (s *scanner) def(t lex.Token) defKind {
	if t.Start < s.noDef {
		return noDef
	}
	c := s.behind(t)
	u := s.read(&c)
	for {
		if u.Kind == lex.Colon {
			if u = s.read(&c); u.Kind != lex.Number {
				break
			}
			u = s.read(&c)
		}
		if u.Kind == lex.Eq {
			u = s.read(&c)
			if u.Kind == lex.EOF || u.First && u.Kind != lex.String && u.Kind != lex.Ident {
				return weak // a name to come
			}
			switch u.Kind {
			case lex.String:
				return strong
			case lex.Ident:
				if dotted(c.Text[u.Start:u.End]) {
					return strong
				}
				return weak
			}
			return anyDef
		}
		if u.Kind != lex.Comma {
			break
		}
		if u = s.read(&c); u.Kind != lex.Value {
			break
		}
		u = s.read(&c)
	}
	// Every value in the list that was just read fails the same way: without
	// this, a list of n lines would be read n times.
	s.noDef = u.Start
	return noDef
}

// behind is a cursor behind t, for looking ahead with read.
func (s *scanner) behind(t lex.Token) lex.Cursor {
	c := s.cur
	c.Pos, c.Line = t.End, false
	return c
}

// after is the token behind t.
func (s *scanner) after(t lex.Token) lex.Token {
	c := s.behind(t)
	return s.read(&c)
}

// open tells that more must follow the token, so that a line break after it
// does not end an op.
func open(k lex.Kind) bool {
	switch k {
	case lex.Comma, lex.Eq, lex.Colon, lex.DColon, lex.Arrow, lex.Op:
		return true
	}
	return false
}

// endsBefore reports whether the op ends before t, which is outside of brackets.
func (s *scanner) endsBefore(h *head, t lex.Token) bool {
	more := open(h.prev.Kind)
	if !t.First {
		return !more && h.prev != h.name && s.startsInline(h, t)
	}
	if s.startsLine(h, t, more) || len(h.op.Regions) == 0 && s.nextRegion(h) {
		return true
	}
	return !more && h.complete() && !s.continues(h, t)
}

// complete reports whether the op, in a form that dmir knows and with no bracket
// open, needs no more.
func (h *head) complete() bool {
	switch h.form {
	case fGeneric, fDm, fCall, fModule, fAlias:
		return h.prev != h.name
	case fFunc:
		return h.sig || h.prev.Kind != lex.Ident && h.prev.Kind != lex.Symbol
	case fReturn, fBad:
		return true
	}
	return false
}

// continues reports whether a complete op may still go on with t.
func (s *scanner) continues(h *head, t lex.Token) bool {
	switch t.Kind {
	case lex.LBrace, lex.Arrow, lex.Colon, lex.Comma, lex.Eq, lex.LAngle, lex.LParen, lex.LBrack, lex.RAngle, lex.RParen, lex.RBrack:
		return h.form != fBad || t.Kind != lex.LBrace
	case lex.Value:
		return (h.form == fDm || h.form == fReturn) && !h.sig
	case lex.Ident:
		switch s.slice(t) {
		case "loc", "attributes":
			return true
		}
		return h.form == fDm && s.after(t).Kind == lex.LBrace
	}
	return false
}

// startsLine reports whether t, the first token of its line, begins an op,
// another item or a block. more is set where the line before asks for more.
func (s *scanner) startsLine(h *head, t lex.Token, more bool) bool {
	switch t.Kind {
	case lex.Value:
		k := s.def(t)
		return k == strong || k == weak && !more
	case lex.String:
		return s.after(t).Kind == lex.LParen && (!more || h.prev.Kind != lex.Eq && dotted(s.slice(t))) && !s.quotes(h, t)
	case lex.Hash, lex.Bang:
		return s.after(t).Kind == lex.Eq
	case lex.Ident:
		next := s.after(t)
		if next.Kind == lex.Eq {
			return false
		}
		if dotted(s.slice(t)) {
			return !more || h.prev.Kind != lex.Eq && (next.Kind == lex.Value || next.Kind == lex.Symbol || next.Kind == lex.String)
		}
		return s.builtin(t, next) || !more && s.shortName(h, t, next)
	case lex.Label:
		return h.prev.Kind != lex.Comma && s.isLabel(t)
	case lex.Resource:
		return true
	}
	return false
}

// shortName reports whether the word t begins an op that goes without the prefix
// of its dialect, as some dialects allow inside of their ops: it stands where
// the op before began, or further to the left. Where no op with such a name was seen,
// the op before has its type as well, and the word leads to what an op is about.
func (s *scanner) shortName(h *head, t, next lex.Token) bool {
	if !s.custom || s.indent > h.column {
		return false
	}
	if s.short {
		if follows(s.slice(t)) && !follows(s.slice(h.name)) {
			return false
		}
		return next.Kind != lex.Comma && next.Kind != lex.Colon
	}
	switch next.Kind {
	case lex.Value, lex.Symbol, lex.String:
		return h.sig
	}
	return false
}

// quotes reports whether the string t, at the start of a line that is indented
// more than the op in h, is part of that op, which quotes the name of another:
// unlike a generic op, that has no type behind its lists. No more than a page of
// them is looked at.
func (s *scanner) quotes(h *head, t lex.Token) bool {
	const page = 4096
	if h.form != fCustom || h.sig || h.column < 0 || s.indent <= h.column {
		return false
	}
	c := s.behind(t)
	c.End = min(c.End, t.End+page)
	var br brackets
	for {
		u := s.read(&c)
		if u.Kind == lex.EOF {
			return false
		}
		if br.depth() == 0 {
			switch u.Kind {
			case lex.LParen, lex.LBrack, lex.LBrace, lex.LAngle:
			default:
				return u.Kind == lex.Ident && !u.First
			}
		}
		br.track(u)
	}
}

// follows reports whether a word goes on with an op: a part of it begins there.
func follows(word string) bool {
	switch word {
	case "else", "case", "default", "attributes", "loc":
		return true
	}
	return false
}

// builtin reports whether the word t begins a builtin op.
func (s *scanner) builtin(t, next lex.Token) bool {
	switch s.slice(t) {
	case "return":
		return next.Kind != lex.Comma && next.Kind != lex.Eq
	case "call":
		return next.Kind == lex.Symbol
	case "module":
		return next.Kind == lex.LBrace || next.Kind == lex.Symbol || next.Kind == lex.Ident && s.slice(next) == "attributes"
	case cast:
		return next.Kind == lex.Value || next.Kind == lex.Ident && s.slice(next) == "to"
	}
	return false
}

// startsInline reports whether t, in the middle of a line, begins an op.
func (s *scanner) startsInline(h *head, t lex.Token) bool {
	done := h.prev.Kind == lex.Region
	switch h.prev.Kind {
	case lex.RParen, lex.RBrack, lex.RAngle, lex.RBrace, lex.Value, lex.Number, lex.String, lex.Bang, lex.Hash, lex.Symbol, lex.Region:
	case lex.Ident:
		w := s.slice(h.prev)
		if !h.sig && w != "true" && w != "false" {
			return false
		}
	default:
		return false
	}
	switch t.Kind {
	case lex.Value:
		return s.def(t) == strong
	case lex.String:
		return (h.sig || done) && dotted(s.slice(t)) && s.after(t).Kind == lex.LParen
	case lex.Ident:
		next := s.after(t)
		if next.Kind == lex.Eq || next.Kind == lex.Comma {
			return false
		}
		if dotted(s.slice(t)) {
			return h.sig || done || next.Kind == lex.Value || next.Kind == lex.Symbol || next.Kind == lex.String
		}
		return s.builtin(t, next)
	case lex.Label:
		return s.after(t).Kind == lex.Colon
	}
	return false
}

// strongStart reports whether t, the first token of its line but inside of
// brackets, surely begins an op, so that a bracket before it was never closed.
func (s *scanner) strongStart(t lex.Token) bool {
	switch t.Kind {
	case lex.Value:
		return s.def(t) == strong
	case lex.Bang, lex.Hash:
		return s.after(t).Kind == lex.Eq // an alias
	case lex.String:
		if dotted(s.slice(t)) && s.after(t).Kind == lex.LParen {
			c := s.behind(s.after(t))
			k := s.read(&c).Kind
			return k == lex.Value || k == lex.RParen
		}
	case lex.Ident:
		name := s.slice(t)
		next := s.after(t)
		switch {
		case name == "func.func" || name == "return" || name == "func.return":
			return next.Kind != lex.Eq && next.Kind != lex.Comma
		case dotted(name):
			return next.Kind == lex.Value || next.Kind == lex.Symbol && strings.HasPrefix(name, "dm.")
		}
	}
	return false
}

// isLabel looks whether t begins "^bb:" or "^bb(…):". A list of arguments
// longer than a page is taken for one without looking at its end.
func (s *scanner) isLabel(t lex.Token) bool {
	const page = 4096
	c := s.behind(t)
	switch s.read(&c).Kind {
	case lex.Colon:
		return true
	case lex.LParen:
	default:
		return false
	}
	c.End = min(c.End, t.End+page)
	for deep := 1; deep > 0; {
		switch s.read(&c).Kind {
		case lex.LParen:
			deep++
		case lex.RParen:
			deep--
		case lex.EOF:
			return c.End == t.End+page
		}
	}
	return s.read(&c).Kind == lex.Colon
}

// isRegion reports whether the brace t opens a region, as opposed to a
// dictionary or whatever else a dialect puts into braces.
func (s *scanner) isRegion(h *head, t lex.Token) bool {
	top := h.br.top()
	own := h.form == fDm || h.form == fFunc || h.form == fModule // what opens a region is known
	if (top == lex.LBrace || top == lex.LAngle) && !(own && h.prev.Kind != lex.LAngle && s.after(t).First) {
		return false
	}
	prevWord := ""
	if h.prev.Kind == lex.Ident {
		prevWord = s.slice(h.prev)
	}
	switch {
	case s.isForced(t):
		return true
	case prevWord == "attributes" || h.prev.Kind == lex.Eq && (h.form != fCustom || top != lex.EOF):
		return false
	case (prevWord == "else" || prevWord == "do") && top == lex.EOF && len(h.op.Regions) > 0:
		return true
	}
	switch h.form {
	case fAlias, fReturn, fCall:
		return false
	case fGeneric:
		return top == lex.LParen && (h.prev.Kind == lex.LParen || h.prev.Kind == lex.Comma)
	case fFunc, fModule, fDm:
		if top != lex.EOF { // a dictionary, or the region after a ")" or ">" was forgotten
			if !s.holdsOps(t) {
				return false
			}
			s.unclosed(h)
			return true
		}
		if h.form != fDm {
			return true
		}
		return s.holdsOps(t) || (h.sig || len(h.op.Regions) > 0) && !s.isDict(t)
	case fBad:
		return s.holdsOps(t)
	}
	return s.holdsOps(t) || (top == lex.EOF || prevWord != "") && s.loneOp(t) ||
		top == lex.EOF && (h.prev.Kind != lex.Eq && s.emptyBody(h, t) || s.holdsShort(t))
}

// isDict looks whether the text behind the brace t begins like a dictionary.
func (s *scanner) isDict(t lex.Token) bool {
	a := s.after(t)
	switch b := s.after(a); a.Kind {
	case lex.Ident, lex.String:
		return b.Kind == lex.Eq || b.Kind == lex.Comma || b.Kind == lex.RBrace && !terminator(s.slice(a))
	}
	return false
}

// loneOp looks whether the braces at t hold one dotted name on a line of its
// own: so is the op of a block written, and hardly ever a unit attribute.
func (s *scanner) loneOp(t lex.Token) bool {
	a := s.after(t)
	b := s.after(a)
	return a.Kind == lex.Ident && a.First && dotted(s.slice(a)) && b.Kind == lex.RBrace && b.First
}

// holdsOps looks whether the text behind the brace t begins with an op or a label.
func (s *scanner) holdsOps(t lex.Token) bool {
	c := s.behind(t)
	a := s.read(&c)
	b := s.after(a)
	switch a.Kind {
	case lex.Label:
		return b.Kind == lex.Colon || b.Kind == lex.LParen
	case lex.Value:
		return s.def(a) >= weak
	case lex.String:
		return b.Kind == lex.LParen
	case lex.Ident:
		name := s.slice(a)
		if b.Kind == lex.Eq || b.Kind == lex.Comma {
			return false
		}
		if b.Kind == lex.RBrace {
			return name == "return" || dotted(name) && terminator(name)
		}
		return dotted(name) || s.builtin(a, b)
	}
	return false
}

// holdsShort looks whether the text behind the brace t begins with an op that
// goes without the prefix of its dialect, or with another word of the dialect
// that leads to one: it has a line of its own, unlike the one thing in braces
// that make a list, and no comma at the end.
func (s *scanner) holdsShort(t lex.Token) bool {
	c := s.behind(t)
	a := s.read(&c)
	if a.Kind != lex.Ident || !a.First || dotted(s.slice(a)) {
		return false
	}
	b := s.read(&c)
	switch b.Kind {
	case lex.Value, lex.Symbol, lex.String, lex.Ident, lex.Label, lex.LBrace, lex.LParen, lex.LBrack, lex.LAngle, lex.Hash, lex.Bang:
	case lex.RBrace:
		return b.First && terminator(s.slice(a))
	default:
		return false
	}
	last, deep := a, 0
	for ; !b.First && b.Kind != lex.EOF; b = s.read(&c) {
		switch last = b; b.Kind {
		case lex.LBrace:
			deep++
		case lex.RBrace:
			if deep--; deep < 0 {
				return false
			}
		}
	}
	return last.Kind == lex.LBrace || !open(last.Kind) && b.Kind != lex.RBrace
}

// terminator reports whether a lone name in braces is an op that ends a block
// rather than a unit attribute.
func terminator(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, w := range []string{"yield", "return", "terminator", "output", "done", "unreachable", "end"} {
		if strings.HasSuffix(last, w) {
			return true
		}
	}
	return false
}

// emptyBody reports whether the braces at t, if empty, are the body of a
// function-like op: "{}" on one line elsewhere is an empty dictionary.
func (s *scanner) emptyBody(h *head, t lex.Token) bool {
	close := s.after(t)
	return close.Kind == lex.RBrace && (close.First || h.symbol && len(h.op.Regions) == 0)
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
