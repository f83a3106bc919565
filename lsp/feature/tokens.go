package feature

import (
	"iter"
	"strings"

	"dmir/analysis/program"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// TokenKind is how an editor colours a token; the kinds agree with the
// TextMate grammar of the VS Code extension.
type TokenKind uint8

// The kinds of tokens.
const (
	NamespaceToken TokenKind = iota // the dialect of an op's name
	FunctionToken                   // an op; a symbol
	VariableToken                   // a value
	ParameterToken                  // an argument of a function or block
	TypeToken
	PropertyToken // the name of an attribute
	KeywordToken
	StringToken
	NumberToken
	CommentToken
	MacroToken // an alias
	LabelToken // a block
	AxisToken  // an axis of a mesh
)

// Token is a coloured stretch of one line.
type Token struct {
	Span source.Span
	Kind TokenKind
	Def  bool // the name is defined here
}

// Tokens are the coloured stretches in the lines that span touches, in order.
func Tokens(p *program.Program, span source.Span) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		src := p.Src
		first, last := src.Pos(span.Start).Line, src.Pos(span.End).Line
		in := source.Span{Start: src.LineStart(first), End: src.LineStart(last) + len(src.Line(last))}
		c := &colours{text: src.Slice(in), base: in.Start, names: p.Names().Reader(in.Start), yield: yield}
		walkIn(p.Tree.Items, in, c.op)
		c.scan()
	}
}

// colours works on the text of its lines, and its offsets count from there.
type colours struct {
	text  string
	base  int // offset of text in the file
	names *scope.Reader
	cur   lex.Cursor
	ops   []source.Span // names of ops, in order; scan takes them off
	yield func(Token) bool
	done  bool // no more tokens are wanted
}

// op records which words name ops, which only the tree has.
func (c *colours) op(o *ast.Op) bool {
	if o.Form != ast.AttrAlias && o.Form != ast.TypeAlias && !o.NameSpan.Empty() {
		at := o.Abs(o.NameSpan)
		c.ops = append(c.ops, source.Span{Start: at.Start - c.base, End: at.End - c.base})
	}
	return true
}

// scan visits the tokens and comments of the text.
func (c *colours) scan() {
	c.cur = lex.New(c.text, 0, len(c.text))
	c.cur.Mode = lex.Comments
	dynamic := -1 // behind a "?"
	for t := c.cur.Next(); t.Kind != lex.EOF && !c.done; t = c.cur.Next() {
		c.token(t, t.Start == dynamic)
		if c.text[t.Start] == '?' {
			dynamic = t.End
		}
	}
}

// behind is the first byte of the token behind the one that was read last.
func (c *colours) behind() byte {
	ahead := c.cur
	ahead.Mode = 0
	if t := ahead.Peek(); t.Kind != lex.EOF {
		return c.text[t.Start]
	}
	return 0
}

func (c *colours) add(start, end int, k TokenKind, def bool) {
	if start < end && !c.done {
		c.done = !c.yield(Token{source.Span{Start: c.base + start, End: c.base + end}, k, def})
	}
}

// token colours one token. inShape is whether it continues a shape, as the x
// in "?x4xf32".
func (c *colours) token(t lex.Token, inShape bool) {
	for len(c.ops) > 0 && c.ops[0].Start < t.Start {
		c.ops = c.ops[1:]
	}
	if len(c.ops) > 0 && c.ops[0].Start == t.Start {
		c.opName(t.Span, c.ops[0].End)
		return
	}
	word := c.text[t.Start:t.End]
	switch first := word[0]; {
	case t.Kind == lex.Comment:
		c.add(t.Start, t.End, CommentToken, false)
	case first == '%':
		c.name(t.Span, VariableToken)
	case first == '@':
		c.name(t.Span, FunctionToken)
	case first == '^':
		c.name(t.Span, LabelToken)
	case first == '!':
		if n, _, ok := c.names.At(c.base + t.Start); ok && n.Kind == scope.TypeAlias {
			c.name(t.Span, MacroToken)
		} else if len(word) > 1 {
			c.add(t.Start, t.End, TypeToken, false)
		}
	case first == '#' && len(word) > 1:
		if n, _, ok := c.names.At(c.base + t.Start); ok && n.Kind == scope.AttrAlias {
			c.name(t.Span, MacroToken)
		} else {
			c.add(t.Start, t.End, PropertyToken, false)
		}
	case first == '"':
		c.add(t.Start, t.End, StringToken, false)
	case t.Kind == lex.Number || inShape && first == 'x':
		c.number(t.Span)
	case first == '-' && len(word) == 1:
		if next := c.behind(); '0' <= next && next <= '9' {
			c.add(t.Start, t.End, NumberToken, false)
		}
	case t.Kind == lex.Ident:
		c.word(t.Span, word)
	}
}

// opName colours "dm.add" as a namespace and a function, and words of the
// language (module, return, func.func) as keywords.
func (c *colours) opName(t source.Span, end int) {
	name := c.text[t.Start:min(end, len(c.text))]
	dot := strings.IndexByte(name, '.')
	switch {
	case name[0] == '"' && (dot < 0 || !strings.HasSuffix(name, `"`)):
		c.add(t.Start, t.End, StringToken, false)
	case name[0] == '"':
		c.add(t.Start, t.Start+1, StringToken, false)
		c.add(t.Start+1, t.Start+dot, NamespaceToken, false)
		c.add(t.Start+dot+1, t.End-1, FunctionToken, false)
		c.add(t.End-1, t.End, StringToken, false)
	case keywordOps[name] || dot < 0:
		c.add(t.Start, t.End, KeywordToken, false)
	default:
		c.add(t.Start, t.Start+dot, NamespaceToken, false)
		c.add(t.Start+dot+1, t.End, FunctionToken, false)
	}
}

// keywordOps read as structure, as in the TextMate grammar.
var keywordOps = words("func.func builtin.module func.return func.call dm.kernel dm.map dm.scan dm.while dm.if dm.yield affine.for affine.if affine.parallel affine.yield")

var (
	keywords  = words("public private nested attributes to step do else in as dense sparse array dense_resource affine_map affine_set strided distinct opaque loc callsite fused unknown ceildiv floordiv mod true false unit host hbm smem reg remote compressed loose_compressed singleton structured nonunique nonordered soa")
	typeWords = words("tensor memref vector complex tuple index none token bf16 tf32")
)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// name colours a name by its definition.
func (c *colours) name(t source.Span, k TokenKind) {
	def := false
	if n, span, ok := c.names.At(c.base + t.Start + 1); ok && span.Start == c.base+t.Start {
		def = n.DefinedAt(span.Start)
		if k == VariableToken && n.IsArgument() {
			k = ParameterToken
		}
		if end := span.End - c.base; end > t.Start && end < t.End { // the number of a result
			c.add(t.Start, end, k, def)
			c.add(end, t.End, NumberToken, false)
			return
		}
	}
	c.add(t.Start, t.End, k, def)
}

// number colours a number, or a shape: 4x8xf32.
func (c *colours) number(t source.Span) {
	at := t.Start
	if c.text[at] == 'x' {
		at++
	}
	for at < t.End && !strings.HasPrefix(c.text[at:t.End], "0x") {
		end := at
		for end < t.End && '0' <= c.text[end] && c.text[end] <= '9' {
			end++
		}
		if end == at || end == t.End || c.text[end] != 'x' {
			break
		}
		c.add(at, end, NumberToken, false)
		at = end + 1
	}
	if at < t.End && !('0' <= c.text[at] && c.text[at] <= '9') {
		c.add(at, t.End, TypeToken, false)
		return
	}
	c.add(at, t.End, NumberToken, false)
}

func (c *colours) word(t source.Span, word string) {
	if n, span, ok := c.names.At(c.base + t.Start); ok && n.Kind == scope.Axis && span.Start == c.base+t.Start {
		c.add(t.Start, t.End, AxisToken, n.DefinedAt(span.Start))
		return
	}
	switch {
	case typeWords[word] || isElem(word):
		c.add(t.Start, t.End, TypeToken, false)
	case c.behind() == '=' || strings.Contains(word, "."):
		c.add(t.Start, t.End, PropertyToken, false)
	case keywords[word]:
		c.add(t.Start, t.End, KeywordToken, false)
	}
}

// isElem reports whether word is an element type such as f32, ui8, f8E4M3FN.
func isElem(word string) bool {
	rest := strings.TrimLeft(word, "us")
	if len(rest) < 2 || rest[0] != 'i' && (rest[0] != 'f' || rest != word) || rest[1] < '0' || rest[1] > '9' {
		return false
	}
	return rest[0] == 'f' || strings.Trim(rest[1:], "0123456789") == ""
}
