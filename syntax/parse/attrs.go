package parse

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"dmir/base/escape"
	"dmir/syntax/ast"
	"dmir/syntax/lex"

	"github.com/alecthomas/participle/v2/lexer"
)

// attrSyntax is the grammar of attributes.
type attrSyntax struct {
	extent
	Number   string       `parser:"(  @Number"`
	String   string       `parser:"|  @String"`
	Dense    string       `parser:"|  @Dense"`
	Resource string       `parser:"|  @Resource"`
	Sparse   string       `parser:"|  @Sparse"`
	Alias    string       `parser:"|  @Alias"`
	Attr     string       `parser:"|  @Attr"`
	Builtin  string       `parser:"|  @Builtin )"`
	Type     *typeSyntax  `parser:"(Colon @@)?"`
	Bool     string       `parser:"| @Bool"`
	Unit     string       `parser:"| @Unit"`
	Symbol   string       `parser:"| @Symbol"`
	List     string       `parser:"| @Numbers"`
	Array    *arraySyntax `parser:"| @@"`
	Dict     *dictSyntax  `parser:"| @@"`
	Numbers  string       `parser:"| @Array"`
	Affine   string       `parser:"| @Affine"`
	Loc      string       `parser:"| @Loc"`
	Word     string       `parser:"| @Word"`
	IsType   *typeSyntax  `parser:"| @@"`
}

type arraySyntax struct {
	Open  string        `parser:"@LBrack"`
	Elems []*attrSyntax `parser:"(@@ (Comma @@)*)? RBrack"`
}

type dictSyntax struct {
	Open    string         `parser:"@LBrace"`
	Entries []*entrySyntax `parser:"(@@ (Comma @@)*)? RBrace"`
}

type entrySyntax struct {
	Pos   lexer.Position
	Key   string      `parser:"@Key"`
	Value *attrSyntax `parser:"(Eq @@)?"`
}

var attrTable interned[*ast.AttrExpr]

// Attr reads an attribute, or a bare word as dm's clauses have them. Equal texts
// give the same tree, which must not be changed. The error is an *Error.
func Attr(text string) (*ast.AttrExpr, error) {
	if r, ok := attrTable.find(text); ok {
		return r.unpack()
	}
	if a, ok := plainAttr(text); ok {
		return a, nil
	}
	return attrTable.get(text, grammarAttr)
}

// grammarAttr reads an attribute by the grammar.
func grammarAttr(text string) (*ast.AttrExpr, *Error) {
	tree, err := readExpr[attrSyntax](text)
	if err != nil {
		code := "DM042"
		if strings.HasPrefix(text, "{") {
			code = "DM044"
		}
		return nil, exprError(code, text, err)
	}
	b := builder{src: text}
	a := b.attr(tree)
	return a, b.err
}

func (b *builder) attr(t *attrSyntax) *ast.AttrExpr {
	start, end := t.start(), t.end()
	a := &ast.AttrExpr{Text: b.src[start:end]}
	if t.Type != nil {
		a.Type = b.typeExpr(t.Type)
	}
	switch {
	case t.Number != "":
		if !number(a, t.Number) {
			b.fail(newError("DM042", start, start+len(t.Number), "`%s` is not a number", excerpt(t.Number)))
		}
	case t.String != "":
		a.Kind, a.Str = ast.AString, Unquote(t.String)
	case t.Dense != "":
		a.Kind = ast.ADense
		open := start + strings.IndexByte(t.Dense, '<')
		a.Body = b.src[open+1 : start+len(t.Dense)-1]
		r := literalReader{src: b.src, cur: lex.New(b.src, open+1, start+len(t.Dense)-1)}
		a.Elems = r.all()
		if r.err != nil {
			b.fail(r.err)
		}
	case t.Resource != "":
		a.Kind, a.Body = ast.ADenseResource, inner(t.Resource)
		a.Str = Unquote(strings.TrimSpace(a.Body))
	case t.Sparse != "":
		a.Kind, a.Body = ast.ASparse, inner(t.Sparse)
	case t.Bool != "":
		a.Kind, a.Bool = ast.ABool, t.Bool == "true"
	case t.Unit != "":
		a.Kind = ast.AUnit
	case t.Symbol != "":
		a.Kind, a.Str = ast.ASymbol, t.Symbol[1:]
	case t.List != "":
		r := literalReader{src: b.src, cur: lex.New(b.src, start+1, start+len(t.List))}
		a.Kind, a.Elems = ast.AArray, r.list(lex.RBrack, 1)
		if r.err != nil {
			b.fail(r.err)
		}
	case t.Array != nil:
		a.Kind = ast.AArray
		a.Elems = make([]*ast.AttrExpr, len(t.Array.Elems))
		for i, e := range t.Array.Elems {
			a.Elems[i] = b.attr(e)
		}
	case t.Dict != nil:
		a.Kind = ast.ADict
		b.entries(a, t)
	case t.Numbers != "":
		b.numbers(a, t)
	case t.Affine != "":
		a.Kind, a.Body = ast.AAffine, inner(t.Affine)
	case t.Loc != "":
		a.Kind = ast.ALoc
	case t.Builtin != "":
		a.Kind = ast.AStrided
	case t.Alias != "":
		a.Kind, a.Name = ast.AAlias, t.Alias
	case t.Attr != "":
		a.Kind = ast.ADialect
		a.Name, a.Body = dialectParts(t.Attr)
	case t.Word != "":
		a.Kind, a.Str = ast.AKeyword, t.Word
	case t.IsType != nil:
		a.Kind, a.Type = ast.AType, b.typeExpr(t.IsType)
	}
	return a
}

func (b *builder) entries(a *ast.AttrExpr, t *attrSyntax) {
	seen := make(map[string]bool, len(t.Dict.Entries))
	off := t.start()
	for _, e := range t.Dict.Entries {
		entry := ast.Entry{Key: Unquote(e.Key), Span: rel(e.Pos.Offset-off, e.Pos.Offset-off+len(e.Key))}
		if seen[entry.Key] {
			b.fail(newError("DM045", e.Pos.Offset, e.Pos.Offset+len(e.Key), "`%s` appears twice in this dictionary", entry.Key))
		}
		seen[entry.Key] = true
		if e.Value == nil {
			entry.Value = &ast.AttrExpr{Kind: ast.AUnit}
		} else {
			entry.Value = b.attr(e.Value)
			entry.VSpan = rel(e.Value.start()-off, e.Value.end()-off)
		}
		a.Entries = append(a.Entries, entry)
	}
}

// numbers reads array<i64: 1, 2>.
func (b *builder) numbers(a *ast.AttrExpr, t *attrSyntax) {
	a.Kind, a.Body = ast.AArrayOf, inner(t.Numbers)
	typ, _, some := strings.Cut(a.Body, ":")
	elem, err := Type(strings.TrimSpace(typ))
	open := t.start() + strings.IndexByte(t.Numbers, '<')
	if err != nil {
		b.fail(newError("DM042", open+1, open+1+len(typ), "expected an element type, as in `array<i64: 1, 2>`"))
	}
	a.Type = elem
	if some {
		r := literalReader{src: b.src, cur: lex.New(b.src, open+1+len(typ)+1, t.start()+len(t.Numbers)-1)}
		a.Elems = r.list(lex.EOF, 0)
		if r.err != nil {
			b.fail(r.err)
		}
	}
}

// inner is the text in the outermost <…> of a balanced token.
func inner(text string) string {
	_, body, _ := strings.Cut(text, "<")
	return strings.TrimSuffix(body, ">")
}

// number fills in an AInt or AFloat from its text; it reports whether that is one.
func number(a *ast.AttrExpr, text string) bool {
	if ast.NotFinite(text) {
		a.Kind = ast.AFloat
		a.Float, _ = strconv.ParseFloat(strings.TrimPrefix(text, "-"), 64)
		if text[0] == '-' {
			a.Float = -a.Float
		}
		return true
	}
	digits := strings.TrimPrefix(text, "-")
	hex := len(digits) > 2 && digits[0] == '0' && digits[1] == 'x'
	if !hex && strings.ContainsAny(digits, ".eE") {
		a.Kind = ast.AFloat
		f, err := strconv.ParseFloat(text, 64)
		a.Float = f
		return !errors.Is(err, strconv.ErrSyntax)
	}
	a.Kind = ast.AInt
	base := 10
	if hex {
		base, digits = 16, digits[2:]
	}
	u, err := strconv.ParseUint(digits, base, 64)
	neg := len(text) > 0 && text[0] == '-'
	switch {
	case err != nil || neg && u > 1<<63 || !neg && u > math.MaxInt64:
		a.Big = true
	case neg:
		a.Int = -int64(u)
	default:
		a.Int = int64(u)
	}
	return !errors.Is(err, strconv.ErrSyntax)
}

// StringEnd is the offset behind the string literal that text begins with, 0 where it begins with none or with one that
// does not end.
func StringEnd(text string) int {
	if !strings.HasPrefix(text, `"`) {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// Unquote is the value of a string literal: MLIR's escapes are \n, \t, \\, \"
// and \XX with two hexadecimal digits. A text without quotes is returned as it is.
func Unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		default:
			if i+1 < len(s) {
				if v, err := strconv.ParseUint(s[i:i+2], 16, 8); err == nil {
					out = append(out, byte(v))
					i++
					continue
				}
			}
			out = append(out, s[i])
		}
	}
	return string(out)
}

// Quote is the literal of a string, the inverse of Unquote: quotes, backslashes
// and what is not text are escaped.
func Quote(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch c := s[i]; {
		case c == '\\':
			b.WriteString(`\\`)
		case c == '"' || r == utf8.RuneError && n == 1 || escape.Control(r):
			for _, c := range []byte(s[i : i+n]) {
				b.Write([]byte{'\\', hex[c>>4], hex[c&15]})
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}
