package partition

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// move writes one move of a plan: x is a piece of a tensor of type t in layout at.
func (p *partitioner) move(t *types.Tensor, x *ir.Value, at shard.Layout, m shard.Move) *ir.Value {
	p.b.At = p.at
	n := int64(p.grid.Count(m.Atoms))
	axes := types.Named{Name: "axes", Value: p.names(m.Atoms)}
	into := p.grid.Piece(p.shape(t), m.Into)
	integer := func(name string, d int) types.Named { return types.Named{Name: name, Value: types.Int{V: int64(d)}} }
	sized := func(x *ir.Value, change func(shape []dim.Dim)) *types.Tensor {
		r := *x.Tensor()
		r.Shape = slices.Clone(r.Shape)
		change(r.Shape)
		return &r
	}
	switch m.Kind {
	case shard.Gather:
		whole := sized(x, func(s []dim.Dim) { s[m.Dim] = s[m.Dim].Scale(n) })
		return p.cut(p.collective(op.AllGather, x, whole, integer("dim", m.Dim), axes), m.Dim, into[m.Dim])
	case shard.Slice:
		piece := into[m.Dim]
		x = p.pad(x, m.Dim, piece*n)
		return p.own(x, m.Dim, piece, m.Atoms)
	case shard.Swap:
		x = p.pad(x, m.To, into[m.To]*n)
		y := sized(x, func(s []dim.Dim) {
			s[m.To] = dim.Const(into[m.To])
			s[m.Dim] = s[m.Dim].Scale(n)
		})
		return p.cut(p.collective(op.AllToAll, x, y, integer("split", m.To), integer("concat", m.Dim), axes), m.Dim, into[m.Dim])
	case shard.Scatter:
		x = p.pad(x, m.Dim, into[m.Dim]*n)
		y := sized(x, func(s []dim.Dim) { s[m.Dim] = dim.Const(into[m.Dim]) })
		return p.collective(op.ReduceScatter, x, y, reduction(at.Reduce), integer("dim", m.Dim), axes)
	case shard.Reduce:
		return p.collective(op.AllReduce, x, x.Type, reduction(at.Reduce), axes)
	case shard.Permute:
		pairs := make(types.Array, len(m.Pairs))
		for i, pair := range m.Pairs {
			pairs[i] = op.IntList(pair[0], pair[1])
		}
		return p.collective(op.CollectivePermute, x, x.Type, types.Named{Name: "pairs", Value: pairs}, axes)
	default: // shard.Part
		first := p.b.Value("compare", []*ir.Value{p.position(m.Atoms), p.whole(0)}, []types.Named{{Name: "direction", Value: types.Keyword("eq")}})
		none := p.b.Value("constant", nil, []types.Named{{Name: "value", Value: op.Neutral(m.Into.Reduce, scalar(x))}}, scalar(x))
		return p.b.Value("select", []*ir.Value{first, x, none}, nil)
	}
}

func reduction(r types.Reduction) types.Named {
	return types.Named{Name: "reduction", Value: types.Keyword(r.Word())}
}

// names are atoms as the attribute of a collective.
func (p *partitioner) names(atoms []int) types.Array { return mesh.Names(p.grid.Axes(atoms)) }

func (p *partitioner) collective(name string, x *ir.Value, result types.Type, attrs ...types.Named) *ir.Value {
	return p.b.Value(strings.TrimPrefix(name, op.Prefix), []*ir.Value{x}, attrs, result)
}

// scalar is the type of one element of x.
func scalar(x *ir.Value) *types.Tensor {
	return &types.Tensor{Elem: x.Elem(), At: types.Placement{Space: types.HBM}}
}

// pad makes dimension d of x, at its end, as long as size.
func (p *partitioner) pad(x *ir.Value, d int, size int64) *ir.Value {
	have, _ := x.Tensor().Shape[d].Int()
	if have == size {
		return x
	}
	high := make([]int, x.Tensor().Rank())
	high[d] = int(size - have)
	zero := p.b.Splat(scalar(x), 0)
	return p.b.Value("pad", []*ir.Value{x, zero}, []types.Named{
		{Name: "low", Value: op.IntList(make([]int, len(high))...)}, {Name: "high", Value: op.IntList(high...)},
	})
}

// cut shortens dimension d of x to size.
func (p *partitioner) cut(x *ir.Value, d int, size int64) *ir.Value {
	if have, _ := x.Tensor().Shape[d].Int(); have == size {
		return x
	}
	start, limit := make([]int, x.Tensor().Rank()), make([]int, x.Tensor().Rank())
	for i, s := range x.Tensor().Shape {
		n, _ := s.Int()
		limit[i] = int(n)
	}
	limit[d] = int(size)
	return p.b.Value("slice", []*ir.Value{x}, []types.Named{
		{Name: "start_indices", Value: op.IntList(start...)}, {Name: "limit_indices", Value: op.IntList(limit...)},
	})
}

// own is the piece of x along dimension d, of size elements, that the device has by its
// position along atoms.
func (p *partitioner) own(x *ir.Value, d int, size int64, atoms []int) *ir.Value {
	v := p.take(x, d, size, p.times(p.position(atoms), size))
	p.Own[v.Op] = d
	return v
}

// take is size elements of dimension d of x from start on.
func (p *partitioner) take(x *ir.Value, d int, size int64, start *ir.Value) *ir.Value {
	operands := []*ir.Value{x}
	sizes := make([]int, x.Tensor().Rank())
	for i, s := range x.Tensor().Shape {
		n, _ := s.Int()
		sizes[i] = int(n)
		if i == d {
			sizes[i] = int(size)
			operands = append(operands, start)
		} else {
			operands = append(operands, p.whole(0))
		}
	}
	return p.b.Value("dynamic_slice", operands, []types.Named{{Name: "slice_sizes", Value: op.IntList(sizes...)}})
}

// position is where the device stands along atoms, a tensor<i64> that is computed once.
func (p *partitioner) position(atoms []int) *ir.Value {
	axes := p.names(atoms)
	key := axes.String()
	if v := p.ids[key]; v != nil {
		return v
	}
	b := &ir.Builder{Block: p.entry, Index: p.head}
	v := b.Op(op.PartitionID, nil, []types.Named{{Name: "axes", Value: axes}}, index).Results[0]
	p.head++
	p.levels[0].Index++
	p.ids[key] = v
	return v
}

var index = &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}

// whole is the integer n as a tensor<i64>.
func (p *partitioner) whole(n int64) *ir.Value {
	return p.b.Value("constant", nil, []types.Named{{Name: "value", Value: types.IntOf(index, n)}}, index)
}

// times is the tensor<i64> x·n.
func (p *partitioner) times(x *ir.Value, n int64) *ir.Value {
	if n == 1 {
		return x
	}
	return p.b.Binary("mul", x, p.whole(n))
}

// mask replaces the elements of x, a piece in layout l of a tensor of type t, that are padding
// along dimension d by the neutral element of a reduction.
func (p *partitioner) mask(t *types.Tensor, x *ir.Value, l shard.Layout, d int, r types.Reduction) *ir.Value {
	n, _ := t.Shape[d].Int()
	if p.grid.Even(l, d, n) {
		return x
	}
	inside := p.within(x.Tensor(), n, l, d)
	none := p.b.Value("constant", nil, []types.Named{{Name: "value", Value: op.Neutral(r, scalar(x))}}, scalar(x))
	return p.b.Value("select", []*ir.Value{inside, x, none}, nil)
}

// within is true for the indices along dimension d of a piece that are less than n in the
// whole; its shape broadcasts to the piece's.
func (p *partitioner) within(piece *types.Tensor, n int64, l shard.Layout, d int) *ir.Value {
	at := p.indices(piece, l, d)
	return p.b.Value("compare", []*ir.Value{at, p.whole(n)}, []types.Named{{Name: "direction", Value: types.Keyword("lt")}})
}

// indices are those in the whole of the elements of a piece along dimension d, as a tensor
// of i64 that broadcasts to the piece.
func (p *partitioner) indices(piece *types.Tensor, l shard.Layout, d int) *ir.Value {
	size, _ := piece.Shape[d].Int()
	shape := make([]dim.Dim, piece.Rank()-d)
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	shape[0] = dim.Const(size)
	count := p.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, index.With(shape...))
	return p.b.Binary("add", count, p.times(p.position(l.Dims[d]), size))
}
