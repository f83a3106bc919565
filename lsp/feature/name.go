package feature

import (
	"cmp"
	"errors"
	"slices"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Definition is where the name at off is defined; more than once if it is
// defined more than once.
func Definition(names *scope.Index, off int) []source.Span {
	n, _, ok := names.At(off)
	if !ok {
		return nil
	}
	return n.Defs()
}

// References are the uses of the name at off, in order, with its definitions
// where asked for.
func References(names *scope.Index, off int, definitions bool) []source.Span {
	n, _, ok := names.At(off)
	if !ok {
		return nil
	}
	out := slices.Clone(n.Uses())
	if definitions {
		out = append(out, n.Defs()...)
	}
	slices.SortFunc(out, func(a, b source.Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// Highlight is an appearance of a name.
type Highlight struct {
	Span  source.Span
	Write bool // defines it
}

// Highlights are all appearances of the name at off, in order.
func Highlights(names *scope.Index, off int) []Highlight {
	n, _, ok := names.At(off)
	if !ok {
		return nil
	}
	var out []Highlight
	for _, s := range n.Defs() {
		out = append(out, Highlight{s, true})
	}
	for _, s := range n.Uses() {
		out = append(out, Highlight{s, false})
	}
	slices.SortFunc(out, func(a, b Highlight) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return out
}

// Renameable is the name at off as it is written, and where; ok is false where
// nothing there can be renamed.
func Renameable(names *scope.Index, off int) (span source.Span, name string, ok bool) {
	n, span, ok := names.At(off)
	if !ok || len(n.Defs()) == 0 {
		return source.Span{}, "", false
	}
	return span, n.Text, true
}

// Rename are the edits that give the name at off another spelling.
func Rename(names *scope.Index, off int, to string) ([]diag.Edit, error) {
	n, _, ok := names.At(off)
	switch {
	case !ok:
		return nil, errors.New("there is no name to rename here")
	case len(n.Defs()) == 0:
		return nil, errors.New(n.Text + " is not defined in this file")
	}
	return scope.Rename(names, n, to)
}

// TypeDefinition is where the aliases are defined that spell the type of the
// value at off, or the alias at off itself; none where the type is written out.
func TypeDefinition(p *program.Program, off int) []source.Span {
	names := p.Names()
	n, span, ok := names.At(off)
	switch {
	case !ok:
		return nil
	case n.Kind == scope.TypeAlias || n.Kind == scope.AttrAlias:
		return n.Defs()
	case n.Kind != scope.Value || len(n.Defs()) == 0:
		return nil
	}
	var out []source.Span
	for _, t := range lex.Tokens(p.Src.Text(), typeSpan(p, valueOf(p, n, span.Start))) {
		alias, use, ok := names.At(t.Start + 1)
		if ok && use == t.Span && (alias.Kind == scope.TypeAlias || alias.Kind == scope.AttrAlias) {
			out = append(out, alias.Defs()...)
		}
	}
	return out
}

// typeSpan is where the type of v is written: beside an argument, or in the
// signature of the op that gives it. It is empty where the type is not written.
func typeSpan(p *program.Program, v *ir.Value) source.Span {
	switch {
	case v == nil:
		return source.Span{}
	case v.Op != nil && origin.Tree(v.Op) != nil:
		t := origin.Tree(v.Op)
		sig, err := parse.Signature(t.Text(p.Src, t.Sig))
		if err != nil {
			return source.Span{}
		}
		spans, i := sig.OutSpans, v.Index
		if sig.Single {
			spans, i = sig.InSpans, 0
		}
		if i >= len(spans) {
			return source.Span{}
		}
		return t.Abs(ast.Rel{Start: t.Sig.Start + spans[i].Start, End: t.Sig.Start + spans[i].End})
	case v.Block != nil && v.Block.Region != nil && origin.Tree(v.Block.Region.Op) != nil:
		t := origin.Tree(v.Block.Region.Op)
		args := slices.Clone(t.Defs)
		for _, r := range t.Regions {
			for _, b := range r.Blocks {
				args = append(args, b.Args...)
			}
		}
		for _, a := range args {
			if t.Off+int(a.Span.Start) == v.Span.Start {
				return t.Abs(a.Type)
			}
		}
	}
	return source.Span{}
}

// EditedTogether are the places of the value named at off, which keep one
// spelling while any of them is edited. Other names are shared with other
// tools, or with quotes in the way, and are renamed instead.
func EditedTogether(names *scope.Index, off int) []source.Span {
	n, _, ok := names.At(off)
	if !ok || n.Kind != scope.Value || len(n.Defs()) != 1 {
		return nil
	}
	return References(names, off, true)
}
