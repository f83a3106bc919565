package program

import (
	"maps"
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Symbols are the dimension symbols that can be given a size: those of the types
// of values and of attributes that are sizes, those that functions bind themselves, and, where there is a loop
// whose turns are not known, their number.
func (p *Program) Symbols() []string {
	have := map[string]bool{}
	of := func(d dim.Dim) {
		for _, s := range d.Symbols() {
			if !dim.Sym(s).IsUnnamed() {
				have[s] = true
			}
		}
	}
	add := func(v *ir.Value) {
		if t := v.Tensor(); t != nil {
			for _, d := range t.Sizes() {
				of(d)
			}
		}
	}
	for _, m := range p.Modules {
		for _, name := range m.Sizes {
			have[name] = true
		}
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			for _, v := range o.Results {
				add(v)
			}
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					for _, v := range b.Args {
						add(v)
					}
				}
			}
			if n, ok := op.Size(o, op.ProductsAttr); ok {
				of(n)
			}
			if _, known := op.Trips(o); o.Name == op.While && !known {
				have[cost.Trips] = true
			}
			own, _ := o.Attr(op.BindAttr).(types.Dict)
			for _, e := range own {
				have[e.Name] = true
			}
			return true
		})
		for _, f := range m.Funcs {
			for _, t := range f.Results {
				add(&ir.Value{Type: t})
			}
		}
	}
	return slices.Sorted(maps.Keys(have))
}
