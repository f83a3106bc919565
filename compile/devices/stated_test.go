package devices_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/analysis/program"
	"dmir/compile/bind"
	"dmir/compile/devices"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// TestAttributesStateShardings: what dm.sharding states is what a type states. Programs whose shardings
// are moved from the types into attributes are divided in the same way.
func TestAttributesStateShardings(t *testing.T) {
	var files []string
	for _, glob := range []string{"../../examples/*.dmir", "../distribute/testdata/steps/*.dmir"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range load(t, string(text)).Modules {
			if len(mesh.All(m)) == 0 {
				continue
			}
			moved := m.Clone()
			for _, f := range moved.Funcs {
				inAttributes(f)
			}
			written, err := print.Pretty(moved)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.Funcs {
				if f.Body == nil || op.PerDevice(f.Op) {
					continue
				}
				t.Run(filepath.Base(file)+" "+f.Name, func(t *testing.T) {
					compared++
					if d := cmp.Diff(divided(t, string(text), f.Name), divided(t, written, f.Name)); d != "" {
						t.Errorf("%s\n%s", d, written)
					}
					if d := cmp.Diff(costOf(t, string(text), f.Name), costOf(t, written, f.Name)); d != "" {
						t.Errorf("%s\n%s", d, written)
					}
				})
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d functions are compared", compared)
	}
}

func load(t *testing.T, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New("x.dmir", text), program.Options{})
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, text)
	}
	return p
}

// costOf is what a device moves, sends and holds at most in the function called name.
func costOf(t *testing.T, text, name string) []string {
	t.Helper()
	d, problem := load(t, text).Func(name).Divide()
	if problem != nil {
		t.Fatal(problem)
	}
	if d == nil {
		return nil
	}
	peak := d.Device.Peak()
	return []string{d.Device.Moved().String(), fmt.Sprint(d.Device.Sent()), fmt.Sprint(peak)}
}

// divided is what a device runs of the function called name.
func divided(t *testing.T, text, name string) string {
	t.Helper()
	load(t, text)
	u := passtest.Unit(t, text, name, nil)
	u.Options.Devices = pass.AllDevices
	if err := pass.Run(u, []pass.Pass{inline.Pass(), bind.Pass(), gradient.Pass(), devices.Shard(), devices.Partition()}, nil); err != nil {
		t.Fatal(err)
	}
	return passtest.Text(t, u)
}

// inAttributes moves the shardings in the types of f into attributes.
func inAttributes(f *ir.Func) {
	entry := func(s *types.Sharding) types.Attr {
		if s == nil {
			return types.Unit{}
		}
		return types.Place{Placement: types.Placement{Space: types.HBM, Shard: s}}
	}
	var attr func(ty types.Type) types.Attr
	attr = func(ty types.Type) types.Attr {
		switch ty := ty.(type) {
		case *types.Tensor:
			return entry(ty.At.Shard)
		case *types.Tuple:
			out := types.Array{}
			for _, m := range ty.Of {
				out = append(out, attr(m))
			}
			return out
		}
		return types.Unit{}
	}
	states := func(ty types.Type) bool {
		return slices.ContainsFunc(types.Members(ty), func(m types.Member) bool { return m.Tensor.At.Shard != nil })
	}
	plain := func(ty types.Type) types.Type {
		return types.Each(ty, func(m types.Member) types.Type {
			r := *m.Tensor
			r.At.Shard = nil
			return &r
		})
	}
	signature := func(list string, ts []types.Type) {
		all, ok := f.Op.Attr(list).(types.Array)
		if !ok {
			for range ts {
				all = append(all, types.Dict{})
			}
		}
		all = slices.Clone(all)
		for i, ty := range ts {
			if states(ty) {
				all[i] = append(slices.Clone(all[i].(types.Dict)), types.Named{Name: op.ShardingAttr, Value: attr(ty)})
			}
		}
		f.Op.SetAttr(list, all)
	}
	signature("arg_attrs", ir.Types(f.Args))
	signature("res_attrs", f.Results)
	for _, a := range f.Args {
		a.Type = plain(a.Type)
	}
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		all := types.Array{}
		some := false
		for _, r := range o.Results {
			all = append(all, attr(r.Type))
			some = some || states(r.Type)
			r.Type = plain(r.Type)
		}
		if some && o.Name != op.Pack && o.Name != op.Unpack {
			if o.SetAttr(op.ShardingAttr, all); len(all) == 1 {
				o.SetAttr(op.ShardingAttr, all[0])
			}
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					v.Type = plain(v.Type)
				}
			}
		}
		return true
	})
	f.Retype()
}
