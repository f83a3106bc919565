package parse

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"dmir/syntax/ast"
	"dmir/syntax/lex"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// extent is where a node of a grammar stands; participle fills in its tokens.
type extent struct{ Tokens []lexer.Token }

func (e extent) start() int { return e.Tokens[0].Pos.Offset }

func (e extent) end() int {
	last := e.Tokens[len(e.Tokens)-1]
	return last.Pos.Offset + len(last.Value)
}

// typeSyntax is the grammar of types.
type typeSyntax struct {
	extent
	Scalar   string          `parser:"  @(Scalar | Word)"`
	Shaped   *shapedSyntax   `parser:"| @@"`
	Tuple    *tupleSyntax    `parser:"| @@"`
	Complex  *typeSyntax     `parser:"| Complex @@ Close"`
	Alias    string          `parser:"| @TypeAlias"`
	Dialect  string          `parser:"| @Dialect"`
	Function *functionSyntax `parser:"| @@"`
}

type shapedSyntax struct {
	Kind string      `parser:"@Shaped"`
	Dims string      `parser:"@Dims?"`
	Elem *typeSyntax `parser:"@@"`
	Rest string      `parser:"(Comma @Rest)? Close"`
}

type tupleSyntax struct {
	Open string        `parser:"@Tuple"`
	In   []*typeSyntax `parser:"(@@ (Comma @@)*)? Close"`
}

type functionSyntax struct {
	In  []*typeSyntax `parser:"LParen (@@ (Comma @@)*)? RParen"`
	Out *outSyntax    `parser:"@@"`
}

// outSyntax is "-> T", "-> (T, U)".
type outSyntax struct {
	Arrow string        `parser:"@Arrow"`
	List  []*typeSyntax `parser:"( LParen (@@ (Comma @@)*)? RParen"`
	One   *typeSyntax   `parser:"| @@ )"`
}

func (o *outSyntax) types() []*typeSyntax {
	if o.One != nil {
		return []*typeSyntax{o.One}
	}
	return o.List
}

// sigSyntax is what follows an op's ":" or, with the arrow, its operands.
type sigSyntax struct {
	Out  *outSyntax    `parser:"  @@"`
	List []*typeSyntax `parser:"| @@ (Comma @@)*"`
}

// exprSyntax holds all that is read by exprLexer, so that the grammars, which
// share most of their parts, are built once.
type exprSyntax struct {
	Sig  *sigSyntax  `parser:"  @@"`
	Attr *attrSyntax `parser:"| @@"`
}

var exprParser = sync.OnceValue(func() *participle.Parser[exprSyntax] {
	return participle.MustBuild[exprSyntax](participle.Lexer(exprLexer{}))
})

// readExpr reads text by the part of the grammar that P is.
func readExpr[P any](text string) (*P, error) {
	p, err := participle.ParserForProduction[P](exprParser())
	if err != nil {
		panic(err) // P is no part
	}
	return p.ParseString("", text)
}

var (
	typeTable interned[*ast.TypeExpr]
	sigTable  interned[*Sig]
)

// Type reads a type. Equal texts give the same tree, which must not be changed.
// The error is an *Error.
func Type(text string) (*ast.TypeExpr, error) {
	return typeTable.get(text, func(text string) (*ast.TypeExpr, *Error) {
		tree, err := readExpr[typeSyntax](text)
		if err != nil {
			return nil, exprError("DM040", text, err)
		}
		b := builder{src: text}
		t := b.typeExpr(tree)
		return t, b.err
	})
}

// Sig is the type of an op: of its operands and of its results.
type Sig struct {
	In, Out           []*ast.TypeExpr
	InSpans, OutSpans []ast.Rel
	Single            bool // "T": one type that all operands and results share; it is In[0] and Out[0]
	List              bool // "T, U": types of the operands, In only
}

// Signature reads "(A, B) -> C", "(A) -> (B, C)", "T", "T, U", "-> T" and
// "-> (T, U)". Equal texts give the same Sig, which must not be changed. The
// error is an *Error.
func Signature(text string) (*Sig, error) {
	return sigTable.get(text, func(text string) (*Sig, *Error) {
		tree, err := readExpr[sigSyntax](text)
		if err != nil {
			bad := exprError("DM043", text, err)
			if operands, results, ok := strings.Cut(text, "->"); ok && !strings.HasPrefix(strings.TrimSpace(operands), "(") {
				with := "(" + strings.TrimSpace(operands) + ") ->" + results
				if _, err := readExpr[sigSyntax](with); err == nil {
					bad.Help = "write `" + with + "`"
				}
			}
			return nil, bad
		}
		b := builder{src: text}
		s := &Sig{}
		switch {
		case tree.Out != nil:
			s.Out, s.OutSpans = b.list(tree.Out.types())
		case len(tree.List) == 1 && tree.List[0].Function != nil:
			f := tree.List[0].Function
			s.In, s.InSpans = b.list(f.In)
			s.Out, s.OutSpans = b.list(f.Out.types())
		case len(tree.List) == 1:
			s.In, s.InSpans = b.list(tree.List)
			s.Out, s.OutSpans = s.In, s.InSpans
			s.Single = true
		default:
			s.In, s.InSpans = b.list(tree.List)
			s.List = true
		}
		return s, b.err
	})
}

// exprError turns an error of participle or of exprLexer into an *Error.
func exprError(code, text string, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	what := map[string]string{"DM040": "a type", "DM042": "an attribute", "DM043": "the op's type", "DM044": "a dictionary"}[code]
	if strings.TrimSpace(text) == "" {
		return newError(code, 0, len(text), "expected %s", what)
	}
	var u *participle.UnexpectedTokenError
	if !errors.As(err, &u) {
		return newError(code, 0, len(text), "this is not %s", what)
	}
	start := min(u.Unexpected.Pos.Offset, len(text))
	if u.Unexpected.EOF() {
		var br brackets
		for c := lex.New(text, 0, len(text)); ; {
			t := c.Next()
			if t.Kind == lex.EOF {
				break
			}
			br.track(t)
		}
		if br.depth() > 0 {
			o := br.open[0]
			return newError("DM010", o.Start, o.End, "this `%s` is never closed", text[o.Start:o.End])
		}
		return newError(code, max(0, start-1), len(text), "%s is incomplete", what)
	}
	return newError(code, start, start+len(u.Unexpected.Value), "unexpected `%s` in %s", excerpt(u.Unexpected.Value), what)
}

// builder turns what participle captured into trees of package ast. It keeps
// the first error.
type builder struct {
	src string
	err *Error
}

func (b *builder) fail(err *Error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) list(ts []*typeSyntax) ([]*ast.TypeExpr, []ast.Rel) {
	out := make([]*ast.TypeExpr, len(ts))
	spans := make([]ast.Rel, len(ts))
	for i, t := range ts {
		spans[i] = rel(t.start(), t.end())
		out[i] = b.shared(t)
	}
	return out, spans
}

// shared is typeExpr through the table of types. An error is not kept there: its
// place is relative to the text around the type.
func (b *builder) shared(t *typeSyntax) *ast.TypeExpr {
	text := b.src[t.start():t.end()]
	if r, ok := typeTable.find(text); ok && r.err == nil {
		return r.val
	}
	inner := builder{src: b.src}
	e := inner.typeExpr(t)
	if inner.err != nil {
		b.fail(inner.err)
		return e
	}
	return typeTable.keep(e.Text, result[*ast.TypeExpr]{val: e}).val
}

func (b *builder) typeExpr(t *typeSyntax) *ast.TypeExpr {
	e := &ast.TypeExpr{Text: strings.Clone(b.src[t.start():t.end()])}
	switch {
	case t.Scalar != "":
		e.Kind, e.Name = ast.TScalar, t.Scalar
		if !isScalar(t.Scalar) {
			err := newError("DM040", t.start(), t.end(), "`%s` is not a type", excerpt(t.Scalar))
			if s := foreignScalars[strings.ToLower(t.Scalar)]; s != "" {
				err.Help = "did you mean " + s + "?"
			} else if shape := namedSizes(t.Scalar); shape != "" {
				err.Help = "a size with a name is `?`, and the names follow: `" + shape + "`"
			}
			b.fail(err)
		}
	case t.Shaped != nil:
		b.shaped(e, t)
	case t.Tuple != nil:
		e.Kind = ast.TTuple
		e.In, _ = b.list(t.Tuple.In)
	case t.Complex != nil:
		e.Kind, e.Elem = ast.TComplex, b.typeExpr(t.Complex)
	case t.Alias != "":
		e.Kind, e.Name = ast.TAlias, t.Alias
	case t.Dialect != "":
		e.Kind = ast.TDialect
		e.Name, e.Body = dialectParts(e.Text)
	case t.Function != nil:
		e.Kind = ast.TFunction
		e.In, _ = b.list(t.Function.In)
		e.Out, _ = b.list(t.Function.Out.types())
	}
	return e
}

// dialectParts splits "!dm.token<…>" into "dm.token" and what is in <…>.
func dialectParts(text string) (name, body string) {
	name, body, ok := strings.Cut(text[1:], "<")
	if ok {
		body = strings.TrimSuffix(body, ">")
	}
	return name, body
}

func (b *builder) shaped(e *ast.TypeExpr, t *typeSyntax) {
	s := t.Shaped
	e.Elem = b.typeExpr(s.Elem)
	dims := strings.Map(func(r rune) rune {
		if r < 0x80 && lex.Is(byte(r), lex.Space) {
			return -1
		}
		return r
	}, strings.TrimSuffix(s.Dims, "x"))
	switch {
	case dims == "*":
		e.Unranked = true
	case dims != "":
		for _, d := range strings.Split(dims, "x") {
			e.Shape = append(e.Shape, b.dim(t, strings.Trim(d, "[]")))
		}
	}
	switch s.Kind {
	case "tensor":
		e.Kind = ast.TTensor
		if rest := strings.TrimSpace(s.Rest); rest != "" {
			at := t.end() - 1
			for b.src[at-len(s.Rest):at] != s.Rest { // blanks before ">"
				at--
			}
			enc, err := Attr(s.Rest)
			if err != nil {
				inner := *err.(*Error)
				inner.Span.Start += int32(at - len(s.Rest))
				inner.Span.End += int32(at - len(s.Rest))
				b.fail(&inner)
			}
			e.Encoding = enc
		}
	case "memref":
		e.Kind, e.Body = ast.TMemRef, s.Rest
	case "vector":
		e.Kind = ast.TVector
	}
}

func (b *builder) dim(t *typeSyntax, d string) int64 {
	if d == "?" {
		return ast.Dynamic
	}
	n, err := strconv.ParseInt(d, 10, 64)
	if err != nil {
		b.fail(newError("DM041", t.start(), t.end(), "the dimension %s does not fit in 63 bits", excerpt(d)))
	}
	return n
}

// foreignScalars are the builtin scalar types that other languages call so.
var foreignScalars = map[string]string{
	"double": "f64", "float64": "f64", "float": "f32", "float32": "f32", "half": "f16", "float16": "f16", "bfloat16": "bf16",
	"int64": "i64", "long": "i64", "int32": "i32", "int": "i32", "int16": "i16", "short": "i16", "int8": "i8", "int4": "i4",
	"uint64": "ui64", "uint32": "ui32", "uint16": "ui16", "uint8": "ui8", "uint4": "ui4", "bool": "i1",
	"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
}

// namedSizes is how a word is written that was meant as sizes, some with names,
// before a scalar type: "mx4xf32" is "?x4xf32, #dm.at<dims = [m]>".
func namedSizes(word string) string {
	sizes := strings.Split(word, "x")
	elem := len(sizes) - 1
	var names []string
	for i, s := range sizes[:elem] {
		if s == "" {
			return ""
		}
		if strings.Trim(s, "0123456789") != "" {
			names = append(names, s)
			sizes[i] = "?"
		}
	}
	if len(names) == 0 || !isScalar(sizes[elem]) {
		return ""
	}
	return strings.Join(sizes, "x") + ", #dm.at<dims = [" + strings.Join(names, ", ") + "]>"
}

// isScalar reports whether a word is a builtin scalar type.
func isScalar(w string) bool {
	switch w {
	case "index", "none", "bf16", "f16", "f32", "f64", "f80", "f128", "tf32":
		return true
	}
	rest := ""
	switch {
	case len(w) > 2 && (w[:2] == "si" || w[:2] == "ui"):
		rest = w[2:]
	case len(w) > 1 && w[0] == 'i':
		rest = w[1:]
	case len(w) > 2 && w[0] == 'f' && w[1] >= '4' && w[1] <= '8' && w[2] == 'E':
		return lex.Run(w, 2, len(w), lex.Word) == len(w) // f8E4M3FN and its kin
	default:
		return false
	}
	return lex.Run(rest, 0, len(rest), lex.Digit) == len(rest)
}
