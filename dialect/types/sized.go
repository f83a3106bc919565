package types

import (
	"slices"

	"dmir/dialect/dim"
)

// Sized is t with sizes for its symbols; t itself where it has none of them.
func Sized(t Type, sizes map[string]dim.Dim) Type {
	return Each(t, func(m Member) Type {
		w := m.Tensor
		if !slices.ContainsFunc(w.Shape, func(d dim.Dim) bool { return !d.IsConst() }) {
			return w
		}
		r := *w
		r.Shape = make([]dim.Dim, len(w.Shape))
		for i, d := range w.Shape {
			r.Shape[i] = d.Subst(sizes)
		}
		return &r
	})
}

// Unify notes in sizes what the symbols of a parameter of type want stand for
// where it takes a value of type have. What a symbol stands for already remains.
func Unify(want, have Type, sizes map[string]dim.Dim) {
	if g, ok := want.(*Tuple); ok && SameStructure(want, have) {
		for i, m := range g.Of {
			Unify(m, have.(*Tuple).Of[i], sizes)
		}
		return
	}
	w, ok := want.(*Tensor)
	h, ok2 := have.(*Tensor)
	if !ok || !ok2 || w.Rank() != h.Rank() {
		return
	}
	for i, d := range w.Shape {
		if names := d.Symbols(); len(names) == 1 && d.Equal(dim.Sym(names[0])) {
			if _, known := sizes[names[0]]; !known {
				sizes[names[0]] = h.Shape[i]
			}
		}
	}
}
