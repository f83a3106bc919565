package feature

import (
	"sort"

	"dmir/syntax/ast"
	"dmir/syntax/source"
)

// walkIn visits the ops that touch span, in textual order, as [ast.Walk] does.
// Those before and behind span cost no time.
func walkIn(ops []*ast.Op, span source.Span, visit func(*ast.Op) bool) {
	first := sort.Search(len(ops), func(i int) bool { return ops[i].Span().End >= span.Start })
	for _, o := range ops[first:] {
		if o.Off > span.End {
			return
		}
		if !visit(o) {
			continue
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				walkIn(b.Ops, span, visit)
			}
		}
	}
}
