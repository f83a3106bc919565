package refactor

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
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

// gather makes a group of ops, which are of one block and in order, or says why
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
				return refuse("%s has effects and stands between the selected ops", describe(blocking))
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
		name, _, several := strings.Cut(v.Name, "#")
		if !several {
			parts = append(parts, name)
			i++
			continue
		}
		count := 0
		for _, w := range v.Op.Results {
			if base(w) == name {
				count++
			}
		}
		k := i
		for k < len(g.exports) && g.exports[k].Op == v.Op && base(g.exports[k]) == name {
			k++
		}
		if k-i == count {
			parts = append(parts, fmt.Sprintf("%s:%d", name, count))
			i = k
			continue
		}
		if n == nil {
			n = g.s.allNames(nil)
		}
		own := name + "_" + v.Name[len(name)+1:]
		if isNumber(name) {
			own = name
		}
		outside[v] = n.fresh(own)
		parts = append(parts, outside[v])
		i++
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

// pieces are the stretches of text with nothing but ops of set in them, each
// with the comments above and behind it.
func (g *group) pieces(ops []*ir.Op) []piece {
	var out []piece
	text := g.s.src.Text()
	for i := 0; i < len(ops); {
		first, k := index(ops[i]), i+1
		for k < len(ops) && g.block.Ops[first+k-i] == ops[k] {
			k++
		}
		out = append(out, piece{ops[i:k], source.Span{
			Start: above(text, ops[i].Tree.Off), End: behind(text, ops[k-1].Tree.Span().End),
		}})
		i = k
	}
	return out
}

type piece struct {
	ops  []*ir.Op
	span source.Span
}

// text is p's text after the edits. Kernels are opened where flat says so.
func (g *group) text(p piece, edits []diag.Edit, flat bool) string {
	s, text := g.s, g.s.src.Text()
	var out strings.Builder
	at := p.span.Start
	for _, o := range p.ops {
		span := o.Tree.Span()
		out.WriteString(text[at:span.Start])
		if flat && o.Name == kernelOp {
			out.WriteString(s.opened(o, 0, edits))
			if rest, _, _ := strings.Cut(text[span.End:p.span.End], "\n"); strings.TrimSpace(rest) != "" {
				out.WriteString("\n")
			}
		} else {
			out.WriteString(cut(text, span, edits))
		}
		at = span.End
	}
	out.WriteString(text[at:p.span.End])
	return out.String()
}

// rewrite puts the op that made returns in the place of the group: made is
// given the text of the members. What others call the values is in outside.
func (g *group) rewrite(inner, outside renaming, flat bool, made func(body string) string) []diag.Edit {
	text := g.s.src.Text()
	pieces := g.pieces(g.ops)
	anchor := &pieces[len(pieces)-1]
	if g.atFirst || len(pieces) == 1 {
		anchor = &pieces[0]
		anchor.span.Start = anchor.ops[0].Tree.Off // the comment above stays above
	}
	moved := g.pieces(g.behind)
	var raw []string
	edits := inner.edits(g.ops)
	for _, p := range pieces {
		raw = append(raw, g.text(p, edits, flat))
	}
	after := made(strings.Join(raw, "\n"))
	elsewhere := outside.uses(g.member, g.block)
	for _, p := range moved {
		after += "\n" + cut(text, p.span, elsewhere)
	}
	off := anchor.span.Start
	after = g.s.write(after, g.block, off)
	if rest, _, _ := strings.Cut(text[anchor.span.End:], "\n"); strings.TrimSpace(rest) != "" {
		after += "\n" + indentAt(text, off)
	}
	out := replace(text, anchor.span, after)
	gone := []source.Span{anchor.span}
	for i := range pieces {
		if &pieces[i] != anchor {
			out = append(out, removal(text, pieces[i].span))
			gone = append(gone, pieces[i].span)
		}
	}
	for _, p := range moved {
		out = append(out, removal(text, p.span))
		gone = append(gone, p.span)
	}
	for _, e := range elsewhere {
		if !within(e.Span, gone) {
			out = append(out, e)
		}
	}
	return out
}

func within(span source.Span, spans []source.Span) bool {
	for _, s := range spans {
		if s.Start <= span.Start && span.End <= s.End {
			return true
		}
	}
	return false
}

// uses are the edits that respell the values of r where ops use them that are
// not in the members of b.
func (r renaming) uses(member map[*ir.Op]bool, b *ir.Block) []diag.Edit {
	var out []diag.Edit
	for v, to := range r {
		for _, u := range v.Uses {
			t := u.Op.Tree
			if t != nil && u.Index < len(t.Operands) && !member[enclosing(u.Op, b)] {
				out = append(out, diag.Edit{Span: t.Abs(t.Operands[u.Index].Span), Text: to})
			}
		}
	}
	return tidy(out)
}
