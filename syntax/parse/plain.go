package parse

import (
	"slices"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
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
		c := lex.New(text, 0, len(text))
		if t := c.Next(); t.Kind == lex.String && t.End == len(text) {
			text = own(text)
			return &ast.AttrExpr{Kind: ast.AString, Text: text, Str: Unquote(text)}, true
		}
	case '{':
		text = own(text)
		c := lex.New(text, 0, len(text))
		if a := plainDict(&c, text, 0); a != nil && c.Peek().Kind == lex.EOF {
			return a, true
		}
	}
	return nil, false
}

// plainNesting is how deep dictionaries stand in dictionaries that are read
// without the grammar, which bounds what lies deeper.
const plainNesting = 16

// plainDict reads the dictionary that c stands before, nil where that is for the
// grammar. One cursor reads all of it, however deep: each token is read
// once as a part of a dictionary and once as a part of a value.
func plainDict(c *lex.Cursor, text string, depth int) *ast.AttrExpr {
	if depth == plainNesting {
		return nil
	}
	open := c.Next().Start
	a := &ast.AttrExpr{Kind: ast.ADict}
	if c.Peek().Kind == lex.RBrace {
		a.Text = text[open:c.Next().End]
		return a
	}
	var seen keys
	for {
		key := c.Next()
		if key.Kind != lex.Ident {
			return nil
		}
		e := ast.Entry{Key: text[key.Start:key.End], Span: rel(key.Start-open, key.End-open), Value: &ast.AttrExpr{Kind: ast.AUnit}}
		if seen.add(a.Entries, e.Key) {
			return nil
		}
		t := c.Next()
		if t.Kind == lex.Eq {
			start := c.Peek().Start
			var end int
			if c.Peek().Kind == lex.LBrace {
				if e.Value = plainDict(c, text, depth+1); e.Value == nil {
					return nil
				}
				t, end = c.Next(), start+len(e.Value.Text)
			} else {
				if t, end = plainValue(c); end <= start {
					return nil
				}
				v, err := Attr(text[start:end])
				if err != nil || v.Text != text[start:end] {
					return nil
				}
				e.Value = v
			}
			e.VSpan = rel(start-open, end-open)
		}
		a.Entries = append(a.Entries, e)
		switch t.Kind {
		case lex.Comma:
		case lex.RBrace:
			a.Text = text[open:t.End]
			return a
		default:
			return nil
		}
	}
}

// keys are those of a dictionary that is being read, once they are many.
type keys map[string]bool

// add adds a key to those of entries and reports whether it was among them.
func (k *keys) add(entries []ast.Entry, key string) bool {
	const few = 16
	if *k == nil {
		if len(entries) < few {
			return slices.ContainsFunc(entries, func(e ast.Entry) bool { return e.Key == key })
		}
		*k = keys{}
		for _, e := range entries {
			(*k)[e.Key] = true
		}
	}
	known := (*k)[key]
	(*k)[key] = true
	return known
}

// plainValue goes to the comma or brace behind a value and gives it with the
// value's end.
func plainValue(c *lex.Cursor) (behind lex.Token, end int) {
	var br brackets
	for {
		t := c.Next()
		switch {
		case t.Kind == lex.EOF || t.Kind == lex.BadString:
			return t, 0
		case br.depth() == 0 && (t.Kind == lex.Comma || t.Kind == lex.RBrace):
			return t, end
		}
		br.track(t)
		end = t.End
	}
}
