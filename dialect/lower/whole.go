package lower

import (
	"cmp"
	"slices"
	"sort"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// functions follows a change after which some functions stand where others did.
// Nothing else may refer to them: what a call means depends on its callee.
func (u *Unit) functions(p *parse.Splice, src *source.File) (c *Change, ok bool) {
	if len(u.sections) != 1 {
		return nil, false
	}
	l := u.sections[0]
	m := l.m
	if m.Outer != nil || len(l.root.names)+len(l.root.pending) > 0 {
		return nil, false
	}
	if outer, _ := flatten(p.Items()); outer != nil { // what is left is a module
		return nil, false
	}
	at := sort.Search(len(m.Ops), func(i int) bool { return m.Ops[i].Span.Start >= oldStart(p) })
	old := slices.Clone(m.Ops[at:min(at+len(p.Old), len(m.Ops))])
	if !slices.EqualFunc(old, p.Old, func(o *ir.Op, t *ast.Op) bool { return origin.Tree(o) == t }) || l.spokenOf(p) {
		return nil, false
	}
	for _, o := range old {
		if !m.DropFunc(o) { // the second of its name
			return nil, false
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				delete(u.bodies, b)
			}
		}
	}
	m.Ops = slices.Delete(m.Ops, at, at+len(old))
	s := &splicer{l: l}
	s.firsts(p.Old)
	u.shift(p, src, nil, 0)
	origin.File(m).Items = p.Items()

	l.slab = slab{}
	kept, untyped := m.Diags, l.untyped
	clear(l.badTypes)
	m.Diags = nil
	l.scope, l.region, l.blocks, l.began = l.root, nil, nil, 0
	c = &Change{Module: m, Whole: true, Gone: old}
	for _, t := range p.New {
		if m.Func(symbolName(t.Func.Name)) != nil {
			return nil, false
		}
		c.New = append(c.New, l.op(t, nil))
	}
	l.guessed, l.outrun, l.spare, l.untyped = nil, nil, nil, untyped
	l.insideOf, l.insideNames = nil, nil
	m.Diags = append(kept, m.Diags...)
	m.Ops = slices.Insert(m.Ops, at, c.New...)
	slices.SortFunc(m.Funcs, func(f, g *ir.Func) int { return cmp.Compare(f.Op.Span.Start, g.Op.Span.Start) })
	s.nextUnknown(p.New)
	return c, true
}

// spokenOf reports whether an op elsewhere names one of the functions that go or
// come.
func (l *lowerer) spokenOf(p *parse.Splice) bool {
	names := map[string]bool{}
	for _, items := range [][]*ast.Op{p.Old, p.New} {
		for _, o := range items {
			names[symbolName(o.Func.Name)] = true
		}
	}
	spoken := false
	for _, o := range l.m.Ops {
		if slices.Contains(p.Old, origin.Tree(o)) {
			continue
		}
		ast.Walk([]*ast.Op{origin.Tree(o)}, func(t *ast.Op) bool {
			for _, s := range t.Symbols {
				spoken = spoken || names[symbolName(s.Name)]
			}
			return !spoken
		})
	}
	return spoken
}
