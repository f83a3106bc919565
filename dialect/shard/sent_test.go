package shard_test

import (
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/shard/shardtest"
	"dmir/dialect/types"
)

// Bytes follow from the definitions, for a mesh of 3 by 4 devices that each have 24 numbers.
func TestSent(t *testing.T) {
	m := &mesh.Mesh{Name: "m", Axes: []mesh.Axis{{Name: "a", Size: 3}, {Name: "b", Size: 4}}}
	const size = 24 * 4
	b := &ir.Block{}
	x := b.AddArg("x", &types.Tensor{Elem: types.F32, Shape: []dim.Dim{dim.Const(24)}})
	for _, c := range []struct {
		name string
		axes []types.Axis
		want int64
	}{
		{op.AllGather, []types.Axis{{Name: "b"}}, 12 * size * 3},
		{op.AllGather, []types.Axis{{Name: "a"}, {Name: "b"}}, 12 * size * 11},
		{op.ReduceScatter, []types.Axis{{Name: "b"}}, 12 * size * 3 / 4},
		{op.AllToAll, []types.Axis{{Name: "a"}}, 12 * size * 2 / 3},
		{op.AllReduce, []types.Axis{{Name: "a"}}, 12 * 2 * size * 2 / 3},
		{op.AllReduce, []types.Axis{{Name: "b", Pre: 1, Size: 2}}, 12 * 2 * size / 2},
		{op.CollectivePermute, []types.Axis{{Name: "b"}}, 3 * 2 * size}, // in each of 3 groups two of the pairs
		{op.Send, []types.Axis{{Name: "a"}}, 4 * size},
		{op.Reshard, nil, 0},
	} {
		o := (&ir.Builder{Block: b, Index: len(b.Ops)}).Op(c.name, []*ir.Value{x}, []types.Named{
			{Name: "axes", Value: mesh.Names(c.axes)},
			{Name: "pairs", Value: types.Array{op.IntList(0, 1), op.IntList(2, 2), op.IntList(1, 3)}},
		})
		if got := shard.Sent(o, m); got != c.want {
			t.Errorf("%s along %v sends %d bytes, not %d", c.name, c.axes, got, c.want)
		}
	}
	sum := shardtest.Traffic(&ir.Func{Body: b}, m)
	if sum["a"] != 12*size*2/3+12*2*size*2/3+4*size || sum["a, b"] != 12*size*11 {
		t.Errorf("all together: %v", sum)
	}
}
