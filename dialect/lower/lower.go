// Package lower turns the tree of a text into the typed SSA form: names become
// values, texts become types and attribute values, the dm ops' pretty form and
// MLIR's generic form become the same op. It never fails. Module.Diags holds what
// is wrong in the text, the op concerned is marked Bad, and values that cannot be
// known have the type Unknown, so that the rest is usable and each mistake is
// reported once. Package syntax/scope reports mistakes in the names of labels,
// symbols and aliases; here the op concerned is only marked.
//
// The steps for one op, in the order of the text: operands, attributes,
// regions, signature, results.
package lower

import (
	"sort"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// File lowers the sections of a file, cut at "// -----": one module for each.
func File(f *ast.File) []*ir.Module { return Open(f, nil).Modules }

// Unit is a lowered file that can follow changes of its text.
type Unit struct {
	Modules  []*ir.Module
	sections []*lowerer
	arrays   types.Arrays
	bodies   map[*ir.Block]*body
}

// Open is like File. The elements of literals that are in files are in arrays.
func Open(f *ast.File, arrays types.Arrays) *Unit {
	u := &Unit{arrays: arrays, bodies: map[*ir.Block]*body{}}
	start := 0
	for i, item := range f.Items {
		if item.Form == ast.Split {
			u.section(f.Src, f.Items[start:i:i])
			start = i + 1
		}
	}
	u.section(f.Src, f.Items[start:])
	return u
}

func (u *Unit) section(src *source.File, items []*ast.Op) {
	l := section(src, items, u.arrays)
	u.Modules = append(u.Modules, l.m)
	u.sections = append(u.sections, l)
}

// lowerer lowers one section.
type lowerer struct {
	src    *source.File
	m      *ir.Module
	env    types.Env
	locs   *loc.Reader
	root   *scope // of the section's top level
	scope  *scope
	spare  *scope // of an isolated op that has ended
	arrays types.Arrays
	slab   slab

	sigs  map[string]*signature
	attrs map[string]attrText

	insideOf    *ast.Op // the op that insideNames are of; see inside
	insideNames map[string]bool
	began       int        // pending uses before the current region
	region      *ir.Region // whose ops are being lowered; nil at top level
	blocks      map[string]*ir.Block
	badTypes    map[source.Span]bool // reported already
	seen        map[string]*ast.Op   // ops of unknown dialects, by name: the first of each is reported
	guessed     []*ir.Value          // values whose types were guessed
	outrun      []*ir.Value          // values whose types were guessed from a use, and then used before it
	lost        []string             // names of unknown ops whose first op is gone
	loose       bool                 // there may be uses without definition
	untyped     int                  // results so far that have neither a name nor a type of their own in the text
	unreadable  int                  // ops around that could not be read: what they define for their regions is not known
}

// Bounds of did-you-mean searches, so that a file full of errors costs no more
// than its length.
const (
	maxPending = 500 // uses in one function that wait for a definition; for later ones nothing is guessed
	firstNames = 32  // of the values around a use that are looked at: the first ones, arguments mostly,
	lastNames  = 256 // and the last ones before it
)

func section(src *source.File, items []*ast.Op, arrays types.Arrays) *lowerer {
	l := &lowerer{
		arrays:   arrays,
		src:      src,
		m:        &ir.Module{Src: src, Origin: &ast.File{Src: src, Items: items}},
		root:     newScope(nil),
		sigs:     map[string]*signature{},
		attrs:    map[string]attrText{},
		badTypes: map[source.Span]bool{},
		seen:     map[string]*ast.Op{},
	}
	l.scope, l.locs = l.root, loc.NewReader(&l.env)
	l.aliases(items)
	l.m.Aliases = &l.env
	for _, t := range items {
		if t.Form == ast.Resource {
			l.m.Resources = append(l.m.Resources, t.Span())
		}
	}
	outer, items := flatten(items)
	if outer != nil {
		l.outer(outer)
	}
	for _, t := range items {
		if o := l.op(t, nil); o != nil {
			l.m.Ops = append(l.m.Ops, o)
		}
	}
	l.unresolved()
	l.guessed, l.outrun, l.spare, l.insideOf, l.insideNames = nil, nil, nil, nil, nil
	sortDiags(l.m.Diags)
	return l
}

func sortDiags(ds []diag.Diagnostic) {
	sort.SliceStable(ds, func(i, j int) bool { return ds[i].Span.Start < ds[j].Span.Start })
}

// flatten looks through a module that holds everything else.
func flatten(items []*ast.Op) (outer *ast.Op, inner []*ast.Op) {
	for _, t := range items {
		switch t.Form {
		case ast.AttrAlias, ast.TypeAlias, ast.Resource:
			continue
		}
		if outer != nil || canonical(t.Name) != "builtin.module" || len(t.Regions) != 1 || len(t.Regions[0].Blocks) > 1 {
			return nil, items
		}
		outer = t
	}
	if outer == nil || len(outer.Regions[0].Blocks) == 0 {
		return outer, nil
	}
	return outer, outer.Regions[0].Blocks[0].Ops
}

func (l *lowerer) outer(t *ast.Op) {
	o := l.newOp(t, nil)
	l.attributes(o, t, nil)
	l.moduleName(o, t)
	o.Regions = nil
	l.m.Outer = o
}

// aliases reads the definitions of the section; uses may precede them.
func (l *lowerer) aliases(items []*ast.Op) {
	for _, t := range items {
		switch t.Form {
		case ast.AttrAlias:
			x, err := parse.Attr(t.Text(l.src, t.Lead))
			if err != nil {
				l.reportParse(nil, t, t.Lead, err)
				continue
			}
			l.env.DefineAttr(t.Name, x)
		case ast.TypeAlias:
			x, err := parse.Type(t.Text(l.src, t.Sig))
			if err != nil {
				l.reportParse(nil, t, t.Sig, err)
				continue
			}
			l.env.DefineType(t.Name, x)
		}
	}
}

// unresolved reports the uses for which no definition came. What the form of
// another dialect's op means is not known, so there it is no certain error; an op
// that cannot be read has an error already.
func (l *lowerer) unresolved() {
	for _, uses := range l.scope.pending {
		for _, p := range uses {
			switch p.form {
			case ast.Bad:
				continue
			case ast.Custom:
				if !p.own {
					l.report(nil, "DM160", p.span, "%s is not defined", p.name).Severity = diag.Hint
				}
				continue
			}
			switch d := l.report(p.op, "DM160", p.span, "%s is not defined", p.name); {
			case p.hidden:
				d.Message = p.name + " is defined outside and is not visible here"
				d.Help = "functions and scalar regions cannot use values from outside: pass it as an operand"
			case p.guess != "":
				d.Replace(p.guess)
			}
		}
	}
}

// guess is the value name most like name among those nearby, "" where none is.
func (l *lowerer) guess(name string) string {
	if l.scope.waiting > maxPending {
		return ""
	}
	return diag.Suggest(name, l.scope.nearby())
}
