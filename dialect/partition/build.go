package partition

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Ops that several algorithms build.

// gather puts the pieces of x along dimension d together.
func (p *partitioner) gather(x *ir.Value, d int, atoms []int) *ir.Value {
	t := *x.Tensor()
	n, _ := t.Shape[d].Int()
	t.Shape = replaced(t.Shape, d, n*int64(p.grid.Count(atoms)))
	return p.collective(op.AllGather, x, &t, types.Named{Name: "dim", Value: types.Int{V: int64(d)}}, types.Named{Name: "axes", Value: p.names(atoms)})
}

// permute hands x from position to position along atoms.
func (p *partitioner) permute(x *ir.Value, pairs [][2]int, atoms []int) *ir.Value {
	list := make(types.Array, len(pairs))
	for i, pair := range pairs {
		list[i] = op.IntList(pair[0], pair[1])
	}
	return p.collective(op.CollectivePermute, x, x.Type, types.Named{Name: "pairs", Value: list}, types.Named{Name: "axes", Value: p.names(atoms)})
}

// allReduce is the reduction of x over the devices along atoms.
func (p *partitioner) allReduce(r types.Reduction, x *ir.Value, atoms []int) *ir.Value {
	return p.collective(op.AllReduce, x, x.Type, reduction(r), types.Named{Name: "axes", Value: p.names(atoms)})
}

// reduce makes dimension d of x one element.
func (p *partitioner) reduce(r types.Reduction, x *ir.Value, d int) *ir.Value {
	return p.b.Value("reduce", []*ir.Value{x}, []types.Named{
		{Name: "kind", Value: types.Keyword(r.Word())}, {Name: "dims", Value: op.IntList(d)}, {Name: "keep_dims", Value: types.Bool(true)},
	})
}

// neutral is the neutral element of a reduction of x, a scalar tensor.
func (p *partitioner) neutral(r types.Reduction, x *ir.Value) *ir.Value {
	t := scalar(x)
	return p.b.Value("constant", nil, []types.Named{{Name: "value", Value: op.Neutral(r, t)}}, t)
}

func replaced(shape []dim.Dim, d int, n int64) []dim.Dim {
	out := slices.Clone(shape)
	out[d] = dim.Const(n)
	return out
}

// column is the shape of numbers that broadcast to x along its dimension d.
func column(x *ir.Value, d int) []dim.Dim {
	t := x.Tensor()
	shape := make([]dim.Dim, t.Rank()-d)
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	shape[0] = t.Shape[d]
	return shape
}

// part is elements from to limit of dimension d of x.
func (p *partitioner) part(x *ir.Value, d int, from, to int64) *ir.Value {
	if n, _ := x.Tensor().Shape[d].Int(); from == 0 && to == n {
		return x
	}
	return p.b.Value("slice", []*ir.Value{x}, []types.Named{
		{Name: "start_indices", Value: op.IntList(int(from))}, {Name: "limit_indices", Value: op.IntList(int(to))}, {Name: "dims", Value: op.IntList(d)},
	})
}

// lookup is the number of a list that is the device's by its position along atoms.
func (p *partitioner) lookup(list []int64, atoms []int) *ir.Value {
	if !slices.ContainsFunc(list, func(n int64) bool { return n != list[0] }) {
		return p.whole(list[0])
	}
	t := index.With(dim.Const(int64(len(list))))
	data := make([]byte, 0, 8*len(list))
	for _, n := range list {
		for i := range 8 {
			data = append(data, byte(n>>(8*i)))
		}
	}
	all := p.b.Value("constant", nil, []types.Named{{Name: "value", Value: types.DenseOf(t, data)}}, t)
	return p.b.Reshape(p.take(all, 0, 1, p.position(atoms)))
}
