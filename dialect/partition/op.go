package partition

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// op divides one op.
func (p *partitioner) op(o *ir.Op) {
	p.at, p.b.At = o, o
	defer p.trace(o)()
	switch {
	case p.special(o):
	case p.structure(o):
	default:
		p.divide(factorsOf(o))
	}
	p.settle(o)
}

// trace begins to note which ops of the function's body are made for o, unless o stands in a
// region, whose op is the one that they are made for; its result ends it.
func (p *partitioner) trace(o *ir.Op) func() {
	if len(p.levels) > 1 {
		return func() {}
	}
	start, head := p.b.Index, p.head
	return func() {
		for _, made := range p.entry.Ops[start+p.head-head : p.b.Index] {
			if p.From[made] == nil { // else the op of a kernel that it stands for
				p.From[made] = o
			}
		}
	}
}

// divide computes o on pieces.
func (p *partitioner) divide(x factored) {
	a := p.choose(x)
	if e := exchangeOf(x, a); e != nil {
		e.emit(p, x, a)
		return
	}
	if pieces := p.pieces(x, a); pieces != nil {
		p.emit(x.o, pieces, p.layouts(x, a))
	}
}

// pieces are the operands of an op in the layouts that an assignment requires, nil after a failure.
func (p *partitioner) pieces(x factored, a assignment) []*ir.Value {
	pieces := make([]*ir.Value, len(x.o.Operands))
	for i, v := range x.o.Operands {
		t := v.Tensor()
		if t == nil {
			p.fail("%s is %s, which cannot be divided", v.Name, v.Type)
			return nil
		}
		l := p.required(x, i, a)
		pieces[i] = p.get(v, l)
		for d, list := range x.operand(i) {
			if slices.ContainsFunc(list, func(n int) bool { return x.f.Kinds[n] == op.Reduced }) {
				pieces[i] = p.mask(t, pieces[i], l, d, x.f.Combine)
			}
		}
	}
	return pieces
}

// layouts are those of the results.
func (p *partitioner) layouts(x factored, a assignment) []shard.Layout {
	layouts := make([]shard.Layout, len(x.o.Results))
	for i := range x.o.Results {
		layouts[i] = p.produced(x, i, a)
	}
	return layouts
}

// emit writes o on pieces, with results in the given layouts.
func (p *partitioner) emit(o *ir.Op, pieces []*ir.Value, layouts []shard.Layout) *ir.Op {
	values := map[*ir.Value]*ir.Value{}
	drawn := p.drawn(o, layouts)
	for i, v := range o.Operands {
		values[v] = pieces[i]
	}
	piece := ir.CloneOps(p.b.Builder, []*ir.Op{o}, values)[0]
	for i, v := range pieces { // of an operand that is read twice in different layouts
		piece.SetOperand(i, v)
	}
	if drawn != nil {
		op.SetPart(piece, drawn.first, drawn.whole)
	}
	for i, r := range piece.Results {
		if t := r.Tensor(); t != nil {
			r.Type = p.local(t, layouts[i])
			p.add(o.Results[i], layouts[i], r)
		}
	}
	if d := op.Of(o); d != nil && d.Piece != nil {
		d.Piece(piece, o)
	}
	return piece
}

// settle brings the results of o whose sharding the text states into it, and forgets other
// versions of them: what is written is what the devices have. The terms of sums over micro-batches stay
// partial: their sum is reduced once. A constant of one number is there in every layout.
func (p *partitioner) settle(o *ir.Op) {
	if splatted(o) != nil {
		return
	}
	for _, r := range o.Results {
		if o.Attr(op.MicroAttr) != nil && adds(r) {
			continue
		}
		if l, stated := p.values.Of(r); stated && p.problem == nil {
			piece := p.get(r, l)
			p.have[r] = slices.DeleteFunc(p.have[r], func(v version) bool { return v.piece != piece })
			delete(p.makers, r)
		}
	}
}

// replicate computes o on every device.
func (p *partitioner) replicate(o *ir.Op) {
	pieces := make([]*ir.Value, len(o.Operands))
	for i, v := range o.Operands {
		pieces[i] = p.get(v, shard.Whole(v.Tensor().Rank()))
	}
	layouts := make([]shard.Layout, len(o.Results))
	for i, r := range o.Results {
		layouts[i] = shard.Whole(r.Tensor().Rank())
	}
	p.emit(o, pieces, layouts)
}

// special divides the ops for which factors are not enough; false of others.
func (p *partitioner) special(o *ir.Op) bool {
	switch {
	case splatted(o) != nil:
		d := splatted(o)
		p.make(o, func(t *types.Tensor, _ shard.Layout) *ir.Value {
			return p.b.Value("constant", nil, []types.Named{{Name: "value", Value: d.Of(t)}}, t)
		})
	case o.Name == op.Empty:
		p.make(o, func(t *types.Tensor, _ shard.Layout) *ir.Value { return p.b.Value("empty", nil, nil, t) })
	case o.Name == op.Reshard:
		p.have[o.Results[0]] = nil
		for _, have := range p.have[o.Operands[0]] {
			p.add(o.Results[0], have.layout, have.piece)
		}
		if m := p.makers[o.Operands[0]]; m != nil {
			p.makers[o.Results[0]] = m
		}
	case o.Name == op.Send || o.Name == op.Recv:
		p.point(o)
	default:
		return p.source(o)
	}
	return true
}

// point divides a dm.send or a dm.recv between functions that different devices run. Both sides state the
// sharding of what is sent, so that pieces go to the device of the same pieces.
func (p *partitioner) point(o *ir.Op) {
	var pieces []*ir.Value
	for _, v := range o.Operands {
		pieces = append(pieces, p.get(v, p.settled(v)))
	}
	var layouts []shard.Layout
	for _, r := range o.Results {
		layouts = append(layouts, p.settled(r))
	}
	p.emit(o, pieces, layouts)
}

// make records that a piece of o's result can be computed by f in any layout.
func (p *partitioner) make(o *ir.Op, f func(t *types.Tensor, l shard.Layout) *ir.Value) {
	r := o.Results[0]
	p.makers[r] = func(l shard.Layout) *ir.Value {
		v := f(p.local(r.Tensor(), l), l)
		v.Name = r.Name
		return v
	}
}
