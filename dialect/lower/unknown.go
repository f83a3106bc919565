package lower

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

// firsts forgets the ops of unknown dialects among those that go.
func (s *splicer) firsts(old []*ast.Op) {
	ast.Walk(old, func(t *ast.Op) bool {
		if name := canonical(t.Name); s.l.seen[name] == t {
			delete(s.l.seen, name)
			s.l.lost = append(s.l.lost, name)
		}
		return true
	})
}

// nextUnknown sees to it that the first op of each unknown name is the one that
// is reported.
func (s *splicer) nextUnknown(fresh []*ast.Op) {
	l := s.l
	ast.Walk(fresh, func(t *ast.Op) bool {
		name := canonical(t.Name)
		if first := l.seen[name]; first != nil && t.Off < first.Off && t.Form != ast.Bad {
			at := first.Abs(first.NameSpan).Start
			l.m.Diags = slices.DeleteFunc(l.m.Diags, func(d diag.Diagnostic) bool { return d.Code == "DM167" && d.Span.Start == at })
			l.unknown(t, name)
		}
		return true
	})
	for _, name := range l.lost {
		if l.seen[name] != nil {
			continue
		}
		ir.Walk(l.m.Ops, func(o *ir.Op) bool {
			if l.seen[name] == nil && o.Name == name && origin.Tree(o).Form != ast.Bad && op.Lookup(name) == nil {
				l.unknown(origin.Tree(o), name)
			}
			return l.seen[name] == nil
		})
	}
	l.lost = nil
	sortDiags(l.m.Diags)
}
