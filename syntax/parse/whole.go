package parse

import (
	"slices"
	"sort"

	"dmir/syntax/ast"
	"dmir/syntax/source"
)

// maxWhole is the length of a function from which reading it again is no less
// work than reading the text.
const maxWhole = 1 << 19

// whole finds out which functions of the file itself give way to others: where
// change c lies in the head of one, or in its braces.
func whole(f *ast.File, src *source.File, c Change) (p *Splice, ok bool) {
	p = &Splice{Change: c, Whole: true, src: src, ops: f.Items}
	if !p.begins() {
		return nil, false
	}
	last := sort.Search(len(p.ops), func(i int) bool { return p.ops[i].Off >= c.End })
	for _, o := range p.ops[p.At:min(last+1, len(p.ops))] {
		if o.Len > maxWhole {
			return nil, false
		}
	}
	for size := margin; ; size *= 16 {
		done, short := p.rescan(size)
		if done {
			p.trim()
			return p, p.functions() && len(p.Old) > 0 && len(p.ops)-len(p.Old)+len(p.New) > 0 // a file without items is another matter
		}
		if !short || size > 64*margin {
			return nil, false
		}
	}
}

// functions reports whether what goes and what comes are functions with names
// of their own, in which no other symbols are defined.
func (p *Splice) functions() bool {
	for _, items := range [][]*ast.Op{p.Old, p.New} {
		var names []string
		for _, o := range items {
			if o.Form != ast.Pretty || o.Func == nil || len(o.Results) > 0 || slices.Contains(names, o.Func.Name) {
				return false
			}
			names = append(names, o.Func.Name)
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					if !plain(b.Ops) {
						return false
					}
				}
			}
		}
	}
	return true
}

// Items are the items of the file after Apply.
func (p *Splice) Items() []*ast.Op { return p.items }
