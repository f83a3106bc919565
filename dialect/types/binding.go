package types

import "dmir/dialect/dim"

// Binding is what the symbols of a signature stand for where values are passed to its parameters. Symbols are a
// function's own: each call gives them sizes of its own.
type Binding struct {
	Sizes map[string]dim.Dim
	Sites map[string]Site // where each has its size from
}

// Site is one size of a parameter.
type Site struct {
	Param int    // the number of the parameter
	Path  string // from a tuple to the member, "" for a tensor
	Size  int    // the number of the dimension; beyond them, of a level of the format
}

// Mismatch is a parameter that does not take what is passed to it.
type Mismatch struct {
	Site
	Want dim.Dim // the size of the parameter, as its signature has it
	Have dim.Dim // that of the value
	Type bool    // the types differ in more than sizes: there is no single size to speak of
}

// Bind gives the symbols of params, the types of parameters, the sizes that values of the types given have. A parameter
// that is a symbol alone binds it, the first one that has a size with a name; then a formula that is linear in one symbol
// that is not bound yet, such as 2*h, is solved for it. A Mismatch is the first parameter whose sizes are not those of
// its value then; nil where there is none. There must be as many types given as parameters.
func Bind(params, given []Type) (Binding, *Mismatch) {
	b := Binding{map[string]dim.Dim{}, map[string]Site{}}
	var formulas []equation
	for i, want := range params {
		b.symbols(i, want, given[i], &formulas)
	}
	for again := true; again; {
		again = false
		for i, e := range formulas {
			if e.done {
				continue
			}
			if sym, x, ok := b.solve(e); ok {
				b.Sizes[sym], b.Sites[sym] = x, e.at
				formulas[i].done, again = true, true
			}
		}
	}
	for i, want := range params {
		if m := b.compare(i, want, given[i]); m != nil {
			return b, m
		}
	}
	return b, nil
}

// equation is a size of a parameter that is a formula, and the size that it has.
type equation struct {
	want, have dim.Dim
	at         Site
	done       bool
}

// solve gives the one symbol that e leaves open its size. The caller's symbols may have the same names: the open one gets
// a name that no text has.
func (b Binding) solve(e equation) (sym string, x dim.Dim, ok bool) {
	const open = "$"
	with := map[string]dim.Dim{}
	for _, s := range e.want.Symbols() {
		size, bound := b.Sizes[s]
		if !bound {
			if sym != "" {
				return "", x, false
			}
			sym, size = s, dim.Sym(open)
		}
		with[s] = size
	}
	name, x, ok := e.want.Subst(with).Solve(e.have)
	return sym, x, ok && name == open
}

// symbols binds those sizes of parameter number i, of type want, that are symbols, and collects the formulas.
func (b Binding) symbols(i int, want, have Type, formulas *[]equation) {
	pairs(want, have, func(path string, w, h *Tensor) {
		sizes := h.Sizes()
		for j, d := range w.Sizes() {
			if d.IsConst() {
				continue
			}
			at := Site{i, path, j}
			sym, ok := d.Symbol()
			if !ok {
				*formulas = append(*formulas, equation{want: d, have: sizes[j], at: at})
				continue
			}
			if now, bound := b.Sizes[sym]; !bound || now.IsUnnamed() && !sizes[j].IsUnnamed() {
				b.Sizes[sym], b.Sites[sym] = sizes[j], at
			}
		}
	})
}

// compare is the first size of parameter number i that the value passed to it does not have.
func (b Binding) compare(i int, want, have Type) (m *Mismatch) {
	if Compatible(have, Sized(want, b.Sizes)) {
		return nil
	}
	pairs(want, have, func(path string, w, h *Tensor) {
		sizes := h.Sizes()
		for j, d := range w.Sizes() {
			if e := d.Subst(b.Sizes); m == nil && !e.Equal(sizes[j]) && !e.IsUnnamed() && !sizes[j].IsUnnamed() {
				m = &Mismatch{Site: Site{i, path, j}, Want: d, Have: sizes[j]}
			}
		}
	})
	if m == nil {
		return &Mismatch{Site: Site{Param: i}, Type: true}
	}
	return m
}

// pairs visits the tensors of want and have that stand for each other and have as many sizes.
func pairs(want, have Type, visit func(path string, w, h *Tensor)) {
	if !SameStructure(want, have) {
		return
	}
	of := Members(have)
	for i, m := range Members(want) {
		if w, h := m.Tensor, of[i].Tensor; w.Rank() == h.Rank() && w.Format.Alike(h.Format) {
			visit(m.Path, w, h)
		}
	}
}
