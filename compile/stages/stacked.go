package stages

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/stacks"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// stacked are the places of the arguments and results of a step, some of which are pieces of a loop over layers.
type stacked struct {
	args, results []stacks.Place
}

// pieces finds what is stacked, and checks that piece i is that of the devices at position i.
func (s *splitter) pieces() error {
	var a, b int
	s.stacked.args, a = stacks.Places(s.fn.Op, "arg_attrs", ir.Types(s.fn.Args))
	s.stacked.results, b = stacks.Places(s.fn.Op, "res_attrs", ir.Types(s.body.Terminator().Operands))
	n := max(a, b)
	switch {
	case n == 0:
		return nil
	case n != s.stages:
		return pass.Errorf(s.fn.Op, "DM835", "a loop of @%s is cut into %s, and the step has %d", s.fn.Name, diag.Count(n, "stage"), s.stages)
	case n != s.devices:
		e := pass.Errorf(s.fn.Op, "DM835", "a loop of @%s is cut into %s, and there are %s along %s, each of which holds the layers of one stage", s.fn.Name, diag.Count(n, "stage"), diag.Count(s.devices, "position"), s.axis.Name)
		e.Help = "use 1f1b, gpipe or zb-h1 with one stage on each device, or write the layers as equal calls"
		return e
	}
	return s.evenly()
}

// evenly checks that pieces which other axes divide along the layers as well are divided evenly: a device's part of a piece is its part
// of the whole then.
func (s *splitter) evenly() error {
	for i, a := range s.fn.Args {
		t := a.Tensor()
		if s.values == nil || s.stacked.args[i].Piece < 0 {
			continue
		}
		sh, _ := s.values.Sharding(a)
		size, ok := t.Shape[0].Int()
		if sh == nil || !ok || len(sh.Dims[0].Axes) == 0 {
			continue
		}
		if n := s.on.Count(sh.Dims[0].Axes); size%int64(n) != 0 || stacks.Size(s.fn.Op, "arg_attrs", i)%size != 0 {
			return pass.Errorf(s.fn.Op, "DM835", "%s has %d layers in each stage, which its sharding over %s does not divide evenly", a.Name, size, diag.Count(n, "device"))
		}
	}
	return nil
}

// owned checks that no device needs another one's piece of an argument.
func (s *splitter) owned() error {
	for i, p := range s.stacked.args {
		for device := range s.users[i] {
			if at, ok := owner(p); ok && at != device {
				return pass.Errorf(s.fn.Op, "DM836", "the layers of stage %d are needed by the devices with %s = %d: %s", at, s.axis.Name, device, s.fn.Args[i].Name)
			}
		}
	}
	return nil
}

// owner is the device whose stage a piece belongs to; ok is false of what is no piece.
func owner(p stacks.Place) (device int, ok bool) { return p.Piece, p.Piece >= 0 }

// join is f with the arguments and results of the text in place of their pieces, by which parts are told of theirs. It has
// no body: what runs are the parts.
func (k *stacked) join(f *ir.Func, parts []pass.Part) *ir.Func {
	if !slices.ContainsFunc(slices.Concat(k.args, k.results), func(p stacks.Place) bool { return p.Piece >= 0 }) {
		return f
	}
	for i := range parts {
		for n, a := range parts[i].Args {
			if p := k.args[a]; p.Piece >= 0 {
				parts[i].Func.Args[n].Name = wholeName(parts[i].Func.Args[n].Name)
			}
			parts[i].Args[n] = k.args[a].Whole
		}
		for n, r := range parts[i].Results {
			parts[i].Results[n] = k.results[r].Whole
		}
	}
	g := *f
	o := *f.Op
	g.Op, g.Args, g.Results = &o, nil, nil
	o.Attrs = slices.Clone(f.Op.Attrs)
	var args, results types.Array
	state := op.State(f.Op)
	for i, a := range f.Args {
		p := k.args[i]
		if p.Piece > 0 {
			continue
		}
		v := *a
		v.Index = len(g.Args)
		if p.Piece == 0 {
			v.Name, v.Type = wholeName(a.Name), wholeOf(a.Tensor(), stacks.Size(f.Op, "arg_attrs", i))
		}
		g.Args, args = append(g.Args, &v), append(args, unstacked(own(f.Op, "arg_attrs", i)))
	}
	for i, t := range f.Results {
		p := k.results[i]
		if p.Piece > 0 {
			continue
		}
		d := unstacked(own(f.Op, "res_attrs", i))
		if p.Piece == 0 {
			t = wholeOf(t.(*types.Tensor), stacks.Size(f.Op, "res_attrs", i))
		}
		if i < len(state) && state[i] >= 0 {
			d = op.WithState(d, types.Int{V: int64(k.args[state[i]].Whole), Elem: types.I64})
		}
		g.Results, results = append(g.Results, t), append(results, d)
	}
	o.SetAttr("arg_attrs", args)
	o.SetAttr("res_attrs", results)
	o.SetAttr("function_type", types.TypeAttr{T: &types.Func{In: ir.Types(g.Args), Out: g.Results}})
	return &g
}

// wholeName is the name of the value of which one called name is a piece, "%w" of "%w.0".
func wholeName(name string) string {
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		return name[:at]
	}
	return name
}

func wholeOf(piece *types.Tensor, size int64) *types.Tensor {
	return piece.With(append([]dim.Dim{dim.Const(size)}, piece.Shape[1:]...)...)
}

func unstacked(d types.Dict) types.Dict {
	return slices.DeleteFunc(slices.Clone(d), func(a types.Named) bool { return a.Name == op.StackedAttr })
}
