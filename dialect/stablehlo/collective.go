package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Collectives stand in what one device runs. Their groups of devices become axes of the mesh.

func collectives() map[string]conversion {
	m := map[string]conversion{
		"all_reduce": allReduce, "all_gather": allGather, "reduce_scatter": reduceScatter, "all_to_all": allToAll,
		"collective_permute": collectivePermute, "partition_id": partitionID, "replica_id": replicaID,
	}
	for name, f := range m {
		m[name] = func(n *node) []*ir.Value {
			if n.device == nil {
				n.report(n.t, Unsupported, n.t.Head(), "%s stands in a function that is no sdy.manual_computation over a mesh", n.name).
					Help = "write the program with shard_map over a mesh, or with shardings of whole tensors"
				panic(bailout{})
			}
			return f(n)
		}
	}
	return m
}

// axes are the axes of the mesh along which the devices of each group differ. ordered is false
// where the order in a group makes no difference.
func (n *node) axes(ordered bool) []types.Axis {
	m := n.device.Mesh
	all := make([]types.Axis, len(m.Axes))
	for i, a := range m.Axes {
		all[i] = types.Axis{Name: a.Name}
	}
	groups := n.table("replica_groups")
	if n.name != "stablehlo.all_to_all" && !n.has("use_global_device_ids") {
		n.must(len(groups) == 0 || len(groups) == 1 && slices.Equal(groups[0], []int{0}), Unsupported, "%s in groups of replicas is not supported; give it use_global_device_ids", n.name)
		n.must(n.has("channel_handle"), Unsupported, "%s without a channel works on replicas, which is not supported", n.name)
		return all
	}
	if len(groups) == 0 {
		return all
	}
	if !ordered {
		for i := range groups {
			groups[i] = slices.Sorted(slices.Values(groups[i]))
		}
	}
	axes := decompose(m, groups[0])
	seen := make([]bool, m.Devices())
	for _, g := range groups {
		ok := len(g) == len(groups[0]) && len(g) > 0 && g[0] >= 0 && g[0] < m.Devices() && slices.Equal(m.Group(g[0], axes), g)
		n.mustAttr("replica_groups", ok, "the groups of %s are not those of axes of the mesh, which has %s", n.name, m)
		for _, d := range g {
			n.mustAttr("replica_groups", !seen[d], "device %d is in two groups", d)
			seen[d] = true
		}
	}
	n.mustAttr("replica_groups", !slices.Contains(seen, false), "a device is in no group")
	return axes
}

// decompose is the axes along which the devices of a group differ, if there are such: those of
// the strides with which their numbers grow, from the fastest on.
func decompose(m *mesh.Mesh, group []int) []types.Axis {
	var axes []types.Axis
	for block := 1; block < len(group); {
		stride := group[block] - group[0]
		count := 1
		for count*block < len(group) && group[count*block]-group[0] == count*stride {
			count++
		}
		if stride < 1 || len(group)%(count*block) != 0 {
			return nil
		}
		block *= count
		for at, i := 1, len(m.Axes)-1; i >= 0 && count > 1; i-- {
			size := m.Axes[i].Size
			if stride >= at && stride < at*size && stride%at == 0 && size%(stride/at) == 0 {
				inner := stride / at // devices of the axis behind the part
				k := min(count, size/inner)
				if size%(inner*k) != 0 || count%k != 0 {
					return nil
				}
				a := types.Axis{Name: m.Axes[i].Name}
				if k < size {
					a.Pre, a.Size = int64(size/inner/k), int64(k)
				}
				axes = append(axes, a)
				count, stride = count/k, at*size
			}
			at *= size
		}
		if count > 1 {
			return nil
		}
	}
	slices.Reverse(axes)
	return axes
}

// table is the rows of a literal of two dimensions.
func (n *node) table(name string) [][]int {
	a, ok := n.attrs[name]
	n.must(ok, "DM141", "%s needs the attribute %s", n.name, name)
	d, ok := n.value(name).(*types.Dense)
	n.mustAttr(name, ok && d.Type.Rank() == 2, "%s of %s is no table of integers", name, n.name)
	rows, _ := d.Type.Shape[0].Int()
	columns, _ := d.Type.Shape[1].Int()
	if rows == 0 || columns == 0 {
		return nil
	}
	if rows > maxSize || columns > maxSize || d.Len() > maxPairs {
		n.failAt("DM141", a.at, "%s of %s is too large", name, n.name)
	}
	out := make([][]int, rows)
	for i := range out {
		out[i] = make([]int, columns)
		for k := range out[i] {
			at := i*int(columns) + k
			if d.Splat {
				at = 0
			}
			out[i][k] = n.small(name, d.Int(at))
		}
	}
	return out
}

// maxPairs bounds the entries of tables of devices.
const maxPairs = 1 << 20

func axesAttr(axes []types.Axis) types.Named { return named("axes", mesh.Names(axes)) }

// combination is the reduction of a collective's region.
func (n *node) combination(e types.Elem) types.Named {
	kind := n.combiner(0, e)
	if e == types.I1 {
		kind = map[string]string{"add": "or", "max": "or", "mul": "and", "min": "and", "or": "or", "and": "and"}[kind]
	}
	_, ok := types.ReductionOf(kind)
	n.must(ok, Unsupported, "%s is not supported with this function: it adds, multiplies, or takes the maximum, the minimum, and, or", n.name)
	return named("reduction", types.Keyword(kind))
}

func allReduce(n *node) []*ir.Value {
	axes := n.axes(false)
	out := make([]*ir.Value, len(n.in))
	for i, v := range n.in {
		out[i] = v
		if len(axes) > 0 {
			out[i] = n.op("all_reduce", []*ir.Value{v}, n.combination(v.Elem()), axesAttr(axes))
		}
	}
	return out
}

// resized is the type of v with dimension d in another number of pieces: times as many elements,
// a part of them.
func (n *node) resized(t *types.Tensor, name string, d, times, parts int) *types.Tensor {
	n.mustAttr(name, d >= 0 && d < t.Rank(), "%s of %s is %d, which is no dimension of %s", name, n.name, d, t)
	shape := n.sizes(t)
	n.mustAttr(name, shape[d]%parts == 0 && shape[d]*times <= maxSize, "%s of %s: dimension %d of %s is not divided evenly over %d devices", name, n.name, d, t, parts)
	shape[d] = shape[d] / parts * times
	return tensorOf(t.Elem, shape...)
}

func allGather(n *node) []*ir.Value {
	axes, d := n.axes(true), n.int("all_gather_dim")
	p := n.device.Count(axes)
	out := make([]*ir.Value, len(n.in))
	for i, v := range n.in {
		if out[i] = v; len(axes) > 0 {
			t := n.resized(n.tensor(v), "all_gather_dim", d, p, 1)
			out[i] = n.make("all_gather", []*ir.Value{v}, []types.Named{intAttr("dim", d), axesAttr(axes)}, t).Results[0]
		}
	}
	return out
}

func reduceScatter(n *node) []*ir.Value {
	n.takes(1)
	axes, d := n.axes(true), n.int("scatter_dimension")
	if len(axes) == 0 {
		return n.in
	}
	v := n.in[0]
	t := n.resized(n.tensor(v), "scatter_dimension", d, 1, n.device.Count(axes))
	return n.make("reduce_scatter", n.in, []types.Named{n.combination(v.Elem()), intAttr("dim", d), axesAttr(axes)}, t).Results
}

func allToAll(n *node) []*ir.Value {
	axes, split, concat := n.axes(true), n.int("split_dimension"), n.int("concat_dimension")
	p := n.device.Count(axes)
	out := make([]*ir.Value, len(n.in))
	for i, v := range n.in {
		if out[i] = v; len(axes) > 0 {
			t := n.resized(n.resized(n.tensor(v), "split_dimension", split, 1, p), "concat_dimension", concat, p, 1)
			out[i] = n.make("all_to_all", []*ir.Value{v}, []types.Named{intAttr("split", split), intAttr("concat", concat), axesAttr(axes)}, t).Results[0]
		}
	}
	return out
}

// tensor is v's type, which must be one of a tensor.
func (n *node) tensor(v *ir.Value) *types.Tensor {
	t := v.Tensor()
	n.must(t != nil, "DM142", "%s works on tensors, not on %s", n.name, v.Type)
	return t
}

// collectivePermute names positions along the axes that a value moves along, where the devices of all
// other positions do the same, and else along all axes.
func collectivePermute(n *node) []*ir.Value {
	n.takes(1)
	m := n.device.Mesh
	pairs := n.table("source_target_pairs")
	for _, p := range pairs {
		n.mustAttr("source_target_pairs", len(p) == 2 && min(p[0], p[1]) >= 0 && max(p[0], p[1]) < m.Devices(), "%v is no pair of two of %d devices", p, m.Devices())
	}
	var moved, all []types.Axis
	for _, axis := range m.Axes {
		a := types.Axis{Name: axis.Name}
		all = append(all, a)
		if slices.ContainsFunc(pairs, func(p []int) bool { return m.Position(p[0], []types.Axis{a}) != m.Position(p[1], []types.Axis{a}) }) {
			moved = append(moved, a)
		}
	}
	list := along(m, pairs, moved)
	if list == nil {
		moved, list = all, along(m, pairs, all)
	}
	attr := make(types.Array, len(list))
	for i, p := range list {
		attr[i] = op.IntList(p...)
	}
	return []*ir.Value{n.op("collective_permute", n.in, named("pairs", attr), axesAttr(moved))}
}

// along is pairs of devices as pairs of positions along axes, nil where the groups of devices along
// them differ.
func along(m *mesh.Mesh, pairs [][]int, axes []types.Axis) [][]int {
	if len(axes) == 0 {
		return nil
	}
	groups := map[int][][]int{}
	for _, p := range pairs {
		first := m.Group(p[0], axes)[0]
		groups[first] = append(groups[first], []int{m.Position(p[0], axes), m.Position(p[1], axes)})
	}
	var list [][]int
	for d := range m.Devices() {
		if m.Group(d, axes)[0] != d {
			continue
		}
		slices.SortFunc(groups[d], slices.Compare)
		if d > 0 && !slices.EqualFunc(list, groups[d], slices.Equal) {
			return nil
		}
		list = groups[d]
	}
	return list
}

func partitionID(n *node) []*ir.Value {
	all := make([]types.Axis, len(n.device.Axes))
	for i, a := range n.device.Axes {
		all[i] = types.Axis{Name: a.Name}
	}
	id := n.make(op.PartitionID, nil, []types.Named{axesAttr(all)}, tensorOf(types.I64)).Results[0]
	return []*ir.Value{n.convert(id, types.UI32)}
}

// replicaID is 0: there is one replica.
func replicaID(n *node) []*ir.Value {
	return []*ir.Value{n.constant(types.IntOf(tensorOf(types.UI32), 0))}
}
