package distribute_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard/shardtest"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

var meshes = []*mesh.Mesh{
	{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 2}}},
	{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 4}}},
	{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}},
	{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 3}}},
}

// shardings are those of a tensor of a rank that divide it over each axis alone, and over
// all axes together.
func shardings(m *mesh.Mesh, rank int) []*types.Sharding {
	var out []*types.Sharding
	add := func(set func(s *types.Sharding)) {
		s := &types.Sharding{Mesh: "m", Dims: make([]types.Split, rank)}
		set(s)
		out = append(out, s)
	}
	for d := range rank {
		for _, a := range m.Axes {
			add(func(s *types.Sharding) { s.Dims[d].Axes = []types.Axis{{Name: a.Name}} })
		}
		if len(m.Axes) == 2 {
			add(func(s *types.Sharding) { s.Dims[d].Axes = []types.Axis{{Name: "y"}, {Name: "x"}} })
			for e := range rank {
				if e != d {
					add(func(s *types.Sharding) {
						s.Dims[d].Axes = []types.Axis{{Name: "x"}}
						s.Dims[e].Axes = []types.Axis{{Name: "y"}}
					})
				}
			}
		}
	}
	return out
}

// divided is a case: a program without shardings, and what one device computes.
type divided struct {
	u    *pass.Unit
	args []*tensor.Tensor
	want *interp.Result

	coarse float64 // the least tolerance
}

func whole(t *testing.T, text, name string) *divided {
	t.Helper()
	u := passtest.Unit(t, text, name, nil)
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), u.Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &divided{u: u, args: args, want: want}
}

// run divides the program with these shardings of its arguments and results, nil for none, and
// compares what the devices compute. It returns the text of one device and what the devices send.
func (d *divided) run(t *testing.T, on *mesh.Mesh, args, results []*types.Sharding) (local string, sent map[string]int64) {
	t.Helper()
	m := d.u.Module.Clone()
	m.Ops = append([]*ir.Op{on.Op()}, m.Ops...)
	f := d.u.Func.Clone()
	with := func(ty types.Type, s *types.Sharding) types.Type {
		if t, ok := ty.(*types.Tensor); ok && s != nil {
			r := *t
			r.At.Shard = s
			return &r
		}
		return ty
	}
	for i, a := range f.Args {
		a.Type = with(a.Type, args[i])
	}
	for i, r := range f.Results {
		f.Results[i] = with(r, results[i])
	}
	name := func() string {
		var s []string
		for _, list := range [][]*types.Sharding{args, results} {
			for _, x := range list {
				if x == nil {
					s = append(s, "-")
				} else {
					s = append(s, x.Text())
				}
			}
			s = append(s, "->")
		}
		return fmt.Sprintf("%s: %s", on, strings.Join(s[:len(s)-1], " "))
	}
	fn, problem := partition.Func(t.Context(), m, f)
	if problem != nil {
		t.Errorf("%s: %s", name(), problem.Msg)
		return "", nil
	}
	if fn == nil {
		return "", nil
	}
	sent = shardtest.Traffic(fn, on)
	local = passtest.Text(t, &pass.Unit{Module: m, Func: fn})
	m.RemoveFunc(fn.Name)
	m.AddFunc(fn)
	m.Ops = append(m.Ops, fn.Op)
	for _, e := range verify.Module(m) {
		t.Errorf("%s: not valid: %s %s\n%s", name(), e.Code, e.Message, local)
		return local, sent
	}
	p, err := distribute.Of(m, fn)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := p.Run(t.Context(), d.args, interp.Options{})
	if err != nil {
		t.Errorf("%s: %v\n%s", name(), err, local)
		return local, sent
	}
	for i := range d.want.Outputs {
		if at := differs(d.want.Outputs[i], got[i], max(d.coarse, tolerance(d.want.Outputs[i].Elem))); at != "" {
			t.Errorf("%s: result %d: %s\n%s", name(), i, at, local)
			return local, sent
		}
	}
	return local, sent
}

func tolerance(e types.Elem) float64 {
	switch e {
	case types.F64:
		return 1e-12
	case types.F16:
		return 4e-3
	case types.BF16:
		return 3e-2
	}
	return 3e-5
}

// TestEveryOp: each op of the registry, with each sharding of each argument and of each result
// alone and with random ones of all, computes on the devices of each mesh what it computes on one.
func TestEveryOp(t *testing.T) {
	for _, def := range op.All() {
		if strings.Contains(def.Example, op.MeshAttr) {
			continue
		}
		t.Run(def.Name, func(t *testing.T) { whole(t, def.Example, "example").everywhere(t, meshes) })
	}
}

// TestNothing is TestEveryOp for tensors with a dimension of size 0.
func TestNothing(t *testing.T) {
	for _, def := range op.All() {
		if strings.Contains(def.Example, op.MeshAttr) {
			continue
		}
		for i, text := range randprog.WithoutElements(def) {
			p := program.Load(source.New("nothing.dmir", text), program.Options{})
			if !p.HasErrors() {
				t.Run(fmt.Sprintf("%s %d", def.Name, i), func(t *testing.T) { whole(t, text, "example").everywhere(t, meshes[2:]) })
			}
		}
	}
}

// everywhere runs d with each sharding of each argument and of each result alone and with
// random ones of all.
func (d *divided) everywhere(t *testing.T, meshes []*mesh.Mesh) {
	t.Helper()
	f := d.u.Func
	r := rand.New(rand.NewPCG(3, 4))
	for _, on := range meshes {
		all := make([][]*types.Sharding, 0, len(f.Args)+len(f.Results))
		for _, ty := range append(ir.Types(f.Args), f.Results...) {
			var list []*types.Sharding
			if t, ok := ty.(*types.Tensor); ok {
				list = shardings(on, t.Rank())
			}
			all = append(all, list)
		}
		try := func(pick func(i int) *types.Sharding) {
			s := make([]*types.Sharding, len(all))
			for i := range all {
				s[i] = pick(i)
			}
			d.run(t, on, s[:len(f.Args)], s[len(f.Args):])
		}
		for i, list := range all {
			for _, s := range list {
				try(func(k int) *types.Sharding {
					if k == i {
						return s
					}
					return nil
				})
			}
		}
		for range 10 {
			try(func(k int) *types.Sharding {
				if len(all[k]) == 0 || r.IntN(3) == 0 {
					return nil
				}
				return all[k][r.IntN(len(all[k]))]
			})
		}
	}
}
