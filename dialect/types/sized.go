package types

import (
	"slices"

	"dmir/dialect/dim"
)

// Sized is t with sizes for its symbols; t itself where it has none of them.
func Sized(t Type, sizes map[string]dim.Dim) Type {
	w, ok := t.(*Tensor)
	if !ok || !slices.ContainsFunc(w.Shape, func(d dim.Dim) bool { return !d.IsConst() }) {
		return t
	}
	r := *w
	r.Shape = make([]dim.Dim, len(w.Shape))
	for i, d := range w.Shape {
		r.Shape[i] = d.Subst(sizes)
	}
	return &r
}
