package cuda

import (
	"cmp"
	"fmt"
	"strings"

	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/syntax/source"
)

// The text of a kernel is a tree of statements, which is rendered once. A
// statement holds code: a format whose operands are code, names and numbers, so
// that the names that a statement declares and uses are known without its text.

// code is a piece of C++.
type code struct {
	format string
	args   []any // ident, def, local, code, or operands of fmt
}

// ident is the use of a name that an enclosing or earlier statement or a
// parameter declares; def is the declaration.
type (
	ident string
	def   string
)

// local is the name of a declaration in front of a kernel: the kernel's name
// with a suffix.
type local string

// cpp is the code of a format and its operands.
func cpp(format string, args ...any) code { return code{format, args} }

// text renders c in the kernel of that name, with the names of renamed in place of
// those that it maps.
func (c code) text(kernel string, renamed map[string]string) string {
	if len(c.args) == 0 && !strings.Contains(c.format, "%") {
		return c.format
	}
	args := make([]any, len(c.args))
	for i, a := range c.args {
		switch a := a.(type) {
		case code:
			args[i] = a.text(kernel, renamed)
		case []code:
			parts := make([]string, len(a))
			for k, p := range a {
				parts[k] = p.text(kernel, renamed)
			}
			args[i] = strings.Join(parts, ", ")
		case local:
			args[i] = kernel + string(a)
		case ident:
			args[i] = cmp.Or(renamed[string(a)], string(a))
		case def:
			args[i] = cmp.Or(renamed[string(a)], string(a))
		default:
			args[i] = a
		}
	}
	return fmt.Sprintf(c.format, args...)
}

// names calls use and declare for the names in c, in their order.
func (c code) names(use, declare func(string)) {
	for _, a := range c.args {
		switch a := a.(type) {
		case code:
			a.names(use, declare)
		case []code:
			for _, p := range a {
				p.names(use, declare)
			}
		case ident:
			use(string(a))
		case def:
			declare(string(a))
		}
	}
}

// stmt is a statement, or a declaration in front of a kernel.
type stmt struct {
	// of is the op that it implements; nil: that of the statement before it.
	of   *ir.Op
	head code
	body []*stmt
	style
}

// style is how a statement is written.
type style int

const (
	plain     style = iota // head;
	bare                   // head, such as an annotation of the next statement
	block                  // head { and lines of the body and }
	elseBlock              // block on the line of the closing brace of the statement before it
	closed                 // block that ends in a semicolon
	inLine                 // head and the body in one line, without braces
	inBrace                // head and the body in one line, in braces
)

// printer renders statements.
type printer struct {
	b       strings.Builder
	kernel  string
	renamed map[string]string // names that are written otherwise
	// line returns the line of an op in the program, and 0 where the program has
	// no text; nil: no #line directives.
	line    func(*ir.Op) int
	file    string
	at      int // the program's line for the next line of text
	lineSet int // the line set by the last #line directive
}

// newline starts a line of text for o.
func (p *printer) newline(o *ir.Op, depth int) {
	if p.line != nil {
		if o != nil && o.Span != (source.Span{}) {
			p.at = p.line(o)
		}
		if p.at != p.lineSet {
			fmt.Fprintf(&p.b, "#line %d %s\n", p.at, escape.Line(p.file))
			p.lineSet = p.at
		}
	}
	for range depth {
		p.b.WriteString("  ")
	}
}

// statements renders a block.
func (p *printer) statements(list []*stmt, depth int) {
	for i, s := range list {
		if s.style == elseBlock {
			p.b.WriteByte(' ')
		} else {
			p.newline(s.of, depth)
		}
		if s.style < block || s.style > closed {
			p.inline(s)
			p.b.WriteByte('\n')
			continue
		}
		p.b.WriteString(s.head.text(p.kernel, p.renamed))
		p.b.WriteString(" {\n")
		p.statements(s.body, depth+1)
		p.newline(nil, depth)
		p.b.WriteByte('}')
		if s.style == closed {
			p.b.WriteByte(';')
		}
		if i+1 == len(list) || list[i+1].style != elseBlock {
			p.b.WriteByte('\n')
		}
	}
}

// inline renders a statement within a line.
func (p *printer) inline(s *stmt) {
	p.b.WriteString(s.head.text(p.kernel, p.renamed))
	if s.style == plain {
		p.b.WriteByte(';')
	}
	if s.style == inBrace {
		p.b.WriteString(" {")
	}
	for i, c := range s.body {
		if i > 0 || s.head.format != "" {
			p.b.WriteByte(' ')
		}
		p.inline(c)
	}
	if s.style == inBrace {
		p.b.WriteString(" }")
	}
}

// uses are the names that statements use, whether or not they declare them.
func uses(list []*stmt) map[string]bool {
	out := map[string]bool{}
	var walk func([]*stmt)
	walk = func(list []*stmt) {
		for _, s := range list {
			s.head.names(func(n string) { out[n] = true }, func(string) {})
			walk(s.body)
		}
	}
	walk(list)
	return out
}

// unit builds a block of statements.
type unit struct {
	blocks []*[]*stmt // open blocks, innermost last
	place  *ir.Op     // the op of the next statement; nil: that of the one before it
}

func newUnit() *unit { return &unit{blocks: []*[]*stmt{new([]*stmt)}} }

// statements are those of the outermost block.
func (u *unit) statements() []*stmt { return *u.blocks[0] }

func (u *unit) add(s *stmt) *stmt {
	if s.of == nil {
		s.of = u.place
	}
	u.place = nil
	top := u.blocks[len(u.blocks)-1]
	*top = append(*top, s)
	return s
}

// line adds a plain statement.
func (u *unit) line(format string, args ...any) { u.add(&stmt{head: cpp(format, args...)}) }

// of makes o the op of the statements that follow; nil: the op of those before
// them.
func (u *unit) of(o *ir.Op) {
	if o != nil {
		u.place = o
	}
}

// lineOf is line for a statement of o.
func (u *unit) lineOf(o *ir.Op, format string, args ...any) {
	u.of(o)
	u.line(format, args...)
}

// enter opens a block, to which statements are added until leave.
func (u *unit) enter(s style, format string, args ...any) {
	b := u.add(&stmt{head: cpp(format, args...), style: s})
	u.blocks = append(u.blocks, &b.body)
}

func (u *unit) leave() { u.blocks = u.blocks[:len(u.blocks)-1] }

// oneLine adds a statement with its body on the same line.
func (u *unit) oneLine(body code, format string, args ...any) {
	u.add(&stmt{head: cpp(format, args...), style: inLine, body: []*stmt{{head: body}}})
}

// function adds a function of one expression.
func (u *unit) function(result code, format string, args ...any) {
	u.add(&stmt{head: cpp(format, args...), style: inBrace, body: []*stmt{{head: cpp("return %s", result)}}})
}
