package format

import (
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/base/work"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

const (
	regionIndent = 2
	hangIndent   = 4
	// Beyond these columns nesting and alignment stop moving lines to the right,
	// which keeps the output in proportion to the input.
	maxIndent = 200
	maxAlign  = 80

	splitMark = "// -----"
)

// File is the text of f in the layout that the package describes.
func File(f *ast.File) string {
	text := f.Src.Text()
	if f.Unreadable { // its tree has nothing to lay out by
		return text
	}
	p := &printer{text: text, eol: lineEnd(text), fresh: true, work: f.Work}
	mark := ""
	if strings.HasPrefix(text, source.ByteOrderMark) {
		mark = source.ByteOrderMark
	}
	p.begin = len(mark)
	p.s = newScanner(text, p.begin)
	p.out.Grow(len(text) + len(text)/16 + 16)
	p.ops(f.Items, 0)
	p.between(len(text), 0)
	if p.out.Len() > 0 {
		p.out.WriteString(p.eol)
	}
	out := p.out.String()
	if mark == "" && strings.HasPrefix(out, source.ByteOrderMark) {
		mark = p.eol // behind white space it was none
	}
	return mark + out
}

// lineEnd is "\r\n" if each line of text ends so, otherwise "\n".
func lineEnd(text string) string {
	n := strings.Count(text, "\n")
	if n > 0 && n == strings.Count(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// printer walks the tree and the tokens of the text side by side. The tree
// has where ops, labels and regions begin and end; everything printed comes from the
// tokens, each exactly once and in order.
type printer struct {
	work  *work.Counts
	text  string
	begin int // of the text proper, behind a byte order mark
	s     scanner
	ahead
	out strings.Builder
	eol string

	col    int  // of the next character, in runes
	indent int  // of the current line
	fresh  bool // a blank line has no place here: start of the file or of a region
	start  bool // nothing stands on the current line yet

	prev   token     // the last token printed
	stack  []bracket // open brackets, those of enclosing ops below
	opened bool      // the last token but for comments opened stack's top
	closed bool      // the last token closed a region
}

// ahead is a token read but not printed.
type ahead struct {
	tok  token
	full bool
}

// bracket is an open bracket with what its contents align to.
type bracket struct {
	char   byte
	col    int  // behind the bracket
	indent int  // of the bracket's line
	hang   bool // the bracket ended its line
	inside context
}

// unit is a stretch printed by one set of rules: an op without its regions, or
// a block's label.
type unit struct {
	op    *ast.Op
	base  int // indentation of its first line
	floor int // height of printer.stack at its start
	label bool
	named bool // the opening parenthesis behind the name has passed
}

func (p *printer) peek() token {
	if !p.full {
		p.tok, p.full = p.s.next(), true
	}
	return p.tok
}

// take consumes the token ahead. A token that reaches beyond limit is cut there:
// the tree has where things end.
func (p *printer) take(limit int) token {
	t := p.peek()
	p.full = false
	if t.End > limit {
		t.End = limit
		p.s.Pos = limit
	}
	return t
}

// startLine begins a line for a token that had that many line ends before it.
func (p *printer) startLine(newlines int, blanks string) {
	if p.out.Len() > 0 {
		p.out.WriteString(p.eol)
		if newlines > 1 && !p.fresh {
			p.out.WriteString(p.eol)
		}
	}
	p.out.WriteString(blanks)
	p.col, p.indent = len(blanks), len(blanks)
	p.fresh, p.start = false, true
}

var blanks = strings.Repeat(" ", maxIndent)

func spaces(n int) string { return blanks[:min(n, maxIndent)] }

func depthIndent(depth int) int { return min(depth*regionIndent, maxIndent) }

// write prints a token without anything before it.
func (p *printer) write(t token) {
	text := p.text[t.Start:t.End]
	p.out.WriteString(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		p.col, text = 0, text[i+1:]
	}
	p.col += utf8.RuneCountInString(text)
	p.prev, p.start = t, false
}

func (p *printer) comment(t token, indent int) {
	switch {
	case t.newlines == 0 && p.out.Len() > 0:
		p.out.WriteByte(' ')
	case indent == 0 && strings.HasPrefix(p.textOf(t), splitMark):
		// The parser did not take it for a split; at column 0 it would be one.
		p.startLine(t.newlines, p.margin(t, 0))
	default:
		p.startLine(t.newlines, spaces(indent))
	}
	p.write(t)
}

// between prints what stands between two items: comments, and what the parser
// left out of its items.
func (p *printer) between(limit, indent int) {
	for {
		t := p.peek()
		if t.Kind == lex.EOF || t.Start >= limit {
			return
		}
		t = p.take(limit)
		switch {
		case t.Kind == lex.Comment:
			p.comment(t, indent)
			continue
		case t.newlines > 0 || p.out.Len() == 0 || p.prev.Kind == lex.Comment:
			p.startLine(t.newlines, spaces(indent))
		case t.blank:
			p.out.WriteByte(' ')
		}
		p.write(t)
	}
}

func (p *printer) ops(ops []*ast.Op, depth int) {
	p.work.Add("fmt", len(ops))
	for _, op := range ops {
		p.between(op.Off, depthIndent(depth))
		p.op(op, depth)
	}
}

func (p *printer) op(op *ast.Op, depth int) {
	base, end := depthIndent(depth), op.Span().End
	switch op.Form {
	case ast.Split:
		p.verbatim(op, "")
		return
	case ast.Bad:
		p.verbatim(op, p.margin(p.peek(), base))
		return
	}
	p.startLine(p.peek().newlines, spaces(base))
	u := &unit{op: op, base: base, floor: len(p.stack)}
	p.opened, p.closed = false, false
	for _, r := range op.Regions {
		p.tokens(u, op.Off+int(r.Open))
		p.region(u, r, depth)
	}
	p.tokens(u, end)
	p.stack = p.stack[:u.floor]
}

// margin is the white space before t where t begins its line.
func (p *printer) margin(t token, otherwise int) string {
	before := p.text[:t.Start]
	line := len(strings.TrimRight(before, " \t"))
	if line == p.begin || before[line-1] == '\n' || before[line-1] == '\r' {
		return before[line:]
	}
	return spaces(otherwise)
}

// verbatim prints an item as it is, but for white space at its end.
func (p *printer) verbatim(op *ast.Op, margin string) {
	span := op.Span()
	t := p.peek()
	t.Kind, p.full = lex.EOF, false // no rule is about what follows it
	t.End = max(t.Start, span.Start+len(strings.TrimRight(p.text[span.Start:span.End], " \t\r\n")))
	p.s.Pos = t.End
	p.startLine(t.newlines, margin)
	p.write(t)
}

// region prints "{ … }". Its braces stay on the lines of the op around it.
func (p *printer) region(u *unit, r *ast.Region, depth int) {
	open, closing := u.op.Off+int(r.Open), u.op.Span().End
	if r.Close >= 0 {
		closing = u.op.Off + int(r.Close)
	} else if i := slices.Index(u.op.Regions, r) + 1; i < len(u.op.Regions) {
		closing = u.op.Off + int(u.op.Regions[i].Open) // not closed: it ends before the next one
	}
	t := p.take(open + 1)
	switch {
	case p.prev.Kind == lex.Comment:
		p.startLine(0, spaces(u.base))
	case !p.start && p.textOf(p.prev) != "(":
		p.out.WriteByte(' ')
	}
	p.write(t)
	p.fresh = true
	for i, b := range r.Blocks {
		if b.Label != "" {
			p.label(u, b, labelLimit(u.op, r.Blocks[i:], closing))
		}
		p.ops(b.Ops, depth+1)
	}
	p.between(closing, depthIndent(depth+1))
	if r.Close >= 0 {
		t = p.take(closing + 1)
		if !p.fresh || t.newlines > 0 || p.prev.Kind == lex.Comment {
			p.startLine(0, spaces(u.base))
		}
		p.write(t)
	}
	p.fresh, p.opened, p.closed = false, false, true
	p.indent = u.base
}

// labelLimit is where the label of the first of the blocks ends at the latest.
func labelLimit(op *ast.Op, blocks []*ast.Block, closing int) int {
	switch {
	case len(blocks[0].Ops) > 0:
		return blocks[0].Ops[0].Off
	case len(blocks) > 1:
		return op.Off + int(blocks[1].Span.Start)
	}
	return closing
}

// label prints "^bb0(%a: i32):".
func (p *printer) label(u *unit, b *ast.Block, limit int) {
	p.between(u.op.Off+int(b.Span.Start), u.base)
	p.startLine(p.peek().newlines, spaces(u.base))
	l := &unit{op: u.op, base: u.base, floor: len(p.stack), label: true}
	p.opened, p.closed = false, false
	p.tokens(l, limit)
	p.stack = p.stack[:l.floor]
}

// tokens prints the tokens of a unit up to limit; a label ends with its colon.
func (p *printer) tokens(u *unit, limit int) {
	for {
		t := p.peek()
		if t.Kind == lex.EOF || t.Start >= limit {
			return
		}
		t = p.take(limit)
		if t.Kind == lex.Comment {
			if t.newlines > 0 && p.opened {
				p.stack[len(p.stack)-1].hang = true
			}
			p.comment(t, p.continuation(u, ""))
			continue
		}
		text := p.textOf(t)
		switch {
		case p.start:
		case p.prev.Kind == lex.Comment, t.newlines > 0 && !p.closed:
			if p.opened {
				p.stack[len(p.stack)-1].hang = true
			}
			p.startLine(t.newlines, spaces(p.continuation(u, text)))
		case p.spaced(u, t, text):
			p.out.WriteByte(' ')
			p.col++
		}
		inside := p.enter(u, t, text)
		p.write(t)
		p.track(u, t, text, inside)
		if u.label && text == ":" && len(p.stack) == u.floor {
			return
		}
	}
}

// continuation is the indentation of a line inside a unit that starts with text.
func (p *printer) continuation(u *unit, text string) int {
	if len(p.stack) == u.floor {
		return min(u.base+hangIndent, maxIndent)
	}
	top := p.stack[len(p.stack)-1]
	closing := closes(top.char, text)
	switch {
	case closing && top.hang:
		return top.indent
	case top.hang && top.char != '(':
		return top.indent + regionIndent
	case top.hang || top.col > maxAlign:
		return top.indent + hangIndent
	case closing:
		return top.col - 1
	}
	return top.col
}

// track follows the brackets inside a unit. "<" may be a mere comparison in
// other dialects, so that any other bracket closes it.
func (p *printer) track(u *unit, t token, text string, inside context) {
	p.opened, p.closed = false, false
	if less(t.Token, text) {
		return
	}
	switch text {
	case "(", "[", "{", "<", "{-#":
		char := text[len(text)-1]
		p.stack = append(p.stack, bracket{char: char, col: p.col, indent: p.indent, inside: inside})
		p.opened = true
	case ")", "]", "}", ">", "#-}":
		n := len(p.stack)
		for n > u.floor && p.stack[n-1].char == '<' && text != ">" {
			n--
		}
		if n > u.floor && closes(p.stack[n-1].char, text) {
			n--
		}
		p.stack = p.stack[:n]
	}
}

func (p *printer) textOf(t token) string { return p.text[t.Start:t.End] }
