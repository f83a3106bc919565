package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// manualOf is the sdy.manual_computation that is the whole body of the function t, nil where it
// is not. Such a function, JAX's shard_map, is what one device runs.
func manualOf(t *ast.Op) *ast.Op {
	if len(t.Regions) == 0 || len(t.Regions[0].Blocks) != 1 {
		return nil
	}
	ops := t.Regions[0].Blocks[0].Ops
	if len(ops) != 2 || ops[0].Name != "sdy.manual_computation" || canonical(ops[1].Name) != "func.return" {
		return nil
	}
	return ops[0]
}

// manual is a function of one sdy.manual_computation.
type manual struct {
	*node             // of the computation
	s      *signature // of the whole
	wholes []*ir.Value
	mesh   *imported
	in     []types.Type // of the whole, with shardings, for each operand
	out    []types.Type
	body   *ast.Block
}

// perDevice converts the body of fn, whose arguments are args and which has the signature s of the
// whole, as what one device of a mesh runs: n is its node.
func (n *node) perDevice(fn *ir.Func, s *signature, args []ast.BlockArg, at *ast.Op) {
	x := &manual{s: s, wholes: make([]*ir.Value, len(args))}
	for i, a := range args {
		x.wholes[i] = &ir.Value{Name: a.Name, Type: plain(s.in[i])}
		n.scope.names[a.Name] = x.wholes[i : i+1]
	}
	x.node = n.read(at)
	for _, d := range s.ownOut {
		x.must(stateOf(d) < 0, Unsupported, "a step (%s) that is written as each device runs it", op.StateAttr)
	}
	x.divisions()
	o := fn.Op
	ins, outs := x.arguments(fn, args), types.Array{}
	results := x.results(n.t.Regions[0].Blocks[0].Ops[1])

	outer := n.importer.scope
	n.importer.scope, n.importer.device = &scope{names: n.importer.scope.names}, x.mesh
	defer func() { n.importer.scope, n.importer.device = outer, nil }()
	vs := x.block(x.body)
	x.must(len(vs) == len(x.out), "DM142", "the body of %s returns %d values; expected %d", x.name, len(vs), len(x.out))
	fn.Results = nil
	returned := make([]*ir.Value, len(results))
	for i, k := range results {
		local := x.local(x.out[k])
		x.must(alike(vs[k].Type, local), "DM143", "value %d that %s returns is a %s on each device, but a %s is returned", k, x.name, local, plain(vs[k].Type))
		returned[i] = vs[k]
		fn.Results = append(fn.Results, local)
		outs = append(outs, types.Dict{{Name: op.GlobalAttr, Value: types.TypeAttr{T: x.out[k]}}})
	}
	n.b.Op(op.Return, returned, nil)
	o.SetAttr("function_type", types.TypeAttr{T: &types.Func{In: ir.Types(fn.Args), Out: fn.Results}})
	o.SetAttr("arg_attrs", ins)
	o.SetAttr("res_attrs", outs)
	o.SetAttr(op.MeshAttr, types.SymbolOf(x.mesh.Name))
}

// divisions reads the shardings of operands and results, which are of one mesh, all of whose axes
// are manual.
func (x *manual) divisions() {
	var lists [2][]sdySharding
	for i, name := range []string{"in_shardings", "out_shardings"} {
		a, ok := x.attrs[name]
		x.must(ok, "DM141", "%s needs the attribute %s", x.name, name)
		x.sdy(a, func(r *sdyReader) { lists[i] = r.shardings() })
	}
	x.must(len(lists[0]) == len(x.node.in) && len(lists[1]) == len(x.node.out), "DM142", "%s has %d operands and %d results, and shardings of %d and %d",
		x.name, len(x.node.in), len(x.node.out), len(lists[0]), len(lists[1]))
	for _, s := range slices.Concat(lists[0], lists[1]) {
		m := x.meshes[s.mesh]
		switch {
		case x.refusedMesh[s.mesh]:
			panic(bailout{})
		case m == nil:
			x.fail("DM141", "there is no mesh @%s", s.mesh)
		case x.mesh != nil && x.mesh != m:
			x.unsupported("%s over two meshes is not supported", x.name)
		case m.Mesh == nil || m.permuted:
			x.unsupported("%s over a mesh without axes, or with devices in another order than their own, is not supported", x.name)
		}
		x.mesh = m
	}
	x.must(x.mesh != nil, Unsupported, "%s without operands and results is not supported", x.name)
	var axes []sdyAxis
	if a, ok := x.attrs["manual_axes"]; ok {
		x.sdy(a, func(r *sdyReader) { axes = r.manual() })
	}
	for name, own := range x.mesh.axes {
		if x.mesh.Size(types.Axis{Name: own}) > 1 && !slices.ContainsFunc(axes, func(a sdyAxis) bool { return a.name == name && a.size == 0 }) {
			x.unsupported("%s leaves axis %q to the partitioner; all axes of the mesh must be manual", x.name, name)
		}
	}
	for i, v := range x.node.in {
		x.in = append(x.in, withSharding(v.Type, x.sharding(lists[0][i], v.Tensor(), x.attrs["in_shardings"].at)))
	}
	for i := range x.node.out {
		t := x.result(i)
		x.out = append(x.out, withSharding(t, x.sharding(lists[1][i], t, x.attrs["out_shardings"].at)))
	}
}

// local is the type of a device's piece of t.
func (x *manual) local(t types.Type) types.Type {
	whole := t.(*types.Tensor)
	for i, d := range whole.At.Shard.Dims {
		size, _ := whole.Shape[i].Int()
		x.must(size%int64(x.mesh.Count(d.Axes)) == 0, Unsupported, "%s divides dimension %d of %s, %d, over %d devices, which is not even", x.name, i, plain(t), size, x.mesh.Count(d.Axes))
	}
	local, ok := x.mesh.Local(whole, whole.At.Shard)
	x.must(ok, Unsupported, "the pieces of %s have no size", plain(t))
	return local
}

// arguments gives fn the arguments that a device has, and returns their dictionaries.
func (x *manual) arguments(fn *ir.Func, args []ast.BlockArg) types.Array {
	x.must(len(x.t.Regions) == 1 && len(x.t.Regions[0].Blocks) == 1, "DM142", "%s needs a region of one block", x.name)
	x.body = x.t.Regions[0].Blocks[0]
	inner := x.args(x.body)
	x.must(len(inner) == len(x.in), "DM142", "the region of %s takes %d values; expected %d", x.name, len(inner), len(x.in))
	dicts := make(types.Array, len(args))
	names := map[string][]*ir.Value{}
	for i, a := range args {
		d := types.Dict{}
		if x.s.donated[i] {
			d = types.Dict{{Name: op.DonatedAttr, Value: types.Unit{}}}
		}
		t := x.wholes[i].Type
		k := slices.Index(x.node.in, x.wholes[i])
		if k >= 0 {
			x.must(slices.Index(x.node.in[k+1:], x.wholes[i]) < 0, Unsupported, "%s takes %s twice, which is not supported", x.name, a.Name)
			t = x.local(x.in[k])
			x.must(alike(t, x.typeAt(inner[k].Type)), "DM142", "argument %d of the region of %s is a %s on each device, but is written as another type", k, x.name, t)
			d = append(d, types.Named{Name: op.GlobalAttr, Value: types.TypeAttr{T: x.in[k]}})
		}
		v := fn.Body.AddArg(a.Name, t)
		v.Span = fn.Op.Head
		if k >= 0 {
			names[inner[k].Name] = []*ir.Value{v}
		}
		dicts[i] = d
	}
	fn.Args = fn.Body.Args
	x.must(len(names) == len(x.in), Unsupported, "%s takes other values than arguments of the function", x.name)
	x.importer.scope.names = names
	return dicts
}

// results are the results of the computation that the function returns.
func (x *manual) results(ret *ast.Op) []int {
	at := map[string]int{}
	count := 0
	for _, r := range x.t.Results {
		at[r.Name] = count
		count += int(r.Count)
	}
	var out []int
	for _, u := range ret.Operands {
		k, ok := at[u.Name]
		x.must(ok && k+max(0, int(u.Index)) < len(x.out), Unsupported, "the function returns %s, which %s has not computed", u.Name, x.name)
		out = append(out, k+max(0, int(u.Index)))
	}
	x.must(len(out) == len(x.s.out), "DM142", "@%s returns %d values, but has %d results", x.s.name, len(out), len(x.s.out))
	for i, k := range out {
		x.must(alike(x.out[k], x.s.out[i]), "DM143", "result %d of @%s is a %s, but a %s is returned", i, x.s.name, plain(x.s.out[i]), plain(x.out[k]))
	}
	return out
}
