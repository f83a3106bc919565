// Package linalg imports programs in MLIR's own dialects linalg, sparse_tensor, tensor and
// arith: products, sums and element-wise functions of dense and sparse tensors, in pretty
// or generic form, become ops of the dialect.
//
// Of a function sizes.go first finds which sizes are the same, so that those left open
// have names; function.go builds its ops, body.go those of the region of a linalg.generic:
// scalars in it stand for tensors with a letter for each loop that they vary along; semiring.go
// those of sparse_tensor. A
// function with an op that is not read is left out, with one diagnostic that names the
// first; the others are imported if there are some.
package linalg

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Holds reports whether the program f is one for Import: it has ops of linalg or
// sparse_tensor, and none of the data-movement dialect.
func Holds(f *ast.File) bool {
	own, upstream := false, false
	ast.Walk(f.Items, func(o *ast.Op) bool {
		own = own || strings.HasPrefix(o.Name, op.Prefix)
		upstream = upstream || strings.HasPrefix(o.Name, "linalg.") || strings.HasPrefix(o.Name, "sparse_tensor.")
		return !own
	})
	return upstream && !own
}

// Import is the sections of f, cut at "// -----", as modules of the dialect. bind has numbers
// for sizes that the program leaves open, by the names that they get.
func Import(f *ast.File, bind map[string]int64) []*ir.Module {
	var out []*ir.Module
	start := 0
	for i, item := range f.Items {
		if item.Form == ast.Split {
			out = append(out, section(f, f.Items[start:i], bind))
			start = i + 1
		}
	}
	return append(out, section(f, f.Items[start:], bind))
}

// importer imports one section.
type importer struct {
	src  *source.File
	m    *ir.Module
	env  types.Env
	bind map[string]int64
}

// symbol is the size called name.
func (c *importer) symbol(name string) dim.Dim {
	if n, ok := c.bind[name]; ok {
		if !slices.Contains(c.m.Sizes, name) {
			c.m.Sizes = append(c.m.Sizes, name)
		}
		return dim.Const(n)
	}
	return dim.Sym(name)
}

func section(f *ast.File, items []*ast.Op, bind map[string]int64) *ir.Module {
	c := &importer{src: f.Src, m: &ir.Module{Src: f.Src}, bind: bind}
	c.m.Aliases = &c.env
	for _, d := range f.Diags {
		if len(items) > 0 && d.Severity == diag.Error && d.Span.Start >= items[0].Off && d.Span.Start <= items[len(items)-1].Span().End {
			c.m.Diags = append(c.m.Diags, d)
		}
	}
	var funcs []*ast.Op
	ast.Walk(items, func(o *ast.Op) bool {
		switch {
		case o.Form == ast.AttrAlias:
			if x, err := parse.Attr(o.Text(c.src, o.Lead)); err == nil {
				c.env.DefineAttr(o.Name, x)
			}
		case o.Form == ast.TypeAlias:
			if x, err := parse.Type(o.Text(c.src, o.Sig)); err == nil {
				c.env.DefineType(o.Name, x)
			}
		case o.Name == op.Func:
			funcs = append(funcs, o)
			return false
		}
		return true
	})
	var left []diag.Diagnostic
	for _, o := range funcs {
		if err := c.function(o); err != nil {
			left = append(left, c.diagnostic(o, err))
		}
	}
	for _, d := range left {
		if len(c.m.Funcs) > 0 {
			d.Severity = diag.Warning
			d.Message = "left out: " + d.Message
		}
		c.m.Diags = append(c.m.Diags, d)
	}
	return c.m
}

// problem is why a function is not imported, and the op that is to blame.
type problem struct {
	o   *ast.Op
	msg string
}

func (p *problem) Error() string { return p.msg }

func unsupported(o *ast.Op, format string, args ...any) error {
	return &problem{o, fmt.Sprintf(format, args...)}
}

func (c *importer) diagnostic(f *ast.Op, err error) diag.Diagnostic {
	at := f.Head()
	var p *problem
	if errors.As(err, &p) {
		at = p.o.Head()
	}
	name := ""
	if f.Func != nil {
		name = f.Func.Name + ": "
	}
	return diag.New(stablehlo.Unsupported, diag.Error, at, name+err.Error())
}

// typed is the type that text states.
func (c *importer) typed(text string) (types.Type, error) {
	x, err := parse.Type(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	return types.FromExpr(x, &c.env)
}

// attrs are the attributes of o, from its dictionaries and the alias of one.
func (c *importer) attrs(o *ast.Op) map[string]*ast.AttrExpr {
	out := map[string]*ast.AttrExpr{}
	add := func(text string) {
		x, err := parse.Attr(text)
		if err != nil {
			return
		}
		for _, e := range x.Entries {
			if e.Value != nil {
				out[e.Key] = c.resolved(e.Value)
			}
		}
	}
	if !o.Props.Empty() {
		add(o.Text(c.src, ast.Rel{Start: o.Props.Start + 1, End: o.Props.End - 1}))
	}
	if !o.Attrs.Empty() {
		add(o.Text(c.src, o.Attrs))
	}
	for _, a := range o.Aliases {
		if o.Form == ast.Custom && int(a.Span.Start) < strings.Index(c.text(o), "(") {
			add(c.env.Expand(o.Text(c.src, a.Span)))
		}
	}
	if _, rest, ok := strings.Cut(c.text(o), "permutation ="); ok && o.Form == ast.Custom {
		if at := strings.IndexByte(rest, ']'); at >= 0 {
			if x, err := parse.Attr(strings.TrimSpace(rest[:at+1])); err == nil {
				out["permutation"] = x
			}
		}
	}
	return out
}

// resolved is x, or what it is an alias of.
func (c *importer) resolved(x *ast.AttrExpr) *ast.AttrExpr {
	if x.Kind == ast.AAlias {
		if y, err := parse.Attr(c.env.Expand(x.Text)); err == nil {
			return y
		}
	}
	return x
}

// text is o as it is written.
func (c *importer) text(o *ast.Op) string { return o.Text(c.src, ast.Rel{Start: 0, End: o.Len}) }
