package parse

import (
	"fmt"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

var formNames = [...]string{"generic", "pretty", "custom", "attr-alias", "type-alias", "split", "resource", "bad"}

// dump writes a tree compactly, one op to a line, every range as its text.
func dump(f *ast.File) string {
	d := &dumper{src: f.Src}
	for _, op := range f.Items {
		d.op(op, 0)
	}
	for _, x := range f.Diags {
		line, col := f.Src.Human(x.Span.Start)
		fmt.Fprintf(&d.out, "! %d:%d %s %s: %s `%s`\n", line, col, x.Code, x.Name, x.Message, short(f.Src.Slice(x.Span)))
		for _, r := range x.Related {
			line, col := f.Src.Human(r.Span.Start)
			fmt.Fprintf(&d.out, "!   %d:%d %s `%s`\n", line, col, r.Message, short(f.Src.Slice(r.Span)))
		}
	}
	return d.out.String()
}

type dumper struct {
	out strings.Builder
	src *source.File
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 60 {
		return s[:30] + "…" + s[len(s)-20:]
	}
	return s
}

func (d *dumper) op(op *ast.Op, depth int) {
	pad := strings.Repeat("  ", depth)
	text := func(r ast.Rel) string { return short(op.Text(d.src, r)) }
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s", pad, formNames[op.Form])
	part := func(name string, r ast.Rel) {
		if !r.Empty() {
			fmt.Fprintf(&b, " %s=%s", name, text(r))
		}
	}
	for _, r := range op.Results {
		fmt.Fprintf(&b, " %s:%d", r.Name, r.Count)
	}
	if op.Name != "" {
		fmt.Fprintf(&b, " %q", op.Name)
	}
	for _, u := range op.Operands {
		fmt.Fprintf(&b, " use %s", text(u.Span))
	}
	for _, a := range op.Defs {
		fmt.Fprintf(&b, " def %s", arg(a, text))
	}
	part("lead", op.Lead)
	for _, c := range op.Clauses {
		fmt.Fprintf(&b, " %s=(%s)", c.Name, text(c.Value))
	}
	part("props", op.Props)
	part("attrs", op.Attrs)
	part("sig", op.Sig)
	part("loc", op.Loc)
	for _, s := range op.Succs {
		fmt.Fprintf(&b, " to %s/%d", s.Name, len(s.Args))
	}
	for _, s := range op.Symbols {
		fmt.Fprintf(&b, " %s", s.Name)
		if s.Def {
			b.WriteString("!")
		}
	}
	for _, a := range op.Aliases {
		fmt.Fprintf(&b, " alias %s", a.Name)
	}
	if f := op.Func; f != nil {
		fmt.Fprintf(&b, " func[%s %s", f.Visibility, f.Name)
		for _, a := range f.Args {
			fmt.Fprintf(&b, " (%s)", arg(a, text))
		}
		if f.Variadic {
			b.WriteString(" ...")
		}
		for _, a := range f.Results {
			fmt.Fprintf(&b, " ->(%s)", arg(a, text))
		}
		b.WriteString("]")
	}
	d.out.WriteString(b.String() + "\n")
	for _, r := range op.Regions {
		fmt.Fprintf(&d.out, "%s  {%s", pad, text(r.Keyword))
		if r.Close < 0 {
			d.out.WriteString(" unclosed")
		}
		d.out.WriteString("\n")
		for _, b := range r.Blocks {
			if b.Label != "" {
				fmt.Fprintf(&d.out, "%s  %s", pad, b.Label)
				for _, a := range b.Args {
					fmt.Fprintf(&d.out, " (%s)", arg(a, text))
				}
				d.out.WriteString("\n")
			}
			for _, o := range b.Ops {
				d.op(o, depth+2)
			}
		}
	}
}

func arg(a ast.BlockArg, text func(ast.Rel) string) string {
	s := a.Name
	if !a.Type.Empty() {
		s += ":" + text(a.Type)
	}
	if !a.Attrs.Empty() {
		s += " " + text(a.Attrs)
	}
	if !a.Loc.Empty() {
		s += " " + text(a.Loc)
	}
	return s
}

// check returns what is wrong with the positions of a tree, "" if nothing is.
func check(f *ast.File) string {
	c := &checker{f: f}
	if len(f.Items) > 0 || len(f.Diags) == 0 {
		c.ops(f.Items, 0, f.Src.Len())
	}
	for _, d := range f.Diags {
		c.diag(d)
	}
	return c.msg
}

type checker struct {
	f   *ast.File
	msg string
}

func (c *checker) failf(format string, args ...any) {
	if c.msg == "" {
		c.msg = fmt.Sprintf(format, args...)
	}
}

func (c *checker) diag(d diag.Diagnostic) {
	if d.Span.Start < 0 || d.Span.End > c.f.Src.Len() || d.Span.Len() < 1 && c.f.Src.Len() > 0 {
		c.failf("diagnostic %s spans %v of %d", d.Code, d.Span, c.f.Src.Len())
	}
	if diag.Find(d.Code).Code == "" || d.Message == "" || d.Help == "" || strings.Contains(d.Message, "\n") {
		c.failf("diagnostic %+v is incomplete", d)
	}
}

// ops checks that the ops lie in order in [at, end) with nothing but blanks
// and comments between them.
func (c *checker) ops(ops []*ast.Op, at, end int) {
	for _, op := range ops {
		c.gap(at, op.Off)
		if op.Len <= 0 || op.Span().End > end {
			c.failf("op %q spans %v, outside of %d", op.Name, op.Span(), end)
			return
		}
		c.op(op)
		at = op.Span().End
	}
	c.gap(at, end)
}

func (c *checker) gap(from, to int) {
	if from > to {
		c.failf("ops overlap: %d > %d", from, to)
		return
	}
	cur := lex.New(c.f.Src.Text(), from, to)
	if t := cur.Next(); t.Kind != lex.EOF {
		c.failf("%q at %d belongs to no op", c.f.Src.Text()[t.Start:t.End], t.Start)
	}
}

func (c *checker) op(op *ast.Op) {
	in := func(what string, r ast.Rel) {
		if r.Start < 0 || r.End > op.Len || r.Start > r.End {
			c.failf("%s of %q is at %v of %d", what, op.Name, r, op.Len)
		}
	}
	for name, r := range map[string]ast.Rel{
		"name": op.NameSpan, "lead": op.Lead, "props": op.Props, "attrs": op.Attrs, "sig": op.Sig, "loc": op.Loc,
	} {
		in(name, r)
	}
	named := func(what, name string, r ast.Rel) {
		in(what, r)
		if c.msg == "" && !strings.HasPrefix(op.Text(c.f.Src, r), name) {
			c.failf("%s %s of %q is at %q", what, name, op.Name, op.Text(c.f.Src, r))
		}
	}
	args := func(what string, list []ast.BlockArg) {
		for _, a := range list {
			named(what, a.Name, a.Span)
			in(what, a.Type)
			in(what, a.Attrs)
			in(what, a.Loc)
		}
	}
	for _, x := range op.Results {
		named("result", x.Name, x.Span)
	}
	for _, x := range op.Operands {
		named("operand", x.Name, x.Span)
	}
	args("definition", op.Defs)
	for _, x := range op.Clauses {
		named("clause", x.Name, x.NameSpan)
		in("clause", x.Value)
	}
	for _, x := range op.Succs {
		named("successor", x.Name, x.Span)
	}
	for _, x := range op.Symbols {
		named("symbol", x.Name, x.Span)
	}
	for _, x := range op.Aliases {
		named("alias", x.Name, x.Span)
	}
	if op.Func != nil {
		args("argument", op.Func.Args)
		args("result", op.Func.Results)
	}
	for _, d := range op.Diags {
		d.Span.Start += op.Off
		d.Span.End += op.Off
		c.diag(d)
	}
	if op.Form == ast.Bad && len(op.Diags) == 0 {
		c.failf("a bad op at %d without a diagnostic", op.Off)
	}
	for _, r := range op.Regions {
		c.region(op, r, args, named)
	}
}

func (c *checker) region(op *ast.Op, r *ast.Region, args func(string, []ast.BlockArg), named func(string, string, ast.Rel)) {
	text, end := c.f.Src.Text(), op.Span().End
	if r.Open < 0 || r.Open >= op.Len || text[op.Off+int(r.Open)] != '{' {
		c.failf("a region of %q opens at %d", op.Name, r.Open)
		return
	}
	if r.Close >= 0 {
		end = op.Off + int(r.Close)
		if r.Close >= op.Len || text[end] != '}' {
			c.failf("a region of %q closes at %d", op.Name, r.Close)
			return
		}
	}
	for _, b := range r.Blocks {
		named("label", b.Label, b.Span)
		args("block argument", b.Args)
		for _, o := range b.Ops {
			if o.Off <= op.Off+int(r.Open) || o.Span().End > end {
				c.failf("op %q lies outside of its region", o.Name)
			}
			c.op(o)
		}
	}
}
