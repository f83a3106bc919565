package partition

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// indexedGather is a gather or an embedding from a dimension that is divided: each device reads the
// rows that its piece has and 0 for others, so that the results are parts of a sum (the
// parallel vocabulary of Shoeybi et al., arXiv 1909.08053).
func (p *partitioner) indexedGather(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	d, batch := op.Indexed(x.o)
	whole := x.o.Operands[0].Tensor()
	n, _ := whole.Shape[d].Int()
	size, _ := pieces[0].Tensor().Shape[d].Int()
	at := p.b.Binary("sub", p.nearest(pieces[1], n), p.times(p.position(over(x.operand(0), d, a)), size))
	own := p.b.Binary("and", p.compare("ge", at, 0), p.compare("lt", at, size))
	pieces[1] = at // a gather moves what is outside into the piece
	layouts := p.layouts(x, a)
	piece := p.emit(x.o, pieces, layouts)
	y := piece.Results[0]
	idx := own.Tensor().Shape
	shape := slices.Clone(idx[:batch])
	for range d - batch {
		shape = append(shape, dim.Const(1))
	}
	shape = append(shape, idx[batch:]...)
	for range whole.Rank() - d - 1 {
		shape = append(shape, dim.Const(1))
	}
	p.replace(x.o, 0, p.b.Value("select", []*ir.Value{p.b.Reshape(own, shape...), y, p.b.Splat(scalar(y), 0)}, nil))
}

// replace makes v the piece of result i that was added last.
func (p *partitioner) replace(o *ir.Op, i int, v *ir.Value) {
	list := p.have[o.Results[i]]
	list[len(list)-1].piece = v
}

// nearest moves indices into a dimension of n elements, as a gather does, and makes them i64.
func (p *partitioner) nearest(idx *ir.Value, n int64) *ir.Value {
	e := idx.Elem()
	t := scalar(idx)
	limit := func(v int64) *ir.Value {
		return p.b.Value("constant", nil, []types.Named{{Name: "value", Value: types.IntOf(t, v)}}, t)
	}
	if !e.IsUnsigned() {
		idx = p.b.Binary("max", idx, limit(0))
	}
	if n-1 <= math.MaxInt32 || e.Bits() == 64 {
		idx = p.b.Binary("min", idx, limit(n-1))
	}
	return p.b.Convert(idx, types.I64)
}

func (p *partitioner) compare(direction string, x *ir.Value, n int64) *ir.Value {
	return p.b.Value("compare", []*ir.Value{x, p.whole(n)}, []types.Named{{Name: "direction", Value: types.Keyword(direction)}})
}

// indexedScatter is a scatter into a dimension that is divided, or of updates that are. Indices
// count from where the piece begins, so that other devices' updates are outside, where a scatter
// drops them. With updates that are divided the results are parts, of which the first device's has x.
func (p *partitioner) indexedScatter(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	d, batch := op.Indexed(x.o)
	at := p.b.Convert(pieces[1], types.I64)
	idx := x.o.Operands[1].Tensor()
	for i := batch; i < idx.Rank(); i++ {
		n, _ := idx.Shape[i].Int()
		if l := p.required(x, 1, a); !p.grid.Even(l, i, n) {
			at = p.b.Value("select", []*ir.Value{p.within(at.Tensor(), n, l, i), at, p.whole(-1)}, nil)
		}
	}
	// Behind the end of the whole there is padding, which an update may change.
	if atoms := over(x.operand(0), d, a); len(atoms) > 0 {
		size, _ := pieces[0].Tensor().Shape[d].Int()
		at = p.b.Binary("sub", at, p.times(p.position(atoms), size))
	}
	pieces[1] = at
	layouts := p.layouts(x, a)
	if l := layouts[0]; len(l.Partial) > 0 && !zero(x.o.Operands[0], l.Reduce) {
		pieces[0] = p.move(x.o.Operands[0].Tensor(), pieces[0], p.required(x, 0, a), shard.Move{Kind: shard.Part, Atoms: l.Partial, Into: l})
	}
	p.emit(x.o, pieces, layouts)
}

// zero reports whether v is the neutral element of a sum.
func zero(v *ir.Value, r types.Reduction) bool {
	d := splat(v)
	return d != nil && r == types.Add && d.Float(0) == 0
}

// classes is a one_hot whose classes are divided: an index that is outside of the piece has 0
// everywhere.
func (p *partitioner) classes(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	y := x.o.Results[0].Tensor()
	d, _ := op.Dim(x.o, "dim", y.Rank())
	layouts := p.layouts(x, a)
	size := p.grid.Piece(p.shape(y), layouts[0])[d]
	pieces[0] = p.b.Binary("sub", p.b.Convert(pieces[0], types.I64), p.times(p.position(layouts[0].Dims[d]), size))
	p.emit(x.o, pieces, layouts).SetAttr("classes", types.Int{V: size})
}
