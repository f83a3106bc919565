package lower

import (
	"slices"
	"sort"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/dialect/types"
)

// body is what the names in the single block of a function stand for, kept so
// that some of its ops can be lowered again.
type body struct {
	block *ir.Block
	defs  map[string]definition
	more  map[string][]definition // second and later definitions, which are errors
	inner map[string][]*ir.Op     // ops of the block in whose regions a name is defined
	open  map[string][]*ir.Op     // ops of the block with a use that has no definition
}

// definition is the values that an op of the block, or for nil its argument,
// gives a name to.
type definition struct {
	op     *ir.Op
	values []*ir.Value
}

func newBody(b *ir.Block) *body {
	y := &body{
		block: b, defs: make(map[string]definition, len(b.Ops)+len(b.Args)), more: map[string][]definition{},
		inner: map[string][]*ir.Op{}, open: map[string][]*ir.Op{},
	}
	for i, v := range b.Args {
		if v.Name != "" {
			y.define(v.Name, definition{nil, b.Args[i : i+1]})
		}
	}
	for _, o := range b.Ops {
		y.add(o)
	}
	return y
}

func (y *body) add(o *ir.Op) {
	results(o, func(name string, values []*ir.Value) { y.define(name, definition{o, values}) })
	y.mentions(o, func(m map[string][]*ir.Op, name string) {
		if list := m[name]; len(list) == 0 || list[len(list)-1] != o {
			m[name] = append(list, o)
		}
	})
}

func (y *body) remove(o *ir.Op) {
	results(o, func(name string, _ []*ir.Value) { y.undefine(name, o) })
	y.mentions(o, func(m map[string][]*ir.Op, name string) {
		if list := slices.DeleteFunc(m[name], func(p *ir.Op) bool { return p == o }); len(list) > 0 {
			m[name] = list
		} else {
			delete(m, name)
		}
	})
}

// results visits the names that o gives to its results.
func results(o *ir.Op, visit func(name string, values []*ir.Value)) {
	at := 0
	for _, r := range origin.Tree(o).Results {
		end := at + int(r.Count)
		if end > len(o.Results) || end == at {
			return
		}
		visit(r.Name, o.Results[at:end:end])
		at = end
	}
}

// mentions visits what o, and what is inside it, uses without definition and
// defines in regions.
func (y *body) mentions(o *ir.Op, visit func(m map[string][]*ir.Op, name string)) {
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for i, v := range p.Operands {
			if v.Op == nil && v.Block == nil && i < len(origin.Tree(p).Operands) {
				visit(y.open, origin.Tree(p).Operands[i].Name)
			}
		}
		if p != o {
			for _, r := range origin.Tree(p).Results {
				visit(y.inner, r.Name)
			}
		}
		for _, r := range p.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					if v.Name != "" {
						visit(y.inner, v.Name)
					}
				}
			}
		}
		return true
	})
}

func (d definition) before(e definition) bool {
	return e.op != nil && (d.op == nil || d.op.Span.Start < e.op.Span.Start)
}

func (y *body) define(name string, d definition) {
	first, taken := y.defs[name]
	switch {
	case !taken:
		y.defs[name] = d
	case d.before(first):
		y.defs[name] = d
		y.more[name] = append(y.more[name], first)
	default:
		y.more[name] = append(y.more[name], d)
	}
}

func (y *body) undefine(name string, o *ir.Op) {
	more := y.more[name]
	if y.defs[name].op != o {
		more = slices.DeleteFunc(more, func(d definition) bool { return d.op == o })
	} else if len(more) == 0 {
		delete(y.defs, name)
	} else {
		next := 0
		for i, d := range more {
			if d.before(more[next]) {
				next = i
			}
		}
		y.defs[name] = more[next]
		more = slices.Delete(more, next, next+1)
	}
	if len(more) == 0 {
		delete(y.more, name)
	} else {
		y.more[name] = more
	}
}

// earlier is what name stands for at off, nil where its definition is not
// before it.
func (y *body) earlier(name string, off int) []*ir.Value {
	if d, ok := y.defs[name]; ok && (d.op == nil || d.op.Span.Start < off) {
		return d.values
	}
	return nil
}

// names are the first and the last names defined before off, in their order.
func (y *body) names(off int) []string {
	var all []string
	for _, v := range y.block.Args {
		if v.Name != "" {
			all = append(all, v.Name)
		}
	}
	end := sort.Search(len(y.block.Ops), func(i int) bool { return y.block.Ops[i].Span.Start >= off })
	take := func(o *ir.Op) (names []string) {
		results(o, func(name string, _ []*ir.Value) {
			if y.defs[name].op == o {
				names = append(names, name)
			}
		})
		return names
	}
	i := 0
	for ; i < end && len(all) <= firstNames+lastNames; i++ {
		all = append(all, take(y.block.Ops[i])...)
	}
	if i == end {
		return all
	}
	var last []string
	for j := end - 1; j >= i && len(last) < lastNames; j-- {
		names := take(y.block.Ops[j])
		slices.Reverse(names)
		last = append(last, names...)
	}
	slices.Reverse(last)
	return append(all, last...) // those in between are of no consequence: only the first and the last count
}

// top is the op of the block that o is or lies in, nil where it lies elsewhere.
func (y *body) top(o *ir.Op) *ir.Op {
	for o.Parent != y.block {
		if o.Parent == nil {
			return nil
		}
		o = o.Parent.Region.Op
	}
	return o
}

// alike reports whether a use cannot tell a from b.
func alike(a, b definition) bool {
	return slices.EqualFunc(a.values, b.values, func(v, w *ir.Value) bool {
		return !v.Guessed && !w.Guessed && v.Type != types.Type(types.Unknown) && types.Equal(v.Type, w.Type)
	})
}

// precedes reports whether d stands before all uses of the values.
func (d definition) precedes(values []*ir.Value) bool {
	return d.op == nil || !slices.ContainsFunc(values, func(v *ir.Value) bool {
		return len(v.Uses) > 0 && v.Uses[0].Op.Span.Start < d.op.Span.Start
	})
}
