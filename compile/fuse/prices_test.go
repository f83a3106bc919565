package fuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// The price that a plan gives a kernel is the time that package cost gives it once it is known how it runs, and no kernel with
// a product takes longer than those of its ops do. Exempt are kernels of the text, which a plan has as they are written, and what is no
// kernel. Of products whose operands the kernel computes the price has a delay that package cost leaves out; of rows that are read by
// number it knows more of the numbers than the cost of a text does, in which a kernel made them.
func TestPricesAreTimes(t *testing.T) {
	texts := map[string]string{}
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".dmir"))
		texts[names[len(names)-1]] = read(t, file)
	}
	for i := range 40 {
		names = append(names, fmt.Sprintf("step %d", i))
		texts[names[len(names)-1]] = randprog.Step(rand.New(rand.NewPCG(uint64(i), 33)))
	}
	bind := map[string]int64{"b": 2, "n": 512}
	for i, name := range names {
		for j, on := range []string{"h100", "a100-80", "cpu"} {
			if !need.Turn(t, 3*i+j, 12) {
				continue
			}
			t.Run(name+" on "+on, func(t *testing.T) {
				m, _ := machine.Lookup(on)
				p := program.Load(source.New(name+".dmir", texts[name]), program.Options{Target: m, Bind: bind})
				if p.HasErrors() {
					t.Fatal(p.Diags)
				}
				comparePrices(t, p, m, bind)
			})
		}
	}
}

// comparePrices compiles the first function of p up to the forms of kernels.
func comparePrices(t *testing.T, p *program.Program, m *machine.Machine, bind map[string]int64) {
	arch := m.Arch
	if m.CPU {
		arch = "x86-64-v3"
	}
	fn := p.Modules[0].Funcs[0]
	options := pass.Options{Bind: bind}
	if p.Cost(fn).Mesh() != nil {
		options.Devices = pass.AllDevices
	}
	of := target.For(arch)
	g := of.Generator(target.Options{Arch: arch})
	prices := map[*ir.Block][]fuse.Priced{}
	passes := append(pipeline.Until(g, "regions"),
		pass.InRegions(pass.Pass{Name: "fuse", Run: func(u *pass.Unit) error {
			times, err := g.Times(u)
			if err == nil && u.Body().OneBlock() {
				prices[u.Body().Block], err = fuse.Prices(u, times)
			}
			return err
		}}),
		pass.InRegions(pass.Pass{Name: "kernels", Run: func(u *pass.Unit) error {
			if err := g.Plan(u); err != nil {
				return err
			}
			body := u.Body()
			entries, priced := cost.Block(body.Block, u.Func, u.Module, bind), prices[body.Block]
			for _, o := range body.Ops {
				if o == body.Terminator() || o.Name == op.Constant || op.IsView(o) || len(priced) == 0 {
					continue
				}
				x := priced[0]
				priced = priced[1:]
				if x.Text || o.Name != op.Kernel {
					continue
				}
				e := entries[o]
				ns := e.Time(u.Model()).Ns
				terms, _ := e.TimeTerms(u.Model())
				within := 0.001*ns + 0.1
				if terms.Near > 0 {
					within = 0.01 * ns
				}
				if math.Abs(x.Ns-ns) > within && (x.Delay == 0 || x.Ns < ns-within || x.Ns > ns+x.Delay+within) {
					t.Errorf("%s costs %.1f ns, and its price is %.1f with a delay of %.1f", e.Results(), ns, x.Ns, x.Delay)
				}
				if x.Split > 0 && x.Split < x.Ns-within {
					t.Errorf("%s has the price %.1f ns, its ops %.1f", e.Results(), x.Ns, x.Split)
				}
			}
			return nil
		}}))
	u := &pass.Unit{Module: p.Modules[0], Func: fn, Machine: target.Machine(of, m), Options: options}
	if err := pass.Run(u, passes, nil); err != nil {
		t.Fatal(err)
	}
}
