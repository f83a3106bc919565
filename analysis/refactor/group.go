package refactor

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// A group is ops of one block that become one op: a kernel or a call. Ops that
// stand between them stay in front of it, or move behind it where they use what
// the group computes.
type group struct {
	s       *selection
	block   *ir.Block
	ops     []*ir.Op
	member  map[*ir.Op]bool
	behind  []*ir.Op // between the members; they must come after the group
	atFirst bool     // the group stands where its first member is; else where its last is
	exports []*ir.Value
}

// gather makes a group of ops, which are of one block and in order, or explains why
// they cannot be brought together.
func (s *selection) gather(b *ir.Block, ops []*ir.Op) (*group, error) {
	g := &group{s: s, block: b, ops: ops, member: make(map[*ir.Op]bool, len(ops))}
	for _, o := range ops {
		g.member[o] = true
	}
	all := b.Ops[index(ops[0]) : index(ops[len(ops)-1])+1]
	if err := s.flawed(all); err != nil {
		return nil, err
	}
	if err := g.order(all); err != nil {
		return nil, err
	}
	for _, o := range ops {
		for _, v := range o.Results {
			if g.usedOutside(v) {
				g.exports = append(g.exports, v)
			}
		}
	}
	return g, nil
}

// order finds out which of the ops between the members must stay in front of
// the group and which must come after it. Ops with effects keep their order.
func (g *group) order(all []*ir.Op) error {
	behind := map[*ir.Op]bool{} // what must follow a member
	var blocking *ir.Op         // one of those with effects
	effects := false            // one of those or of the members so far has effects
	for _, o := range all {
		ordered := effects && !pure(o)
		switch {
		case g.member[o]:
			if by := uses(o, behind); by != nil {
				return refuse("%s uses %s, which is not selected and itself uses the selection", describe(o), describe(by))
			}
			if ordered && blocking != nil {
				return refuse("%s has side effects and is between the selected ops", describe(blocking))
			}
		case ordered || uses(o, g.member) != nil || uses(o, behind) != nil:
			g.behind = append(g.behind, o)
			behind[o] = true
			if !pure(o) {
				blocking = o
			}
		default:
			continue
		}
		effects = effects || !pure(o)
	}
	g.atFirst = true
	before, effects := map[*ir.Op]bool{}, false // results that members, and what they need, wait for
	for i := len(all) - 1; i >= 0; i-- {
		o := all[i]
		if !g.member[o] && !before[o] && !(effects && !pure(o)) {
			continue
		}
		effects = effects || !pure(o)
		if !g.member[o] {
			g.atFirst = false
		}
		operands(o, func(v *ir.Value) {
			if v.Op != nil {
				before[enclosing(v.Op, g.block)] = true
			}
		})
	}
	if g.atFirst {
		g.behind = nil // they are behind it already
	}
	return nil
}

// uses is the op among those in set whose result o or an op inside it uses.
func uses(o *ir.Op, set map[*ir.Op]bool) (found *ir.Op) {
	operands(o, func(v *ir.Value) {
		if v.Op != nil && v.Op != o && set[v.Op] && found == nil {
			found = v.Op
		}
	})
	return found
}

// operands visits what o and the ops inside it use.
func operands(o *ir.Op, visit func(*ir.Value)) {
	ir.Walk([]*ir.Op{o}, func(i *ir.Op) bool {
		for _, v := range i.Operands {
			visit(v)
		}
		return true
	})
}

// pure reports whether o and all inside it have no effects.
func pure(o *ir.Op) bool {
	ok := true
	ir.Walk([]*ir.Op{o}, func(i *ir.Op) bool {
		d := op.Of(i)
		ok = ok && (d.Is(op.Pure) || d.Is(op.Terminator))
		return ok
	})
	return ok
}

// enclosing is the op of block b that is o or holds it, else the outermost op
// around o.
func enclosing(o *ir.Op, b *ir.Block) *ir.Op {
	for o.Parent != b && o.Parent != nil && o.Parent.Region != nil {
		o = o.Parent.Region.Op
	}
	return o
}

func (g *group) usedOutside(v *ir.Value) bool {
	for _, u := range v.Uses {
		if !g.member[enclosing(u.Op, g.block)] {
			return true
		}
	}
	return false
}

// imports are the values that the group takes from outside, in the order of use.
func (g *group) imports() []*ir.Value {
	var out []*ir.Value
	seen := map[*ir.Value]bool{}
	for _, o := range g.ops {
		operands(o, func(v *ir.Value) {
			if !seen[v] && !g.inside(v) {
				out = append(out, v)
			}
			seen[v] = true
		})
	}
	return out
}

// inside reports whether a member, or an op or block inside one, gives v.
func (g *group) inside(v *ir.Value) bool {
	o := v.Op
	if o == nil && v.Block != nil && v.Block.Region != nil {
		o = v.Block.Region.Op
		if !g.member[o] && v.Block == g.block {
			return false
		}
	}
	return o != nil && g.member[enclosing(o, g.block)]
}

// heads spells the exported values as the results of the new op: "%a, %r:2". A
// value that was one of several under one name, not all of which are exported,
// gets a name of its own, by which outside the others must use it.
func (g *group) heads(outside renaming) string {
	var parts []string
	var n *names
	for i := 0; i < len(g.exports); {
		v := g.exports[i]
		if single(v) {
			parts = append(parts, v.Name)
			i++
			continue
		}
		name, k := base(v), i
		for k < len(g.exports) && g.exports[k].Op == v.Op && base(g.exports[k]) == name {
			k++
		}
		count := 0
		for _, w := range v.Op.Results {
			if base(w) == name {
				count++
			}
		}
		if k-i == count {
			parts = append(parts, fmt.Sprintf("%s:%d", name, count))
			i = k
			continue
		}
		if n == nil {
			n = g.s.allNames(nil)
		}
		for ; i < k; i++ {
			v := g.exports[i]
			outside[v] = n.fresh(numbered(v))
			parts = append(parts, outside[v])
		}
	}
	return strings.Join(parts, ", ")
}

// allNames are the value names of the function, but for those inside but.
func (s *selection) allNames(but *ir.Op) *names {
	n := newNames()
	n.addInside([]*ir.Op{s.fn.Op}, but)
	return n
}

// typeList is the types of the exported values, and the same behind an arrow.
func (g *group) typeList() (list, arrow string) {
	var ts []string
	for _, v := range g.exports {
		ts = append(ts, g.s.typeText(v))
	}
	list = strings.Join(ts, ", ")
	if len(ts) != 1 {
		return list, "(" + list + ")"
	}
	return list, list
}
