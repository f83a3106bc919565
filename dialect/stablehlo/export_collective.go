package stablehlo

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Collectives work on groups of devices by their numbers, each on a channel of its own.

func collectiveExports() map[string]func(c *out) ([]*ir.Value, error) {
	all := map[string]func(c *out) ([]*ir.Value, error){"reshard": exportReshard}
	for name, f := range map[string]func(c *out, axes []types.Axis) ([]*ir.Value, error){
		"all_reduce": exportAllReduce, "reduce_scatter": exportReduceScatter, "all_gather": exportAllGather,
		"all_to_all": exportAllToAll, "collective_permute": exportPermute, "partition_id": exportPartitionID,
	} {
		all[name] = func(c *out) ([]*ir.Value, error) {
			if c.device == nil {
				return nil, unsupported("%s stands in a function without the attribute dm.mesh", c.o.Name)
			}
			axes, err := c.device.ParseAxes(op.Strings(c.o, "axes"))
			if err != nil {
				return nil, unsupported("%v", err)
			}
			return f(c, axes)
		}
	}
	for _, name := range []string{"send", "recv"} {
		all[name] = func(c *out) ([]*ir.Value, error) {
			return nil, unsupported("%s has no equivalent between devices that run one program; write dm.collective_permute", c.o.Name)
		}
	}
	return all
}

// groups are the devices that run a collective together, and its channel.
func (c *out) groups(axes []types.Axis) []types.Named {
	var rows []string
	size := 0
	for d := range c.device.Devices() {
		if g := c.device.Group(d, axes); g[0] == d {
			rows, size = append(rows, op.IntList(g...).String()), len(g)
		}
	}
	return []types.Named{
		c.nextChannel(),
		{Name: "replica_groups", Value: types.Raw(fmt.Sprintf("dense<[%s]> : tensor<%dx%dxi64>", strings.Join(rows, ", "), len(rows), size))},
	}
}

func (c *out) nextChannel() types.Named {
	c.channels++
	return types.Named{Name: "channel_handle", Value: types.Raw(fmt.Sprintf("#stablehlo.channel_handle<handle = %d, type = 1>", c.channels))}
}

var globalIDs = types.Named{Name: "use_global_device_ids", Value: types.Unit{}}

func exportAllReduce(c *out, axes []types.Axis) ([]*ir.Value, error) {
	o := c.Op("stablehlo.all_reduce", c.in, append(c.groups(axes), globalIDs), c.result(0))
	c.combineBy(o, op.Str(c.o, "reduction"), c.result(0).Elem)
	return o.Results, nil
}

func exportReduceScatter(c *out, axes []types.Axis) ([]*ir.Value, error) {
	o := c.Op("stablehlo.reduce_scatter", c.in, append(c.groups(axes), number("scatter_dimension", c.dim("dim")), globalIDs), c.result(0))
	c.combineBy(o, op.Str(c.o, "reduction"), c.result(0).Elem)
	return o.Results, nil
}

// dim is a dimension of the operand that an attribute names.
func (c *out) dim(name string) int64 {
	d, _ := op.Dim(c.o, name, c.in[0].Tensor().Rank())
	return int64(d)
}

func exportAllGather(c *out, axes []types.Axis) ([]*ir.Value, error) {
	return one(c.make("all_gather", c.result(0), c.in, append(c.groups(axes), number("all_gather_dim", c.dim("dim")), globalIDs)...))
}

func exportAllToAll(c *out, axes []types.Axis) ([]*ir.Value, error) {
	return one(c.make("all_to_all", c.result(0), c.in, append(c.groups(axes), number("split_dimension", c.dim("split")),
		number("concat_dimension", c.dim("concat")), number("split_count", int64(c.device.Count(axes))))...))
}

// exportPermute writes the pairs of positions for each group.
func exportPermute(c *out, axes []types.Axis) ([]*ir.Value, error) {
	var pairs []string
	for d := range c.device.Devices() {
		g := c.device.Group(d, axes)
		if g[0] != d {
			continue
		}
		for _, p := range op.Pairs(c.o, "pairs") {
			pairs = append(pairs, op.IntList(g[p[0]], g[p[1]]).String())
		}
	}
	if len(pairs) == 0 { // no device gets anything
		return one(c.constant(types.SplatOf(c.result(0), 0)))
	}
	return one(c.make("collective_permute", c.result(0), c.in, c.nextChannel(),
		types.Named{Name: "source_target_pairs", Value: types.Raw(fmt.Sprintf("dense<[%s]> : tensor<%dx2xi64>", strings.Join(pairs, ", "), len(pairs)))}))
}

// exportPartitionID computes the position along the axes of the device's number.
func exportPartitionID(c *out, axes []types.Axis) ([]*ir.Value, error) {
	t := c.result(0)
	id := c.convert(c.make("partition_id", &types.Tensor{Elem: types.UI32}, nil), t.Elem)
	whole := func(n int) *ir.Value { return c.constant(types.IntOf(t, int64(n))) }
	var at *ir.Value
	for _, a := range axes {
		size := c.device.Size(a)
		if size == 1 {
			continue
		}
		g, digit := c.device.Group(0, []types.Axis{a}), id
		if stride := g[1] - g[0]; stride > 1 {
			digit = c.make("divide", t, []*ir.Value{id, whole(stride)})
		}
		if size*(g[1]-g[0]) < c.device.Devices() {
			digit = c.make("remainder", t, []*ir.Value{digit, whole(size)})
		}
		if at != nil {
			digit = c.make("add", t, []*ir.Value{c.make("multiply", t, []*ir.Value{at, whole(size)}), digit})
		}
		at = digit
	}
	if at == nil {
		at = whole(0)
	}
	return one(at)
}
