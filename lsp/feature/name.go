package feature

import (
	"cmp"
	"errors"
	"slices"

	"dmir/syntax/diag"
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
	return n.Defs
}

// References are the uses of the name at off, in order, with its definitions
// where asked for.
func References(names *scope.Index, off int, definitions bool) []source.Span {
	n, _, ok := names.At(off)
	if !ok {
		return nil
	}
	out := slices.Clone(n.Uses)
	if definitions {
		out = append(out, n.Defs...)
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
	for _, s := range n.Defs {
		out = append(out, Highlight{s, true})
	}
	for _, s := range n.Uses {
		out = append(out, Highlight{s, false})
	}
	slices.SortFunc(out, func(a, b Highlight) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return out
}

// Renameable is the name at off as it is written, and where; ok is false where
// nothing there can be renamed.
func Renameable(names *scope.Index, off int) (span source.Span, name string, ok bool) {
	n, span, ok := names.At(off)
	if !ok || len(n.Defs) == 0 {
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
	case len(n.Defs) == 0:
		return nil, errors.New(n.Text + " is defined nowhere in this file")
	}
	return scope.Rename(names, n, to)
}
