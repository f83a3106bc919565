package types

import (
	"slices"

	"dmir/dialect/dim"
)

// Sized is t with sizes for its symbols; t itself where it has none of them.
func Sized(t Type, sizes map[string]dim.Dim) Type {
	return Each(t, func(m Member) Type {
		return m.Tensor.resized(func(_ int, d dim.Dim) dim.Dim { return d.Subst(sizes) })
	})
}

// Bound is t with numbers for the symbols in bind.
func (t *Tensor) Bound(bind map[string]int64) *Tensor {
	return t.resized(func(_ int, d dim.Dim) dim.Dim { return d.Eval(bind) })
}

// Sizes are the sizes of t: its dimensions, then what the compressed levels of its format
// have room for.
func (t *Tensor) Sizes() []dim.Dim {
	if t.Format == nil {
		return t.Shape
	}
	return slices.Concat(t.Shape, t.Format.Stored)
}

// hasSize reports whether yes of a size of t: of a dimension, or of what a level of its
// format has room for.
func (t *Tensor) hasSize(yes func(dim.Dim) bool) bool {
	return slices.ContainsFunc(t.Sizes(), yes)
}

// resized is t with by of each size that is no number, which is called with the number of
// the size: of a dimension, then of a level.
func (t *Tensor) resized(by func(i int, d dim.Dim) dim.Dim) *Tensor {
	if !t.hasSize(func(d dim.Dim) bool { return !d.IsConst() }) {
		return t
	}
	sizes := func(ds []dim.Dim, first int) []dim.Dim {
		out := slices.Clone(ds)
		for i, d := range out {
			if !d.IsConst() {
				out[i] = by(first+i, d)
			}
		}
		return out
	}
	r := *t
	r.Shape = sizes(t.Shape, 0)
	if t.Format != nil {
		f := *t.Format
		f.Stored = sizes(f.Stored, len(t.Shape))
		r.Format = &f
	}
	return &r
}

// Refined is t with the symbols of from, of which t is another text, for its sizes
// without a name.
func (t *Tensor) Refined(from *Tensor) *Tensor {
	have := from.Sizes()
	if t.Rank() != from.Rank() || !t.Format.Alike(from.Format) {
		return t
	}
	return t.resized(func(i int, d dim.Dim) dim.Dim {
		if d.IsUnnamed() && have[i].IsUnnamed() {
			return have[i]
		}
		return d
	})
}
