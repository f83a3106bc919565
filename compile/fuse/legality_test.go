package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/fuse"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// The rules find about each kernel what they found about the first one of its form, and are asked about no more kernels than
// there are forms: most of a program is how many, and of the same program again none.
func TestEqualKernelsAreAskedAboutOnce(t *testing.T) {
	type row struct {
		name, text string
		most       int
	}
	rows := []row{{name: "bert_encoder_train", most: 850}, {name: "moe"}, {name: "gcn_train"}, {name: "cnn_train"}, {name: "lstm_train"}}
	for i, r := range rows {
		rows[i].text = read(t, "../../examples/"+r.name+".dmir")
	}
	for i := range 20 {
		rows = append(rows, row{fmt.Sprintf("step %d", i), randprog.Step(rand.New(rand.NewPCG(uint64(i), 34))), 0})
	}
	bind := map[string]int64{"b": 2, "n": 512}
	for i, r := range rows {
		if r.most == 0 && !need.Turn(t, i, 5) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			m, _ := machine.Lookup("h200")
			p := program.Load(source.New(r.name+".dmir", r.text), program.Options{Target: m, Bind: bind})
			g := target.For(m.Arch).Generator(target.Options{Arch: m.Arch})
			u := &pass.Unit{Module: p.Modules[0], Func: p.Modules[0].Funcs[0], Machine: m, Options: pass.Options{Bind: bind}}
			most := r.most
			passes := append(pipeline.Until(g, "regions"), pass.InRegions(pass.Pass{Name: "fuse", Run: func(u *pass.Unit) error {
				times, err := g.Times(u)
				if err != nil || !u.Body().OneBlock() {
					return err
				}
				asked, shared, err := fuse.Shared(u, times)
				t.Logf("%d asked, %d shared", asked, shared)
				if r.most > 0 && asked > most {
					t.Errorf("the rules are asked about %d kernels, want at most %d", asked, most)
				}
				return err
			}}))
			again := &pass.Unit{Module: u.Module.CloneOf(u.Module.Funcs), Machine: m, Options: u.Options}
			again.Func = again.Module.Func(u.Func.Name)
			if err := pass.Run(u, passes, nil); err != nil {
				t.Fatal(err)
			}
			if most = 0; r.most > 0 {
				if err := pass.Run(again, passes, nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
