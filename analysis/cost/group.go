package cost

import (
	"dmir/dialect/ir"
)

// Group is the cost of the one kernel that members, ops or kernels of one block
// of fn in their order, would be if they gave results, values of theirs, and
// nothing else. Members stay as they are.
func Group(fn *ir.Func, m *ir.Module, bind map[string]int64, members []*ir.Op, results []*ir.Value) *Entry {
	g := grouping{now: map[*ir.Value]*ir.Value{}}
	k := &ir.Op{Name: kernel}
	g.body = &ir.Block{Region: &ir.Region{Op: k}}
	g.body.Region.Blocks = []*ir.Block{g.body}
	k.Regions = []*ir.Region{g.body.Region}
	for _, o := range members {
		if o.Name != kernel {
			g.take(o)
			continue
		}
		body := o.Body(0)
		for _, p := range body.Ops {
			if p != body.Terminator() {
				g.take(p)
			}
		}
		if t := body.Terminator(); t != nil {
			for i, v := range t.Operands {
				if i < len(o.Results) {
					g.now[o.Results[i]] = g.value(v)
				}
			}
		}
	}
	g.add("dm.yield", results)
	c := newCoster(m, bind)
	e := c.scope(Bindings(fn, bind)).entry(k, false)
	if len(members) > 0 {
		e.Op = members[len(members)-1]
	}
	return e
}

// grouping copies ops into one block; now is what a value has become there.
type grouping struct {
	body *ir.Block
	now  map[*ir.Value]*ir.Value
}

func (g *grouping) value(v *ir.Value) *ir.Value {
	if w, ok := g.now[v]; ok {
		return w
	}
	return v
}

func (g *grouping) take(o *ir.Op) {
	p := g.add(o.Name, o.Operands)
	p.Attrs, p.Regions, p.Span, p.Head, p.Bad = o.Attrs, o.Regions, o.Span, o.Head, o.Bad
	for i, v := range o.Results {
		w := &ir.Value{Type: v.Type, Op: p, Index: i}
		p.Results = append(p.Results, w)
		g.now[v] = w
	}
}

func (g *grouping) add(name string, operands []*ir.Value) *ir.Op {
	p := &ir.Op{Name: name, Parent: g.body}
	for i, v := range operands {
		w := g.value(v)
		p.Operands = append(p.Operands, w)
		if w.Op != nil && w.Op.Parent == g.body { // uses of values from outside are not ours to change
			w.Uses = append(w.Uses, ir.Use{Op: p, Index: i})
		}
	}
	g.body.Ops = append(g.body.Ops, p)
	return p
}
