package raise

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Rotary position embeddings are written with slices and concatenations along rows of pairs: x · cos + rotated(x) · sin of
// tables as long as the row, whose halves are the same; the two products of each half; or pairs side by side, as the parts
// of complex numbers. A term is of one element, so both numbers of pair i are read as terms, in which i is an axis, and
// compared with what the registry expands dm.rope to.

// ropes raises the rotary embeddings of b and of the blocks within it.
func ropes(b *ir.Block, found map[string]int) {
	known := newTables()
	var roots []*ir.Op
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		if endsRope(o) {
			roots = append(roots, o)
		}
		return o.Name != op.Kernel
	})
	for _, o := range slices.Backward(roots) {
		if o.Parent != nil && raiseRope(o, known) {
			found["rope"]++
		}
	}
}

// endsRope reports whether o may be the last op of a rotary embedding.
func endsRope(o *ir.Op) bool {
	if len(o.Results) != 1 || len(o.Results[0].Uses) == 0 || !plain(o.Results[0]) || !op.Valid(o) || !o.Results[0].Elem().IsFloat() {
		return false
	}
	t := o.Out(0)
	n, known := lastOf(t)
	if !known || n < 2 || n%2 != 0 {
		return false
	}
	switch o.Name {
	case "dm.add", "dm.sub":
		return true
	case "dm.concatenate":
		d, ok := op.Dim(o, "dim", t.Rank())
		return ok && d == t.Rank()-1 && len(o.Operands) == 2
	case "dm.reshape":
		c := o.Operands[0].Op
		return c != nil && c.Name == "dm.concatenate" && c.Out(0).Rank() == t.Rank()+1
	}
	return false
}

func lastOf(t *types.Tensor) (n int64, known bool) {
	if t == nil || t.Rank() == 0 {
		return 0, false
	}
	return t.Shape[t.Rank()-1].Int()
}

// Bounds of what stands near a root and of what is tried.
const (
	maxRopeOps    = 32
	maxRopeXs     = 4
	maxRopeTables = 6
)

// ropeParts are what a rotary embedding that ends in root may be made of.
type ropeParts struct {
	root   *ir.Op
	ops    map[*ir.Op]bool
	xs     []*ir.Value // rows whose parts are taken
	tables []*ir.Value // factors
}

func ropePartsOf(root *ir.Op) *ropeParts {
	p := &ropeParts{root: root, ops: map[*ir.Op]bool{root: true}}
	queue := []*ir.Op{root}
	t := root.Results[0].Type
	muls := 0
	for i := 0; i < len(queue); i++ {
		o := queue[i]
		switch o.Name {
		case "dm.mul":
			muls++
			for _, v := range o.Operands {
				if !slices.Contains(p.tables, v) {
					p.tables = append(p.tables, v)
				}
			}
		case "dm.slice", "dm.reshape":
			if x := o.Operands[0]; types.Equal(x.Type, t) && o != root && !slices.Contains(p.xs, x) {
				p.xs = append(p.xs, x)
			}
		}
		for _, v := range o.Operands {
			q := v.Op
			if q == nil || p.ops[q] || len(queue) == maxRopeOps || q.Parent != root.Parent {
				continue
			}
			switch q.Name {
			case "dm.add", "dm.sub", "dm.mul", "dm.neg", "dm.concatenate", "dm.slice", "dm.reshape", "dm.transpose", "dm.broadcast", "dm.convert":
				p.ops[q] = true
				queue = append(queue, q)
			}
		}
	}
	if muls < 2 || muls > 8 {
		return nil
	}
	return p
}

// raiseRope makes o a dm.rope if it ends one.
func raiseRope(o *ir.Op, known *tables) bool {
	p := ropePartsOf(o)
	if p == nil {
		return false
	}
	for _, x := range p.xs[:min(maxRopeXs, len(p.xs))] {
		for _, pairs := range []string{"halves", "interleaved"} {
			if p.try(x, pairs, known) {
				return true
			}
		}
	}
	return false
}

// try makes the root a dm.rope of x with two of the tables, where that is what it computes.
func (p *ropeParts) try(x *ir.Value, pairs string, known *tables) bool {
	t := p.root.Out(0)
	r := newLanes(x, t, known)
	first, second := r.pair(p.root.Results[0], pairs)
	if first == nil || second == nil {
		return false
	}
	var tables []*ir.Value
	for _, v := range p.tables {
		if v.Elem() == t.Elem && len(tables) < maxRopeTables && !p.leadsTo(v, x) {
			tables = append(tables, v)
		}
	}
	attr := attrs("pairs", types.Keyword(pairs))
	for _, cos := range tables {
		for _, sin := range tables {
			if cos == sin {
				continue
			}
			b := op.NewBuilder(&ir.Builder{Block: &ir.Block{}, At: p.root, Loose: true}, verify.Op)
			c, s := known.half(b, cos, t, pairs), known.half(b, sin, t, pairs)
			if c == nil || s == nil {
				continue
			}
			made := b.Make("rope", []*ir.Value{x, c, s}, attr)
			if made == nil || b.Err() != nil {
				continue
			}
			vs := op.Of(made).Expand(&ir.Builder{Block: b.Block, Index: len(b.Block.Ops), At: p.root, Loose: true}, made)
			if len(vs) == 0 {
				continue
			}
			if one, other := r.pair(vs[0], pairs); !alike(first, one, slack(t.Elem)) || !alike(second, other, slack(t.Elem)) {
				continue
			}
			return p.replace(x, cos, sin, attr, pairs, known)
		}
	}
	return false
}

// leadsTo reports whether v, a factor, is computed from x by ops near the root.
func (p *ropeParts) leadsTo(v, x *ir.Value) bool {
	if v == x {
		return true
	}
	return v.Op != nil && p.ops[v.Op] && slices.ContainsFunc(v.Op.Operands, func(w *ir.Value) bool { return p.leadsTo(w, x) })
}

// replace makes the root a dm.rope, unless some of what it replaces is needed by others.
func (p *ropeParts) replace(x, cos, sin *ir.Value, attr []types.Named, pairs string, known *tables) bool {
	group := map[*ir.Op]bool{}
	var collect func(o *ir.Op)
	collect = func(o *ir.Op) {
		if group[o] || !p.ops[o] {
			return
		}
		group[o] = true
		for _, v := range o.Operands {
			if v.Op != nil && v != x && v != cos && v != sin {
				collect(v.Op)
			}
		}
	}
	collect(p.root)
	dead := unneeded(p.root, group)
	if dead == nil {
		return false
	}
	table := func(v *ir.Value) *ir.Value {
		key := tableKey{v, pairs}
		if known.values[key] == nil {
			at := &ir.Builder{Block: p.root.Parent, Index: p.root.Position(), At: p.root}
			if v.Op != nil && v.Op.Parent != nil { // beside the table, which other rows share
				at.Block, at.Index, at.At = v.Op.Parent, v.Op.Position()+1, v.Op
			} else if v.Block != nil {
				at.Block, at.Index = v.Block, 0
			}
			known.values[key] = known.half(op.NewBuilder(at, nil), v, p.root.Out(0), pairs)
		}
		return known.values[key]
	}
	c, s := table(cos), table(sin)
	b := op.NewBuilder(&ir.Builder{Block: p.root.Parent, Index: p.root.Position(), At: p.root}, nil)
	v := b.Make("rope", []*ir.Value{x, c, s}, attr).Results[0]
	v.Name, v.Op.Loc = p.root.Results[0].Name, op.FusedLoc(p.root.Loc, dead)
	ir.ReplaceUses(p.root.Results[0], v)
	for _, o := range dead {
		ir.Erase(o)
	}
	return true
}
