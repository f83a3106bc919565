package cost

import (
	"maps"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Group is the cost of the one kernel that members, ops or kernels of one block
// of fn in their order, would be if they gave results, values of theirs, and
// nothing else. Members stay as they are.
func Group(fn *ir.Func, m *ir.Module, bind map[string]int64, members []*ir.Op, results []*ir.Value) *Entry {
	return newCoster(m, bind).group(fn, members, results, map[*ir.Value]*ir.Value{})
}

// Replaced is the cost that o, an op or a kernel of fn, would have if it used
// other values: those that now has for its own. o stays as it is.
func Replaced(fn *ir.Func, m *ir.Module, bind map[string]int64, o *ir.Op, now map[*ir.Value]*ir.Value) *Entry {
	c := newCoster(m, bind)
	if o.Name == op.Kernel {
		return c.group(fn, []*ir.Op{o}, o.Results, maps.Clone(now))
	}
	p := *o
	p.Operands = make([]*ir.Value, len(o.Operands))
	for i, v := range o.Operands {
		p.Operands[i] = grouping{now: now}.value(v)
	}
	s := c.scope(sizes(fn, bind))
	s.stands(&p, []*ir.Op{o})
	e := s.entry(&p, false)
	e.Op = o
	return e
}

// Donated is the cost that o, an op or a kernel of fn, would have if fn's argument
// v were donated.
func Donated(fn *ir.Func, m *ir.Module, bind map[string]int64, o *ir.Op, v *ir.Value) *Entry {
	s := newCoster(m, bind).scope(sizes(fn, bind))
	s.over.Given = v
	return s.entry(o, false)
}

// stands returns the ops that o, which is in no block, would replace.
func (s *scope) stands(o *ir.Op, members []*ir.Op) {
	g := op.Group{At: members[len(members)-1], Members: make(map[*ir.Op]bool, len(members))}
	for _, m := range members {
		g.Members[m] = true
	}
	s.over.Groups = map[*ir.Op]op.Group{o: g}
}

func (c *coster) group(fn *ir.Func, members []*ir.Op, results []*ir.Value, now map[*ir.Value]*ir.Value) *Entry {
	k := join(members, results, now)
	s := c.scope(sizes(fn, c.bind))
	if len(members) > 0 {
		s.stands(k, members)
	}
	e := s.entry(k, false)
	if len(members) > 0 {
		e.Op = members[len(members)-1]
	}
	return e
}

// join is the kernel that members would be if they gave results, a copy that is
// in no block. It uses other values for those that now has, and now gains what
// the members' results have become.
func join(members []*ir.Op, results []*ir.Value, now map[*ir.Value]*ir.Value) *ir.Op {
	g := grouping{now: now}
	k := &ir.Op{Name: op.Kernel}
	g.body = &ir.Block{Region: &ir.Region{Op: k}}
	g.body.Region.Blocks = []*ir.Block{g.body}
	k.Regions = []*ir.Region{g.body.Region}
	for _, o := range members {
		if o.Name != op.Kernel {
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
	g.add(op.Yield, results)
	return k
}

// TypicalSize stands for an unbound dimension where only the kind of an answer
// depends on it; it is never shown.
const TypicalSize = 1024

// Sized is the kernel that members would be if they gave results, as a copy in
// no block whose values have sizes in numbers: those of bind and of the function.
// A symbol without one has about TypicalSize, each another.
func Sized(fn *ir.Func, bind map[string]int64, members []*ir.Op, results []*ir.Value) *ir.Op {
	env := sizes(fn, bind)
	next := int64(TypicalSize)
	size := func(t types.Type) types.Type {
		t = types.Sized(t, env)
		if w, ok := t.(*types.Tensor); ok {
			for _, d := range w.Shape {
				for _, s := range d.Symbols() {
					env[s] = dim.Const(next)
					next += 64
				}
			}
		}
		return types.Sized(t, env)
	}
	k := join(members, results, map[*ir.Value]*ir.Value{})
	outside := map[*ir.Value]*ir.Value{}
	body := k.Body(0)
	for _, o := range body.Ops {
		for i, v := range o.Operands {
			if v.Op != nil && v.Op.Parent == body {
				continue
			}
			w := outside[v]
			if w == nil {
				w = &ir.Value{Name: v.Name, Type: size(v.Type)}
				outside[v] = w
			}
			o.Operands[i] = w
		}
		for _, v := range o.Results {
			v.Type = size(v.Type)
		}
	}
	return k
}

// grouping copies ops into one block; now is what a value has become there.
type grouping struct {
	body *ir.Block
	now  map[*ir.Value]*ir.Value
}

func (g grouping) value(v *ir.Value) *ir.Value {
	if w, ok := g.now[v]; ok {
		return w
	}
	return v
}

func (g *grouping) take(o *ir.Op) {
	p := g.add(o.Name, o.Operands)
	p.Attrs, p.Regions, p.Span, p.Head, p.Loc, p.Bad = o.Attrs, o.Regions, o.Span, o.Head, o.Loc, o.Bad
	for i, v := range o.Results {
		w := &ir.Value{Name: v.Name, Type: v.Type, Op: p, Index: i}
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
