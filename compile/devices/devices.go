// Package devices is the passes that make of a function of whole tensors the one that each
// device of a mesh runs, or, for one device, take its shardings away. Package partition divides;
// this one is about programs and their options.
package devices

import (
	"context"
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Codes are the reasons why a program is not divided.
var Codes = diag.Register([]diag.Code{
	{Code: "DM830", Name: "device-count", Doc: "A program is divided over the devices of its mesh, and it was to run on another number of devices.", Help: "give the mesh other sizes with `--mesh data=2,model=2`, or run on as many devices as it has"},
	{Code: "DM831", Name: "not-divided", Doc: "The shardings of the function cannot be followed: they name two meshes, or parts of an axis that do not divide one another, or a value cannot be divided.", Help: "divide all values of the function over one mesh"},
	{Code: "DM832", Name: "no-shardings", Doc: "A program was to run on several devices, and nothing in it is divided over a mesh.", Help: "define a mesh, `dm.mesh @pod {data = 4}`, and state the sharding of an argument: `tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>`"},
	{Code: "DM833", Name: "unmatched-send", Doc: "A compiled program pairs each `dm.send` with a `dm.recv` behind it, and one of them has no partner of its type.", Help: "write both with the same axes, positions and channel in the same block, or use dm.collective_permute"},
})

// Shard is the pass that writes the sharding of each value into its type.
func Shard() pass.Pass {
	return pass.Pass{Name: "shard", Summary: "the sharding of every value, from those that are written", Run: runShard}
}

// Partition is the pass that makes of the function the one that each device runs.
func Partition() pass.Pass {
	return pass.Pass{Name: "partition", Summary: "the function of one device of the mesh, with collectives", Run: runPartition}
}

// Mesh gives the meshes of m the sizes of axes that are asked for. It is an error if none has
// such an axis.
func Mesh(m *ir.Module, sizes map[string]int64) error {
	for name, n := range sizes {
		found := false
		for i, o := range m.Ops {
			if o.Name != op.Mesh {
				continue
			}
			k := slices.Index(op.Strings(o, "axes"), name)
			if k < 0 {
				continue
			}
			found = true
			c := *o
			c.Attrs = slices.Clone(o.Attrs)
			list := slices.Clone(o.Attr("sizes").(types.Array))
			list[k] = types.Int{V: n}
			c.SetAttr("sizes", list)
			m.Ops[i] = &c
			if _, err := mesh.Of(&c); err != nil {
				return pass.Errorf(o, "DM830", "the mesh cannot have %s = %d: %s", name, n, err)
			}
		}
		if !found {
			return pass.Errorf(nil, "DM830", "no mesh of the file has an axis %s", name)
		}
	}
	return nil
}

// alone reports whether the function is to run on one device.
func alone(u *pass.Unit) bool { return u.Options.Devices == 0 }

func runShard(u *pass.Unit) error {
	if u.Func.Op.Attr(op.MeshAttr) != nil {
		return fits(u)
	}
	if alone(u) {
		Strip(u.Func)
		return nil
	}
	op.ShardingsInTypes(u.Func)
	values, problem := shard.Propagate(u.Module, u.Func)
	if problem != nil {
		return u.Refused("DM831", problem)
	}
	if values == nil {
		if u.Options.Devices == pass.AllDevices {
			return nil
		}
		return pass.Errorf(u.Func.Op, "DM832", "nothing in @%s is divided over devices", u.Func.Name)
	}
	if n := values.Grid.Mesh.Devices(); u.Options.Devices > 0 && n != u.Options.Devices {
		return pass.Errorf(u.Func.Op, "DM830", "mesh @%s has %s (%s), and the program is to run on %d", values.Grid.Mesh.Name, diag.Count(n, "device"), values.Grid.Mesh, u.Options.Devices)
	}
	state := func(v *ir.Value) {
		if t := v.Tensor(); t != nil {
			if s, _ := values.Sharding(v); s != nil {
				r := *t
				r.At.Shard = s
				v.Type = &r
			}
		}
	}
	for _, a := range u.Func.Args {
		state(a)
	}
	ir.WalkValues(u.Func.Body.Ops, state)
	u.Func.Retype()
	return nil
}

// fits checks that a function that one device runs has the devices it needs.
func fits(u *pass.Unit) error {
	m := mesh.Find(u.Module, u.Func.Op.Str(op.MeshAttr))
	switch {
	case m == nil:
		return nil // the verifier reports it
	case alone(u):
		return pass.Errorf(u.Func.Op, "DM830", "@%s is what each of %s of mesh @%s runs", u.Func.Name, diag.Count(m.Devices(), "device"), m.Name)
	case u.Options.Devices > 0 && m.Devices() != u.Options.Devices:
		return pass.Errorf(u.Func.Op, "DM830", "mesh @%s has %s (%s), and the program is to run on %d", m.Name, diag.Count(m.Devices(), "device"), m, u.Options.Devices)
	}
	return nil
}

func runPartition(u *pass.Unit) error {
	if alone(u) || u.Func.Op.Attr(op.MeshAttr) != nil {
		return nil
	}
	fn, problem := partition.Func(u.Context(), u.Module, u.Func)
	if err := context.Cause(u.Context()); err != nil {
		return err
	}
	if problem != nil {
		return u.Refused("DM831", problem)
	}
	if fn != nil {
		u.Replace(fn)
	}
	return nil
}

// Strip takes the shardings of f away: on one device each value is whole, and a dm.reshard is
// its operand.
func Strip(f *ir.Func) {
	op.DropShardings(f)
	found := false
	plain := func(v *ir.Value) {
		if t := v.Tensor(); t != nil && t.At.Shard != nil {
			r := *t
			r.At.Shard = nil
			v.Type = &r
			found = true
		}
	}
	for _, a := range f.Args {
		plain(a)
	}
	var reshards []*ir.Op
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.Reshard {
			reshards = append(reshards, o)
		}
		return true
	})
	ir.WalkValues(f.Body.Ops, plain)
	for _, o := range slices.Backward(reshards) {
		r := o.Results[0]
		if x := o.Operands[0]; x.Op != nil && strings.HasPrefix(r.Name, "%") && x.Name == "" {
			x.Name = r.Name
		}
		ir.ReplaceUses(r, o.Operands[0])
		ir.Erase(o)
	}
	if found || len(reshards) > 0 {
		f.Retype()
	}
}
