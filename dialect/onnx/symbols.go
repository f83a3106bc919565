package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/dim"
)

// Sizes that a model leaves open become symbols. The model is imported with several
// numbers for each, and what the programs have in common is the program for all sizes
// (generalize.go). It holds for those sizes at which the nodes' shapes, and what sizes
// decide besides, are what its formulas say (probe.go); the others are the limits that
// the function's attribute dm.sizes states.

// openSize is a size of an input that neither the model nor the options give.
type openSize struct {
	name   string // in the model and the options
	symbol string // in the program
	input  string
	dim    int
	// formula is the symbol or, where the name is a formula in the symbols of others,
	// as in "past + sequence", that.
	formula dim.Dim
}

// openSizes are those of a model, each once.
func openSizes(p *modelProto, opts Options) []openSize {
	given := map[string]bool{}
	for _, c := range p.graph.constants {
		given[c.name] = true
	}
	var out []openSize
	taken := map[string]bool{}
	for _, in := range p.graph.inputs {
		if _, shaped := opts.Shapes[in.name]; shaped || given[in.name] || opts.Values[in.name] != nil {
			continue
		}
		for i, s := range in.shape {
			name := in.size(i)
			_, bound := opts.size(name)
			if s.known || bound || slices.ContainsFunc(out, func(o openSize) bool { return o.name == name }) {
				continue
			}
			symbol := symbolOf(name)
			for n := 1; taken[symbol]; n++ {
				symbol = fmt.Sprintf("%s_%d", symbolOf(name), n)
			}
			taken[symbol] = true
			out = append(out, openSize{name, symbol, in.name, i, dim.Sym(symbol)})
		}
	}
	plain := slices.Clone(out)
	for k, o := range out {
		d, err := dim.Parse(o.name)
		known := func(s string) bool {
			return slices.ContainsFunc(plain, func(q openSize) bool { return q.symbol == s && q.name == s && q.name != o.name })
		}
		if err == nil && len(d.Symbols()) > 0 && !slices.ContainsFunc(d.Symbols(), func(s string) bool { return !known(s) }) {
			out[k].formula = d
		}
	}
	return out
}

// computed gives the sizes whose names are formulas in sizes that are given their numbers.
func (o Options) computed(p *modelProto) Options {
	bind := maps.Clone(o.Bind)
	for _, in := range p.graph.inputs {
		for i := range in.shape {
			name := in.size(i)
			if _, given := o.size(name); given {
				continue
			}
			if d, err := dim.Parse(name); err == nil {
				if n, ok := d.Eval(o.Bind).Int(); ok && n >= 0 && len(d.Symbols()) > 0 {
					bind[name] = n
				}
			}
		}
	}
	o.Bind = bind
	return o
}

// size is the number that the options give a size, by its name or its symbol.
func (o Options) size(name string) (n int64, ok bool) {
	if n, ok = o.Bind[name]; !ok {
		n, ok = o.Bind[symbolOf(name)]
	}
	return n, ok
}

// symbolOf is the name of a size as the dialect spells symbols.
func symbolOf(name string) string {
	s := strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if s == "" || s[0] <= '9' {
		s = "n" + s
	}
	return s
}
