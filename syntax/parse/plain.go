package parse

import (
	"strings"

	"dmir/syntax/ast"
)

// plainAttr reads the two kinds of attributes that differ from op to op, and so
// are not found among those read before: strings, and dictionaries, whose values
// mostly do repeat. It reads what is as it should be and leaves all else to the
// grammar, which gives the same tree, twenty times slower.
func plainAttr(text string) (*ast.AttrExpr, bool) {
	if len(text) < 2 {
		return nil, false
	}
	switch text[0] {
	case '"':
		c := newCursor(text, 0, len(text))
		if t := c.next(); t.kind == kString && t.end == len(text) {
			text = strings.Clone(text)
			return &ast.AttrExpr{Kind: ast.AString, Text: text, Str: Unquote(text)}, true
		}
	case '{':
		return plainDict(strings.Clone(text))
	}
	return nil, false
}

func plainDict(text string) (*ast.AttrExpr, bool) {
	c := newCursor(text, 0, len(text))
	c.next()
	a := &ast.AttrExpr{Kind: ast.ADict, Text: text}
	if t := c.peek(); t.kind == kRBrace {
		c.next()
		a.Text = text[:t.end]
		return a, c.peek().kind == kEOF
	}
	for {
		key := c.next()
		if key.kind != kIdent {
			return nil, false
		}
		e := ast.Entry{Key: text[key.start:key.end], Span: rel(key.start, key.end), Value: &ast.AttrExpr{Kind: ast.AUnit}}
		for _, before := range a.Entries {
			if before.Key == e.Key {
				return nil, false
			}
		}
		t := c.next()
		if t.kind == kEq {
			start := c.peek().start
			var end int
			if t, end = plainValue(&c); end <= start {
				return nil, false
			}
			v, err := Attr(text[start:end])
			if err != nil || v.Text != text[start:end] {
				return nil, false
			}
			e.Value, e.VSpan = v, rel(start, end)
		}
		a.Entries = append(a.Entries, e)
		switch t.kind {
		case kComma:
		case kRBrace:
			a.Text = text[:t.end]
			return a, c.peek().kind == kEOF
		default:
			return nil, false
		}
	}
}

// plainValue goes to the comma or brace behind a value and gives it with the
// value's end.
func plainValue(c *cursor) (behind token, end int) {
	var br brackets
	for {
		t := c.next()
		switch {
		case t.kind == kEOF || t.kind == kBadStr:
			return t, 0
		case br.depth() == 0 && (t.kind == kComma || t.kind == kRBrace):
			return t, end
		}
		br.track(t)
		end = t.end
	}
}
