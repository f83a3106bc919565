package fuse_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/fuse"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	_ "dmir/compile/target/all"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// The price that a plan gives a kernel is the time that package cost gives it when it is known how it runs.
func TestPricesAreTimes(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, name := range []string{"h100", "a100-80", "cpu"} {
		for _, file := range files {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".dmir"), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				priced(t, file, string(text), name)
			})
		}
	}
}

func priced(t *testing.T, file, text, on string) {
	m, _ := machine.Lookup(on)
	arch := m.Arch
	if m.CPU {
		arch = "x86-64-v3"
	}
	p := program.Load(source.New(file, text), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	fn := p.Modules[0].Funcs[0]
	f := p.Cost(fn)
	if len(f.Unbound()) > 0 {
		t.Skip("its sizes are open")
	}
	of := target.For(arch)
	o := pass.Options{}
	if f.Mesh() != nil {
		o.Devices = pass.AllDevices
	}
	g := of.Generator(target.Options{Arch: arch})
	prices := map[*ir.Block][]fuse.Priced{}
	var all, costs float64
	passes := append(pipeline.Until(g, "regions"), pass.InRegions(pass.Pass{Name: "fuse", Run: func(u *pass.Unit) error {
		if !u.Body().OneBlock() {
			return nil
		}
		times, err := g.Times(u)
		if err != nil {
			return err
		}
		prices[u.Body().Block], _, err = fuse.Prices(u, times)
		return err
	}}), pass.InRegions(pass.Pass{Name: "kernels", Run: func(u *pass.Unit) error {
		if err := g.Plan(u); err != nil {
			return err
		}
		entries := cost.Block(u.Body().Block, u.Func, u.Module, nil)
		i := 0
		body := u.Body()
		for _, o := range body.Ops {
			if o == body.Terminator() || o.Name == op.Constant || op.IsView(o) {
				continue
			}
			e := entries[o]
			x := prices[body.Block][i]
			i++
			ns := e.Time(u.Model()).Ns
			if pass.Controls(o) || op.Of(o).Is(op.Collective) {
				continue
			}
			all, costs = all+x.Ns, costs+ns
			if math.Abs(x.Ns-ns) > 0.001*ns+0.1 {
				terms, _ := e.TimeTerms(u.Model())
				fs := []string{}
				for _, in := range e.Inner {
					fs = append(fs, in.Op.Name[3:])
				}
				n, _ := e.Moved().Int()
				t.Errorf("%s = %v costs %.1f ns, its price is %.1f with a delay of %.1f; %d bytes, in its price %d; %s %+v", e.Results(), fs, ns, x.Ns, x.Delay, n, x.Bytes, o.Str(cost.TileAttr), terms)
			}
		}
		return nil
	}}))
	u := &pass.Unit{Module: p.Modules[0], Func: fn, Machine: target.Machine(of, m), Options: o}
	if err := pass.Run(u, passes, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f us, costs %.1f us", all/1000, costs/1000)
}
