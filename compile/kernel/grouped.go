package kernel

import "dmir/dialect/op"

// Grouping is what divides a grouped product: group Z, of Count, has the rows, or the part of the sum, from First on,
// below End. Both are between 0 and their number.
type Grouping struct {
	Z          *Atom // nil where there is one group
	First, End Index
	Count      int64
	Block      int64 // of which both are multiples
	Rows       bool  // rows are divided; else the sum
}

// Grouping is that of t; nil where it is no grouped product.
func (t *Tiled) Grouping() *Grouping {
	c := t.c
	if c.Groups == 0 {
		return nil
	}
	g := &Grouping{Count: c.Sizes[c.Groups], Block: op.GroupBlock(c.Op), Rows: c.Within == 'M'}
	e := newEvaluator(newSpace(), t.form.Ops)
	var z Index
	if g.Count > 1 {
		g.Z = e.Loop("z", g.Count)
		z = IndexOf(g.Z)
	}
	g.First, g.End = t.bound(e, z), t.bound(e, z.Plus(1))
	return g
}

// bound is position i of the groups.
func (t *Tiled) bound(e *evaluator, i Index) Index {
	positions := t.c.Op.Operands[2]
	block := op.GroupBlock(t.c.Op)
	_, most := highest(positions.Elem())
	return e.datum(e.at(positions, []Index{i}), min(t.c.Sizes[t.c.Within]/block, most-1)+1).Times(block)
}

// inGroups is a sum at the indices of, or zero: of a row that no group has.
func (t *Tiled) inGroups(e *evaluator, of map[byte]Index, sum *Expr) *Expr {
	c := t.c
	if c.Within != 'M' {
		return sum
	}
	m, rows := of['M'], c.Sizes['M']
	first, end := t.bound(e, Index{}), t.bound(e, Index{C: c.Sizes[c.Groups]})
	inside := []Condition{{X: m.Add(first.Times(-1)), Lo: 0, Hi: rows}, {X: end.Add(m.Times(-1)), Lo: 1, Hi: rows + 1}}
	return e.guard(inside, sum, e.number(sum.Elem, 0))
}

// Reads are what the bounds are read from.
func (g *Grouping) Reads() (xs []*Expr) {
	for _, i := range []Index{g.First, g.End} {
		i.Atoms(func(a *Atom) {
			if a.Kind == Datum {
				xs = append(xs, a.E)
			}
		})
	}
	return xs
}
