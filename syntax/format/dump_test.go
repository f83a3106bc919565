package format_test

import (
	"fmt"
	"strings"

	"dmir/syntax/ast"
)

// dump writes a tree without positions: each range as the tokens it covers.
func dump(f *ast.File) string {
	d := &dumper{f: f}
	for _, o := range f.Items {
		d.op(o, 0)
	}
	return d.b.String()
}

type dumper struct {
	f *ast.File
	b strings.Builder
}

func (d *dumper) line(depth int, format string, args ...any) {
	d.b.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&d.b, format, args...)
	d.b.WriteByte('\n')
}

func (d *dumper) text(o *ast.Op, r ast.Rel) string {
	if r.Empty() {
		return "-"
	}
	return strings.Join(parsed(o.Text(d.f.Src, r)), " ")
}

func (d *dumper) op(o *ast.Op, depth int) {
	if o.Form == ast.Bad {
		d.line(depth, "bad %q", strings.TrimSpace(o.Text(d.f.Src, ast.Rel{End: o.Len})))
		return
	}
	d.line(depth, "%d %s results %d operands %d", o.Form, o.Name, len(o.Results), len(o.Operands))
	for _, r := range o.Results {
		d.line(depth+2, "result %s:%d", r.Name, r.Count)
	}
	for _, u := range o.Operands {
		d.line(depth+2, "use %s#%d %s : %s", u.Name, u.Index, d.text(o, u.Span), d.text(o, u.Type))
	}
	d.args(o, "def", o.Defs, depth+2)
	for _, part := range []struct {
		name string
		at   ast.Rel
	}{{"lead", o.Lead}, {"props", o.Props}, {"attrs", o.Attrs}, {"sig", o.Sig}, {"loc", o.Loc}} {
		if !part.at.Empty() {
			d.line(depth+2, "%s %s", part.name, d.text(o, part.at))
		}
	}
	for _, c := range o.Clauses {
		d.line(depth+2, "clause %s = %s", c.Name, d.text(o, c.Value))
	}
	for _, s := range o.Succs {
		d.line(depth+2, "successor %s with %d", s.Name, len(s.Args))
	}
	for _, s := range o.Symbols {
		d.line(depth+2, "symbol %s %t", s.Name, s.Def)
	}
	for _, a := range o.Aliases {
		d.line(depth+2, "alias %s", a.Name)
	}
	if o.Func != nil {
		d.line(depth+2, "func %s %s variadic %t", o.Func.Visibility, o.Func.Name, o.Func.Variadic)
		d.args(o, "argument", o.Func.Args, depth+2)
		d.args(o, "result", o.Func.Results, depth+2)
	}
	for _, r := range o.Regions {
		d.line(depth+1, "region %s closed %t", d.text(o, r.Keyword), r.Close >= 0)
		for _, b := range r.Blocks {
			d.line(depth+1, "block %s", b.Label)
			d.args(o, "argument", b.Args, depth+2)
			for _, inner := range b.Ops {
				d.op(inner, depth+2)
			}
		}
	}
}

func (d *dumper) args(o *ast.Op, what string, args []ast.BlockArg, depth int) {
	for _, a := range args {
		d.line(depth, "%s %s : %s %s %s", what, a.Name, d.text(o, a.Type), d.text(o, a.Attrs), d.text(o, a.Loc))
	}
}
