package lower

import (
	"sort"

	"dmir/base/parallel"
	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// wideMove is the number of ops from which moving them is worth a goroutine.
const wideMove = 4096

// find is the lowered form of a function and the section it is in.
func (u *Unit) find(t *ast.Op) (*lowerer, *ir.Op) {
	for _, l := range u.sections {
		ops := l.m.Ops
		i := sort.Search(len(ops), func(i int) bool { return origin.Tree(ops[i]).Off >= t.Off })
		if i < len(ops) && origin.Tree(ops[i]) == t && ops[i].Name == "func.func" && len(ops[i].Regions) == 1 && len(ops[i].Regions[0].Blocks) == 1 {
			return l, ops[i]
		}
	}
	return nil, nil
}

// shift moves what follows the change: the ops of the function from place on,
// and what comes after the function.
func (u *Unit) shift(p *parse.Splice, src *source.File, fn *ir.Op, place int) {
	move := func(s *source.Span) { *s = p.MoveSpan(*s) }
	loose := false // whether there are uses without definition
	some := func(list []*ir.Op) {
		ir.Walk(list, func(o *ir.Op) bool {
			move(&o.Span)
			move(&o.Head)
			for _, v := range o.Results {
				move(&v.Span)
			}
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					for _, v := range b.Args {
						move(&v.Span)
					}
				}
			}
			for i, v := range o.Operands {
				if !loose {
					break
				}
				if v.Op == nil && v.Block == nil && i < len(origin.Tree(o).Operands) { // no definition: it stands where it is used
					v.Span = origin.Tree(o).Abs(origin.Tree(o).Operands[i].Span)
				}
			}
			return true
		})
	}
	ops := func(list []*ir.Op) {
		parallel.Parts(len(list), wideMove, func(from, to int) { some(list[from:to]) })
	}
	for _, l := range u.sections {
		l.src, l.m.Src, origin.File(l.m).Src = src, src, src
		l.m.Diags = p.Follow(l.m.Diags)
		loose = loose || l.loose
		if p.By() == 0 {
			continue
		}
		for i := range l.m.Resources {
			move(&l.m.Resources[i])
		}
		if l.m.Outer != nil {
			move(&l.m.Outer.Span)
			move(&l.m.Outer.Head)
		}
		after := sort.Search(len(l.m.Ops), func(i int) bool { return l.m.Ops[i].Span.Start >= p.End })
		ops(l.m.Ops[after:])
		for _, f := range l.m.Funcs {
			if f.Body == nil && f.Op.Span.Start >= p.End {
				for _, v := range f.Args {
					move(&v.Span)
				}
			}
		}
	}
	if p.By() != 0 && fn != nil {
		move(&fn.Span)
		ops(fn.Regions[0].Blocks[0].Ops[place:])
	}
}
