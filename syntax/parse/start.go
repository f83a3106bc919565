package parse

import "strings"

// defKind is what stands right of "=" where a list of values is left of it.
type defKind uint8

const (
	noDef  defKind = iota // no such list
	anyDef                // something that is not clearly an op
	weak                  // a bare word: %x = call, but also %i = max in a loop's header
	strong                // a dialect's op, or a generic one
)

// def looks whether t begins "%a:2, %b = …".
func (s *scanner) def(t token) defKind {
	if t.start < s.noDef {
		return noDef
	}
	c := s.behind(t)
	u := s.read(&c)
	for {
		if u.kind == kColon {
			if u = s.read(&c); u.kind != kNumber {
				break
			}
			u = s.read(&c)
		}
		if u.kind == kEq {
			u = s.read(&c)
			if u.kind == kEOF || u.first && u.kind != kString && u.kind != kIdent {
				return weak // a name to come
			}
			switch u.kind {
			case kString:
				return strong
			case kIdent:
				if dotted(c.text[u.start:u.end]) {
					return strong
				}
				return weak
			}
			return anyDef
		}
		if u.kind != kComma {
			break
		}
		if u = s.read(&c); u.kind != kValue {
			break
		}
		u = s.read(&c)
	}
	// Every value in the list that was just read fails the same way: without
	// this, a list of n lines would be read n times.
	s.noDef = u.start
	return noDef
}

// behind is a cursor behind t, for looking ahead with read.
func (s *scanner) behind(t token) cursor {
	c := s.cur
	c.pos, c.line = t.end, false
	return c
}

// after is the token behind t.
func (s *scanner) after(t token) token {
	c := s.behind(t)
	return s.read(&c)
}

// open tells that more must follow the token, so that a line break after it
// does not end an op.
func open(k kind) bool {
	switch k {
	case kComma, kEq, kColon, kDColon, kArrow, kOp:
		return true
	}
	return false
}

// endsBefore reports whether the op ends before t, which is outside of brackets.
func (s *scanner) endsBefore(h *head, t token) bool {
	more := open(h.prev.kind)
	if !t.first {
		return !more && h.prev != h.name && s.startsInline(h, t)
	}
	if s.startsLine(h, t, more) {
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
		return h.sig || h.prev.kind != kIdent && h.prev.kind != kSymbol
	case fReturn, fBad:
		return true
	}
	return false
}

// continues reports whether a complete op may still go on with t.
func (s *scanner) continues(h *head, t token) bool {
	switch t.kind {
	case kLBrace, kArrow, kColon, kComma, kEq, kLAngle, kLParen, kLBrack, kRAngle, kRParen, kRBrack:
		return h.form != fBad || t.kind != kLBrace
	case kValue:
		return (h.form == fDm || h.form == fReturn) && !h.sig
	case kIdent:
		switch s.slice(t) {
		case "loc", "attributes":
			return true
		}
		return h.form == fDm && s.after(t).kind == kLBrace
	}
	return false
}

// startsLine reports whether t, the first token of its line, begins an op,
// another item or a block. more is set where the line before asks for more.
func (s *scanner) startsLine(h *head, t token, more bool) bool {
	switch t.kind {
	case kValue:
		k := s.def(t)
		return k == strong || k == weak && !more
	case kString:
		return s.after(t).kind == kLParen && (!more || h.prev.kind != kEq && dotted(s.slice(t))) && !s.quotes(h, t)
	case kHash, kBang:
		return s.after(t).kind == kEq
	case kIdent:
		next := s.after(t)
		if next.kind == kEq {
			return false
		}
		if dotted(s.slice(t)) {
			return !more || h.prev.kind != kEq && (next.kind == kValue || next.kind == kSymbol || next.kind == kString)
		}
		return s.builtin(t, next) || !more && s.shortName(h, t, next)
	case kLabel:
		return h.prev.kind != kComma && s.isLabel(t)
	case kResource:
		return true
	}
	return false
}

// shortName reports whether the word t begins an op that goes without the prefix
// of its dialect, as some dialects allow inside of their ops: it stands where
// the op before began. Where no op with such a name was seen, the op before has
// its type as well, and the word leads to what an op is about.
func (s *scanner) shortName(h *head, t, next token) bool {
	if !s.custom || s.indent != h.column {
		return false
	}
	if s.short {
		if follows(s.slice(t)) && !follows(s.slice(h.name)) {
			return false
		}
		return next.kind != kComma && next.kind != kColon
	}
	switch next.kind {
	case kValue, kSymbol, kString:
		return h.sig
	}
	return false
}

// quotes reports whether the string t, at the start of a line that is indented
// more than the op in h, is part of that op, which quotes the name of another:
// unlike a generic op, that has no type behind its lists. No more than a page of
// them is looked at.
func (s *scanner) quotes(h *head, t token) bool {
	const page = 4096
	if h.form != fCustom || h.sig || h.column < 0 || s.indent <= h.column {
		return false
	}
	c := s.behind(t)
	c.end = min(c.end, t.end+page)
	var br brackets
	for {
		u := s.read(&c)
		if u.kind == kEOF {
			return false
		}
		if br.depth() == 0 {
			switch u.kind {
			case kLParen, kLBrack, kLBrace, kLAngle:
			default:
				return u.kind == kIdent && !u.first
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
func (s *scanner) builtin(t, next token) bool {
	switch s.slice(t) {
	case "return":
		return next.kind != kComma && next.kind != kEq
	case "call":
		return next.kind == kSymbol
	case "module":
		return next.kind == kLBrace || next.kind == kSymbol || next.kind == kIdent && s.slice(next) == "attributes"
	case cast:
		return next.kind == kValue || next.kind == kIdent && s.slice(next) == "to"
	}
	return false
}

// startsInline reports whether t, in the middle of a line, begins an op.
func (s *scanner) startsInline(h *head, t token) bool {
	done := h.prev.kind == kRegion
	switch h.prev.kind {
	case kRParen, kRBrack, kRAngle, kRBrace, kValue, kNumber, kString, kBang, kHash, kSymbol, kRegion:
	case kIdent:
		w := s.slice(h.prev)
		if !h.sig && w != "true" && w != "false" {
			return false
		}
	default:
		return false
	}
	switch t.kind {
	case kValue:
		return s.def(t) == strong
	case kString:
		return (h.sig || done) && dotted(s.slice(t)) && s.after(t).kind == kLParen
	case kIdent:
		next := s.after(t)
		if next.kind == kEq || next.kind == kComma {
			return false
		}
		if dotted(s.slice(t)) {
			return h.sig || done || next.kind == kValue || next.kind == kSymbol || next.kind == kString
		}
		return s.builtin(t, next)
	case kLabel:
		return s.after(t).kind == kColon
	}
	return false
}

// strongStart reports whether t, the first token of its line but inside of
// brackets, surely begins an op, so that a bracket before it was never closed.
func (s *scanner) strongStart(t token) bool {
	switch t.kind {
	case kValue:
		return s.def(t) == strong
	case kString:
		if dotted(s.slice(t)) && s.after(t).kind == kLParen {
			c := s.behind(s.after(t))
			k := s.read(&c).kind
			return k == kValue || k == kRParen
		}
	case kIdent:
		name := s.slice(t)
		next := s.after(t)
		switch {
		case name == "func.func" || name == "return" || name == "func.return":
			return next.kind != kEq && next.kind != kComma
		case dotted(name):
			return next.kind == kValue || next.kind == kSymbol && strings.HasPrefix(name, "dm.")
		}
	}
	return false
}

// isLabel looks whether t begins "^bb:" or "^bb(…):". A list of arguments
// longer than a page is taken for one without looking at its end.
func (s *scanner) isLabel(t token) bool {
	const page = 4096
	c := s.behind(t)
	switch s.read(&c).kind {
	case kColon:
		return true
	case kLParen:
	default:
		return false
	}
	c.end = min(c.end, t.end+page)
	for deep := 1; deep > 0; {
		switch s.read(&c).kind {
		case kLParen:
			deep++
		case kRParen:
			deep--
		case kEOF:
			return c.end == t.end+page
		}
	}
	return s.read(&c).kind == kColon
}

// isRegion reports whether the brace t opens a region, as opposed to a
// dictionary or whatever else a dialect puts into braces.
func (s *scanner) isRegion(h *head, t token) bool {
	top := h.br.top()
	if top == kLBrace || top == kLAngle {
		return false
	}
	prevWord := ""
	if h.prev.kind == kIdent {
		prevWord = s.slice(h.prev)
	}
	switch {
	case s.isForced(t):
		return true
	case prevWord == "attributes" || h.prev.kind == kEq && (h.form != fCustom || top != kEOF):
		return false
	case (prevWord == "else" || prevWord == "do") && top == kEOF && len(h.op.Regions) > 0:
		return true
	}
	switch h.form {
	case fAlias, fReturn, fCall:
		return false
	case fGeneric:
		return top == kLParen && (h.prev.kind == kLParen || h.prev.kind == kComma)
	case fFunc, fModule:
		if top != kEOF { // an argument's dictionary, or the body after a ")" was forgotten
			if !s.holdsOps(t) {
				return false
			}
			s.unclosed(h)
		}
		return true
	case fDm:
		if top != kEOF {
			return false
		}
		return s.holdsOps(t) || (h.sig || len(h.op.Regions) > 0) && !s.isDict(t)
	case fBad:
		return s.holdsOps(t)
	}
	return s.holdsOps(t) || (top == kEOF || prevWord != "") && s.loneOp(t) ||
		top == kEOF && (h.prev.kind != kEq && s.emptyBody(h, t) || s.holdsShort(t))
}

// isDict looks whether the text behind the brace t begins like a dictionary.
func (s *scanner) isDict(t token) bool {
	a := s.after(t)
	switch b := s.after(a); a.kind {
	case kIdent, kString:
		return b.kind == kEq || b.kind == kComma || b.kind == kRBrace && !terminator(s.slice(a))
	}
	return false
}

// loneOp looks whether the braces at t hold one dotted name on a line of its
// own: so is the op of a block written, and hardly ever a unit attribute.
func (s *scanner) loneOp(t token) bool {
	a := s.after(t)
	b := s.after(a)
	return a.kind == kIdent && a.first && dotted(s.slice(a)) && b.kind == kRBrace && b.first
}

// holdsOps looks whether the text behind the brace t begins with an op or a label.
func (s *scanner) holdsOps(t token) bool {
	c := s.behind(t)
	a := s.read(&c)
	b := s.after(a)
	switch a.kind {
	case kLabel:
		return b.kind == kColon || b.kind == kLParen
	case kValue:
		return s.def(a) >= weak
	case kString:
		return b.kind == kLParen
	case kIdent:
		name := s.slice(a)
		if b.kind == kEq || b.kind == kComma {
			return false
		}
		if b.kind == kRBrace {
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
func (s *scanner) holdsShort(t token) bool {
	c := s.behind(t)
	a := s.read(&c)
	if a.kind != kIdent || !a.first || dotted(s.slice(a)) {
		return false
	}
	b := s.read(&c)
	switch b.kind {
	case kValue, kSymbol, kString, kIdent, kLabel, kLBrace, kLParen, kLBrack, kLAngle, kHash, kBang:
	case kRBrace:
		return b.first && terminator(s.slice(a))
	default:
		return false
	}
	last, deep := a, 0
	for ; !b.first && b.kind != kEOF; b = s.read(&c) {
		switch last = b; b.kind {
		case kLBrace:
			deep++
		case kRBrace:
			if deep--; deep < 0 {
				return false
			}
		}
	}
	return last.kind == kLBrace || !open(last.kind) && b.kind != kRBrace
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
func (s *scanner) emptyBody(h *head, t token) bool {
	close := s.after(t)
	return close.kind == kRBrace && (close.first || h.symbol && len(h.op.Regions) == 0)
}
