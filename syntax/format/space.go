package format

import (
	"dmir/syntax/ast"
	"dmir/syntax/lex"
)

// context selects the rules by which the tokens inside a bracket are spaced.
type context uint8

const (
	inOp    context = iota // no bracket
	inPlain                // lists and dictionaries: canonical
	inArgs                 // arguments of a function or a block, resources: "%a: T"
	inArray                // array<i64: 1, 2>
	inKept                 // shapes, maps, locations: the author's spacing
)

func (p *printer) context(u *unit) context {
	if n := len(p.stack); n > u.floor {
		return p.stack[n-1].inside
	}
	return inOp
}

// enter is the context that t opens if it is a bracket.
func (p *printer) enter(u *unit, t token, text string) context {
	if less(t.Token, text) {
		return inOp
	}
	around := p.context(u)
	if u.op.Form == ast.Resource {
		return inArgs
	}
	switch text {
	case "<":
		switch {
		case p.before(t, '{'):
			return inPlain
		case p.prev.Kind == lex.Ident && p.textOf(p.prev) == "array":
			return inArray
		}
		return inKept
	case "(":
		first := around == inOp && !u.named
		if around == inOp {
			u.named = true
		}
		switch {
		case p.prev.Kind == lex.Ident && p.textOf(p.prev) == "loc":
			return inKept
		case first && (u.label || u.op.Func != nil):
			return inArgs
		}
	}
	if around == inKept || around == inArray {
		return inKept
	}
	return inPlain
}

// before reports whether c is the next character behind t that is not white
// space: what is laid out now must be read the same once the space is gone.
func (p *printer) before(t token, c byte) bool {
	i := lex.Run(p.text, t.End, len(p.text), lex.Space)
	return i < len(p.text) && p.text[i] == c
}

// spaced reports whether a space goes between the last token and t, which share
// a line. Where no rule speaks, the author's spacing stays: white space in MLIR
// is mostly, but not always, without meaning.
func (p *printer) spaced(u *unit, t token, text string) bool {
	prev := p.textOf(p.prev)
	if less(t.Token, text) || less(p.prev.Token, prev) {
		return true // so it stays a comparison
	}
	if p.closed {
		return text != ")" && text != "," && text != "]" && text != ">"
	}
	if !u.label && u.op.Form == ast.Custom {
		return t.blank
	}
	around := p.context(u)
	opens := p.opened // prev is an opening bracket
	switch {
	case merge(prev[len(prev)-1], text[0]), sigil(prev) && text[0] == '<':
		return t.blank
	case text == ",":
		return false
	case prev == ",":
		return true
	case opens && prev == "<":
		return false
	case text == ">" && len(p.stack) > u.floor && p.stack[len(p.stack)-1].char == '<':
		return false
	case around == inArray && text == ":":
		return false
	case around == inArray && prev == ":":
		return true
	case around == inKept || around == inArray:
		return t.blank
	case text == ")" || text == "]" || text == "}" || opens && (prev == "(" || prev == "[" || prev == "{"):
		return false
	case isOperator(text) || isOperator(prev):
		return true
	case !u.label && t.Start < u.op.Off+int(u.op.NameSpan.Start) && (text == ":" || prev == ":"):
		return false // %x:2 =
	case text == ":":
		return !u.label && around != inArgs || u.label && around == inPlain
	case prev == ":":
		return true
	case text == "::" || prev == "::":
		return t.blank && prev[0] != '@' && text[0] != '@'
	case text == "(":
		return p.spacedParen(u, t, prev)
	case text == "[":
		return t.blank && !(prev == ")" && u.op.Form == ast.Generic)
	case text == "{" || text == "<" && u.op.Form == ast.Generic && around == inOp && p.before(t, '{'):
		return true
	case prev == "}" || prev == ")" || prev == "]":
		return t.blank || t.Kind < lex.Arrow || t.Kind > lex.Op || sigil(text)
	}
	return t.blank
}

// spacedParen decides before "(": none behind the name of an op, a function or a
// block, one between an op's operands and its regions.
func (p *printer) spacedParen(u *unit, t token, prev string) bool {
	switch {
	case p.context(u) != inOp:
		return t.blank
	case prev == ")" || prev == "]" || prev == "}" || prev == ">":
		return t.blank || u.op.Form == ast.Generic
	case u.named:
		return t.blank
	case u.label, u.op.Form == ast.Generic && prev[0] == '"', u.op.Func != nil && prev[0] == '@':
		return false
	}
	return t.blank
}

// merge reports whether two tokens that end and begin like this could be read
// as other tokens without the white space between them.
func merge(a, b byte) bool {
	switch b {
	case ':':
		return a == ':'
	case '=':
		return a == '=' || a == '<' || a == '>'
	case '>', '}':
		return a == '-'
	case '-':
		return a == '{'
	}
	return false
}

// less reports whether a token is a "<" that compares.
func less(t lex.Token, text string) bool { return t.Kind == lex.Op && text == "<" }

// sigil reports whether a token is a name with # or !, or one of these alone.
func sigil(text string) bool { return text[0] == '!' || text[0] == '#' && text != "#-}" }

func isOperator(text string) bool {
	switch text {
	case "=", "->", "==", "<=", ">=":
		return true
	}
	return false
}
