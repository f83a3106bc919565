package feature

import (
	"strings"

	"dmir/analysis/program"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// TokenKind says what a token is to a reader; the kinds agree with the
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
)

// Token is a coloured stretch of one line.
type Token struct {
	Span source.Span
	Kind TokenKind
	Def  bool // the name is defined here
}

// Tokens are the coloured stretches in the lines that span touches, in order.
func Tokens(p *program.Program, span source.Span) []Token {
	src := p.Src
	first, last := src.Pos(span.Start).Line, src.Pos(span.End).Line
	in := source.Span{Start: src.LineStart(first), End: src.LineStart(last) + len(src.Line(last))}
	c := &colours{text: src.Slice(in), base: in.Start, names: p.Names(), args: map[int]bool{}}
	walkIn(p.Tree.Items, in, c.op)
	c.scan()
	for i := range c.out {
		c.out[i].Span.Start += c.base
		c.out[i].Span.End += c.base
	}
	return c.out
}

// colours works on the text of its lines; but for those of args, its offsets
// count from there.
type colours struct {
	text  string
	base  int // offset of text in the file
	names *scope.Index
	ops   []source.Span // names of ops, in order; scan takes them off
	args  map[int]bool  // starts of arguments where they are defined, in the file
	out   []Token
}

// op notes what only the tree knows: which words name ops, and which values
// are arguments. Arguments may be used in lines far from their definition.
func (c *colours) op(o *ast.Op) bool {
	if o.Form != ast.AttrAlias && o.Form != ast.TypeAlias && !o.NameSpan.Empty() {
		at := o.Abs(o.NameSpan)
		c.ops = append(c.ops, source.Span{Start: at.Start - c.base, End: at.End - c.base})
	}
	mark := func(as []ast.BlockArg) {
		for _, a := range as {
			if a.Name != "" {
				c.args[o.Off+int(a.Span.Start)] = true
			}
		}
	}
	mark(o.Defs)
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			mark(b.Args)
		}
	}
	return true
}

// scan goes through the tokens of the text, and the comments between them.
func (c *colours) scan() {
	toks := lex.Tokens(c.text, source.Span{End: len(c.text)})
	c.out = make([]Token, 0, len(toks))
	end := 0
	for i, t := range toks {
		c.comments(source.Span{Start: end, End: t.Start})
		next := byte(0)
		if i+1 < len(toks) {
			next = c.text[toks[i+1].Start]
		}
		glued := i > 0 && toks[i-1].End == t.Start
		c.token(t.Span, next, glued && c.text[toks[i-1].Start] == '?')
		end = t.End
	}
	c.comments(source.Span{Start: end, End: len(c.text)})
}

func (c *colours) add(start, end int, k TokenKind, def bool) {
	if start < end {
		c.out = append(c.out, Token{source.Span{Start: start, End: end}, k, def})
	}
}

// comments colours what stands between two tokens: blanks and comments.
func (c *colours) comments(gap source.Span) {
	for gap.Start < gap.End {
		i := strings.Index(c.text[gap.Start:gap.End], "//")
		if i < 0 {
			return
		}
		start := gap.Start + i
		end := start
		for end < gap.End && c.text[end] != '\n' && c.text[end] != '\r' {
			end++
		}
		c.add(start, end, CommentToken, false)
		gap.Start = end
	}
}

// token colours one token. next is the first byte of the one behind it;
// inShape says that it goes on a shape, as the x in "?x4xf32".
func (c *colours) token(t source.Span, next byte, inShape bool) {
	word := c.text[t.Start:t.End]
	for len(c.ops) > 0 && c.ops[0].Start < t.Start {
		c.ops = c.ops[1:]
	}
	if len(c.ops) > 0 && c.ops[0].Start == t.Start {
		c.opName(t, c.ops[0].End)
		return
	}
	switch first := word[0]; {
	case first == '%':
		c.name(t, VariableToken)
	case first == '@':
		c.name(t, FunctionToken)
	case first == '^':
		c.name(t, LabelToken)
	case first == '!':
		if n, _, ok := c.names.At(c.base + t.Start); ok && n.Kind == scope.TypeAlias {
			c.name(t, MacroToken)
		} else if len(word) > 1 {
			c.add(t.Start, t.End, TypeToken, false)
		}
	case first == '#' && len(word) > 1:
		if n, _, ok := c.names.At(c.base + t.Start); ok && n.Kind == scope.AttrAlias {
			c.name(t, MacroToken)
		} else {
			c.add(t.Start, t.End, PropertyToken, false)
		}
	case first == '"':
		c.add(t.Start, t.End, StringToken, false)
	case '0' <= first && first <= '9' || inShape && first == 'x':
		c.number(t)
	case first == '-' && len(word) == 1 && '0' <= next && next <= '9':
		c.add(t.Start, t.End, NumberToken, false)
	case wordByte(first):
		c.word(t, word, next)
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
var keywordOps = words("func.func builtin.module func.return func.call dm.kernel dm.map dm.while dm.if dm.yield affine.for affine.if affine.parallel affine.yield")

var (
	keywords  = words("public private nested attributes to step do else in as dense sparse array dense_resource affine_map affine_set strided distinct opaque loc callsite fused unknown ceildiv floordiv mod true false unit host hbm smem reg remote")
	typeWords = words("tensor memref vector complex tuple index none token bf16 tf32")
)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// name colours a name by what it stands for.
func (c *colours) name(t source.Span, k TokenKind) {
	def := false
	if n, span, ok := c.names.At(c.base + t.Start + 1); ok && span.Start == c.base+t.Start {
		for _, d := range n.Defs() {
			def = def || d.Start == span.Start
			if k == VariableToken && c.args[d.Start] {
				k = ParameterToken
			}
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

func (c *colours) word(t source.Span, word string, next byte) {
	switch {
	case typeWords[word] || isElem(word):
		c.add(t.Start, t.End, TypeToken, false)
	case next == '=' || strings.Contains(word, "."):
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
