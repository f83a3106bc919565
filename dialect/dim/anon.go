package dim

import "strings"

// Unnamed is the size of a "?" that carries no name: a symbol of its own, made
// unique by id (where it is declared). It prints as "?" and agrees with every
// other size as far as can be known before run time.
func Unnamed(id string) Dim { return Sym(unnamedPrefix + id) }

const unnamedPrefix = "?"

// IsUnnamed reports whether d contains the size of a "?" without a name.
func (d Dim) IsUnnamed() bool {
	for _, t := range d.poly() {
		for _, s := range t.syms {
			if strings.HasPrefix(s, unnamedPrefix) {
				return true
			}
		}
	}
	return false
}
