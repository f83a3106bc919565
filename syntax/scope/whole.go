package scope

import (
	"slices"

	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// functions follows a change after which some functions of the file stand where
// others did, none of which is spoken of elsewhere.
func (x *Index) functions(p *parse.Splice, src *source.File) (ok bool) {
	// Names that are gone keep their numbers; from time to time all are renumbered.
	if len(x.sections) != 1 || len(x.all) > 2*len(x.occs)+maxGone {
		return false
	}
	in := x.sections[0]
	gone := map[*ast.Op]bool{}
	ast.Walk(p.Old, func(o *ast.Op) bool { gone[o] = true; return true })
	for _, items := range [][]*ast.Op{p.Old, p.New} {
		for _, o := range items {
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					if x.symbols(in, b.Ops, nil, src) || slices.Contains(p.New, o) && x.symbols(in, nil, b.Ops, src) {
						return false
					}
				}
			}
		}
	}
	for _, o := range p.Old {
		n := in.symbols[o]
		if n == nil || len(n.defs) != 1 || slices.ContainsFunc(n.uses, func(at place) bool { return !gone[at.op] }) {
			return false
		}
	}
	if x.unknownFunctions() > 0 { // what is suggested depends on the names of all functions
		return false
	}
	x.src, x.names, in.guesses = src, nil, 0
	s := &splicer{x: x, r: in.root, p: p, b: &builder{x: x, in: in}, before: map[string]*Name{}}
	s.shift()
	s.cut()
	for _, o := range p.Old {
		delete(in.root.names[Symbol], in.symbols[o].Text)
		delete(in.symbols, o)
		for _, a := range o.Defs {
			if list := in.root.own[a.Name]; len(list) > 0 { // a declaration owns nothing
				in.root.own[a.Name] = slices.DeleteFunc(list, func(q *ast.Op) bool { return q == o })
			}
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				delete(x.bodies, b)
			}
		}
	}
	for _, o := range p.New {
		text := symbolText(o.Func.Name)
		missed := in.root.unknown[text]
		if in.root.names[Symbol][text] != nil || missed != nil && len(missed.uses) > 0 {
			return false
		}
	}
	s.b.define(p.New, in.root)
	s.b.use(p.New, in.root)
	s.b.resolveAll()
	s.take()
	s.fill()
	s.release()
	return s.finish()
}

// maxGone is how many names without places are kept at least.
const maxGone = 1 << 14
