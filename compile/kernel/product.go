package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// contractions are the products among ops that form a contraction kernel.
func contractions(ops []*ir.Op) []*ir.Op {
	var out []*ir.Op
	for _, o := range ops {
		if d := op.Of(o); d == nil || d.Family != op.Contraction {
			continue
		}
		if _, err := ContractionOf(o); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// place is the index of an element of the product in a value computed from it.
type place struct {
	idx []Index
	in  []Condition // under which the value has the element of the product
}

// contraction is the form of a group around mains, with the computation of
// their operands as prologue and the use of their results as epilogue.
func (f *Form) contraction(mains []*ir.Op) (*Form, error) {
	g := *f
	g.Class, g.Main, g.Mains, g.Outs = ClassContraction, mains[0], mains, nil
	for _, o := range mains[1:] {
		if !paired(mains[0], o) {
			return nil, reason(o, "two contractions that share no operand")
		}
	}
	e := newEvaluator(newSpace(), f.Ops)
	g.eval = e
	result := mains[0].Results[0]
	loops := make([]*Atom, len(shapeOf(result)))
	idx := make([]Index, len(loops))
	if g.V > 1 {
		g.Lane = e.Loop("lane", g.V)
	}
	for d, n := range shapeOf(result) {
		v := int64(1)
		if d == g.dim {
			v = g.V
		}
		loops[d], idx[d] = e.wide("i", n, v, g.Lane)
	}
	e.acc = func(o *ir.Op, at []Index) *Expr {
		which := slices.Index(mains, o)
		if which < 0 || !slices.EqualFunc(at, idx, Index.Equal) {
			return nil
		}
		return e.expr(Expr{Op: Acc, Elem: o.Results[0].Elem(), Int: int64(which)})
	}
	places := map[*ir.Value]place{}
	for _, o := range mains {
		places[o.Results[0]] = place{idx: idx}
	}
	for _, o := range f.Ops {
		e.follow(o, places)
	}
	for _, v := range f.Outputs {
		if _, reduced := reductionOf(v, places); reduced {
			continue // Tiled verifies it
		}
		outs, err := g.stores(v, places)
		if err != nil {
			return nil, err
		}
		for _, out := range outs {
			plain := true
			Walk(out.X, func(x *Expr) { plain = plain && x.Op != Reduce })
			if !plain {
				return nil, reason(v.Op, "%s reduces the contraction's elements", v.Name)
			}
			out.Loops = loops
			g.Outs = append(g.Outs, out)
		}
	}
	if e.why != nil {
		return nil, e.why
	}
	if c, err := ContractionOf(mains[0]); err == nil && c.Groups != 0 && g.Reduces() {
		return nil, reason(mains[0], "a grouped product's elements are reduced by another kernel")
	}
	seen := map[*ir.Value]bool{}
	for _, o := range mains {
		for i, v := range o.Operands {
			x, _, err := g.Operand(o, i)
			if err != nil {
				return nil, err
			}
			plain := true
			Walk(x, func(x *Expr) { plain = plain && x.Op != Reduce && x.Op != Acc })
			if !plain {
				return nil, reason(o, "%s is computed by a reduction", v.Name)
			}
			g.reads(x, seen)
		}
	}
	for _, o := range g.Outs {
		for _, x := range o.Exprs() {
			g.reads(x, seen)
		}
	}
	t, err := g.Tiled()
	if err != nil {
		return nil, err
	}
	if t.Structured() {
		if x, _ := t.Metadata(); len(mains) > 1 || x.Op != Load {
			return nil, reason(mains[0], "metadata that are computed, or of two structured products")
		}
	}
	_, reductions, _, err := t.Results(1)
	if err != nil {
		return nil, err
	}
	for _, o := range reductions {
		g.reads(o.X, seen)
	}
	return &g, nil
}

// stores are how f stores v, a result whose elements are computed one by one from
// those of a product at places, by f's evaluator.
func (f *Form) stores(v *ir.Value, places map[*ir.Value]place) ([]Out, error) {
	var outs []Out
	for _, part := range f.stored(v) {
		p, ok := places[part.of]
		if !ok {
			return nil, reason(v.Op, "%s is not computed from the contraction's elements one by one", v.Name)
		}
		out := part.at(p.idx)
		if len(out.If) > 0 {
			return nil, reason(v.Op, "%s updates places that are data", v.Name)
		}
		out.If = p.in
		outs = append(outs, out)
	}
	return outs, nil
}

// paired reports whether o and p are the same contraction except for one
// operand.
func paired(o, p *ir.Op) bool {
	if o.Name != p.Name || op.Of(o).Is(op.Windowed) || len(o.Operands) != len(p.Operands) || len(o.Operands) > 2 && o.Operands[2] != p.Operands[2] || op.Str(o, "equation") != op.Str(p, "equation") ||
		op.Bool(o, "transpose_a") != op.Bool(p, "transpose_a") || op.Bool(o, "transpose_b") != op.Bool(p, "transpose_b") || op.TF32(o) != op.TF32(p) {
		return false
	}
	for i := range 2 {
		if !slices.Equal(shapeOf(o.Operands[i]), shapeOf(p.Operands[i])) || o.Operands[i].Elem() != p.Operands[i].Elem() {
			return false
		}
	}
	return o.Operands[0] == p.Operands[0] || o.Operands[1] == p.Operands[1]
}

// follow finds the index of the product's elements in the results of o, if one
// of its operands is computed from the product.
func (e *evaluator) follow(o *ir.Op, places map[*ir.Value]place) {
	var from place
	var x *ir.Value
	for _, v := range o.Operands {
		if p, ok := places[v]; ok && (x == nil || len(shapeOf(v)) >= len(shapeOf(x))) {
			from, x = p, v
		}
	}
	if x == nil || len(o.Results) == 0 {
		return
	}
	if _, known := places[o.Results[0]]; known {
		return
	}
	shape := shapeOf(o.Results[0])
	to := place{in: from.in}
	switch m := op.MoveOf(o); {
	case m != nil:
		if !m.Selects() || o.Operands[m.Pieces[0].Operand] != x {
			return
		}
		var ok bool
		if to, ok = e.behind(m.Pieces[0], from, shapeOf(x), shape); !ok {
			return
		}
	case op.PerElement(o) && slices.Equal(shape, shapeOf(x)):
		to.idx = from.idx
	default:
		return
	}
	for _, r := range o.Results {
		places[r] = to
	}
}

// behind maps the index of an element of from, a tensor of shape x, through the
// single piece of a selecting move; ok is false where it has strides.
func (e *evaluator) behind(p op.Piece, from place, x, shape []int64) (to place, ok bool) {
	to = place{in: from.in}
	if p.Flat {
		to.idx = e.reshaped(from.idx, x, shape)
		return to, true
	}
	to.in = slices.Clone(from.in)
	to.idx = make([]Index, len(shape))
	for d, a := range p.At {
		n := shape[a.Dim]
		if a.Scale != 1 {
			return place{}, false
		}
		i := from.idx[d].Plus(-a.Offset)
		if a.Offset != 0 || n != x[d] {
			if c := (Condition{X: i, Lo: 0, Hi: n}); !c.always() {
				to.in = append(to.in, c)
			}
			i = e.Within(i, 0, n-1)
		}
		to.idx[a.Dim] = i
	}
	return to, true
}

// Operand is the element of operand i of o, one of f.Mains, with a loop for
// each of the operand's dimensions, nil for those of size 1.
func (f *Form) Operand(o *ir.Op, i int) (x *Expr, loops []*Atom, err error) {
	e := f.eval
	v := o.Operands[i]
	shape := shapeOf(v)
	loops = make([]*Atom, len(shape))
	idx := make([]Index, len(shape))
	for d, n := range shape {
		if n > 1 {
			loops[d] = e.Loop("k", n)
			idx[d] = IndexOf(loops[d])
		}
	}
	x = e.at(v, idx)
	return x, loops, e.why
}
