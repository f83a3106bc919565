package partition

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// source divides the ops whose elements depend on their position in the whole; false of
// others.
func (p *partitioner) source(o *ir.Op) bool {
	switch o.Name {
	case "dm.iota":
		return p.iota(o)
	case "dm.rng":
		p.rng(o)
	case "dm.dropout":
		p.dropout(o)
	default:
		return false
	}
	return true
}

// iota counts from where the piece begins; of floating-point types with a start and a step of
// their own it is computed whole, as sums would be rounded otherwise.
func (p *partitioner) iota(o *ir.Op) bool {
	r := o.Results[0]
	whole := r.Tensor()
	d, ok := op.Dim(o, "dim", whole.Rank())
	if !ok || !whole.Elem.IsInt() && !op.Counts(o) {
		return false
	}
	p.make(o, func(t *types.Tensor, l shard.Layout) *ir.Value {
		if len(l.Dims[d]) == 0 {
			return p.b.Value("iota", nil, o.Attrs, t)
		}
		// Integers wrap, and counts that floating-point types cannot hold are rounded as a whole.
		at := p.indices(t, l, d)
		if !op.Counts(o) {
			step, start := int64(op.Float(o, "step")), int64(op.Float(o, "start"))
			at = p.b.Binary("add", p.times(at, step), p.whole(start))
		}
		at = p.b.Convert(at, t.Elem)
		return p.b.Value("broadcast", []*ir.Value{at}, nil, t)
	})
	return true
}

// rng draws the whole on every device, which keeps its piece: the numbers are those of one
// device, and a kernel computes no more of them than it needs.
func (p *partitioner) rng(o *ir.Op) {
	p.replicate(o)
	p.cutFrom(o.Results[0])
}

// cutFrom makes pieces of v out of the whole that is there.
func (p *partitioner) cutFrom(v *ir.Value) {
	whole := p.have[v][len(p.have[v])-1].piece
	p.makers[v] = func(l shard.Layout) *ir.Value { return p.piece(v.Tensor(), whole, l) }
}

// piece is the piece in layout l of a whole tensor of type t.
func (p *partitioner) piece(t *types.Tensor, whole *ir.Value, l shard.Layout) *ir.Value {
	into := p.grid.Piece(p.shape(t), l)
	for d, atoms := range l.Dims {
		if len(atoms) > 0 {
			whole = p.own(p.pad(whole, d, into[d]*int64(p.grid.Count(atoms))), d, into[d], atoms)
		}
	}
	return whole
}

// part is where the numbers of an op with dropout stand in the sequence of the whole.
type part struct {
	first *ir.Value
	whole []int64
}

// drawn is that of the piece of o, an op whose first result has the leading dimensions that are numbered; nil where it draws
// nothing or the whole.
func (p *partitioner) drawn(o *ir.Op, layouts []shard.Layout) *part {
	if !op.Draws(o) {
		return nil
	}
	n := op.NumberingOf(o)
	steps, ok := n.Steps()
	t, l := o.Results[0].Tensor(), layouts[0]
	into := p.grid.Piece(p.shape(t), l)
	var first *ir.Value
	add := func(v *ir.Value) {
		if first == nil {
			first = v
		} else {
			first = p.b.Binary("add", first, v)
		}
	}
	for d := range n.Shape {
		if len(l.Dims[d]) > 0 && ok {
			add(p.times(p.position(l.Dims[d]), into[d]*steps[d]))
		}
	}
	if first == nil {
		return nil
	}
	if n.First != nil {
		add(p.b.Convert(p.get(n.First, shard.Whole(0)), types.I64))
	}
	whole := n.Whole
	if whole == nil {
		whole = p.shape(t)[:len(n.Shape)]
	}
	return &part{first, whole}
}

// dropout draws the mask of the whole and multiplies the piece with its own part of it.
func (p *partitioner) dropout(o *ir.Op) {
	x := o.Operands[0]
	t := x.Tensor()
	l := p.settled(o.Results[0])
	ones := *t
	ones.At.Shard, ones.Elem = nil, types.F32
	operands := []*ir.Value{p.b.Splat(&ones, 1)}
	for _, v := range o.Operands[1:] {
		operands = append(operands, p.get(v, shard.Whole(v.Tensor().Rank())))
	}
	truth := ones
	truth.Elem = types.I1
	drawn := p.b.Make("dropout", operands, o.Attrs, &ones, &truth)
	if drawn == nil {
		return
	}
	keep := p.piece(t, drawn.Results[1], l)
	piece := p.get(x, l)
	wide := piece.Elem()
	if wide != types.F64 {
		wide = types.F32 // halves are computed in f32 and rounded once
	}
	factor := &types.Tensor{Elem: wide, At: types.Placement{Space: types.HBM}}
	// 0 · NaN stays NaN, as in the op.
	scale := p.b.Value("select", []*ir.Value{keep, p.b.Splat(factor, 1/(1-op.Float(o, "rate"))), p.b.Splat(factor, 0)}, nil)
	y := p.b.Convert(p.b.Binary("mul", p.b.Convert(piece, wide), scale), piece.Elem())
	p.add(o.Results[0], l, y)
	if len(o.Results) > 1 {
		p.add(o.Results[1], l, p.b.Convert(keep, o.Results[1].Elem()))
	}
}

// splat is the constant of one number that v is, or a broadcast of one; else nil.
func splat(v *ir.Value) *types.Dense {
	for v.Op != nil && v.Op.Name == "dm.broadcast" {
		v = v.Op.Operands[0]
	}
	if v.Op == nil || v.Op.Name != op.Constant {
		return nil
	}
	if d, ok := v.Op.Attr("value").(*types.Dense); ok && d.Splat && d.File() == nil {
		return d
	}
	return nil
}

// splatted is splat of the result of o.
func splatted(o *ir.Op) *types.Dense {
	if len(o.Results) != 1 {
		return nil
	}
	return splat(o.Results[0])
}
