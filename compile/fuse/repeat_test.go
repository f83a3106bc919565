package fuse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/bind"
	"dmir/compile/gradient"
	inlining "dmir/compile/inline"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/simplify"
	"dmir/compile/target"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/syntax/source"
	"dmir/testkit/canceltest"
)

// deep is the text of a gradient of so many equal layers of random ops, with their
// weights as arguments, between ops that do not repeat.
func deep(seed uint64, layers int) string {
	const x, w, s = "tensor<64x32xf32>", "tensor<32x32xf32>", "tensor<32xf32>"
	r := rand.New(rand.NewPCG(seed, 29))
	var b strings.Builder
	vs := []string{"%x"}
	last := func() string { return vs[len(vs)-1-r.IntN(min(len(vs), 3))] }
	for i := range 4 + r.IntN(6) {
		name := fmt.Sprintf("%%v%d", i)
		switch k := r.IntN(7); {
		case i == 0 || k < 2:
			fmt.Fprintf(&b, "  %s = dm.einsum \"ij,jk->ik\" %s, %s : (%s, %s) -> %s\n", name, last(), []string{"%w", "%u"}[r.IntN(2)], x, w, x)
		case k == 2:
			fmt.Fprintf(&b, "  %s = dm.layer_norm %s, %%s, %%t : (%s, %s, %s) -> %s\n", name, last(), x, s, s, x)
		case k == 3:
			fmt.Fprintf(&b, "  %s = dm.softmax %s, dim = 1 : %s\n", name, last(), x)
		case k == 4:
			fmt.Fprintf(&b, "  %s = dm.gelu %s : %s\n", name, last(), x)
		default:
			fmt.Fprintf(&b, "  %s = dm.add %s, %s : %s\n", name, last(), last(), x)
		}
		vs = append(vs, name)
	}
	layer := fmt.Sprintf("func.func private @layer(%%x: %s, %%w: %s, %%u: %s, %%s: %s, %%t: %s) -> %s {\n%s  %%y = dm.add %s, %%x : %s\n  return %%y : %s\n}\n", x, w, w, s, s, x, b.String(), vs[len(vs)-1], x, x)
	params, types := []string{"%x: " + x}, []string{x}
	var names, calls, wrt []string
	names = append(names, "%x")
	for l := range layers {
		for _, p := range []string{"w", "u", "s", "t"} {
			t := w
			if p > "r" && p < "u" {
				t = s
			}
			wrt = append(wrt, fmt.Sprint(len(names)))
			names, types, params = append(names, fmt.Sprintf("%%%s%d", p, l)), append(types, t), append(params, fmt.Sprintf("%%%s%d: %s", p, l, t))
		}
		calls = append(calls, fmt.Sprintf("  %%h%[2]d = func.call @layer(%%h%[1]d, %%w%[1]d, %%u%[1]d, %%s%[1]d, %%t%[1]d) : (%[3]s, %[4]s, %[4]s, %[5]s, %[5]s) -> %[3]s\n", l, l+1, x, w, s))
	}
	loss := fmt.Sprintf("func.func private @loss(%s) -> tensor<f32> {\n  %%h0 = dm.tanh %%x : %s\n%s  %%e = dm.exp %%h%d : %s\n  %%z = dm.reduce add %%e, dims = [0, 1] : (%s) -> tensor<f32>\n  return %%z : tensor<f32>\n}\n",
		strings.Join(params, ", "), x, strings.Join(calls, ""), layers, x, x)
	var grads []string
	for i := range wrt {
		grads = append(grads, fmt.Sprintf("%%d%d", i))
	}
	results := "tensor<f32>, " + strings.Join(types[1:], ", ")
	main := fmt.Sprintf("func.func @main(%s) -> (%s) {\n  %%z, %s = dm.grad @loss %s, wrt = [%s] : (%s) -> (%s)\n  return %%z, %s : %s\n}\n",
		strings.Join(params, ", "), results, strings.Join(grads, ", "), strings.Join(names, ", "), strings.Join(wrt, ", "), strings.Join(types, ", "), results, strings.Join(grads, ", "), results)
	return main + loss + layer
}

// deepUnit is the unit of deep as the fuse pass gets it.
func deepUnit(t *testing.T, seed uint64, layers int) *pass.Unit {
	t.Helper()
	text := deep(seed, layers)
	p := program.Load(source.New("deep.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s\n%s", d.Message, text)
	}
	m, _ := machine.Lookup("h200")
	u := &pass.Unit{Module: p.Modules[0], Func: p.Modules[0].Funcs[0], Machine: m}
	if err := pass.Run(u, []pass.Pass{inlining.Pass(), bind.Pass(), gradient.Pass(), simplify.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	return u
}

// Equal layers are found, their kernels are legal as the rules say of each of them,
// the plan that repeats them costs about what searching every layer gives, and the
// layers have the same kernels.
func TestRepeated(t *testing.T) {
	const tries = 4000
	for seed := range uint64(6) {
		for layers := 8; layers <= 9; layers++ {
			u := deepUnit(t, seed, layers)
			g, err := build(u, Kernels(target.Times{}), newLegalities())
			if err != nil {
				t.Fatal(err)
			}
			if g.repeats == nil || g.repeats.layers < layers-1 {
				t.Fatalf("seed %d: %d layers were not found: %+v", seed, layers, g.repeats)
			}
			got, ks := g.localSearch(tries)
			if _, ok := g.order(ks); !ok {
				t.Fatalf("seed %d: the kernels wait for each other", seed)
			}
			in := map[string]bool{}
			for _, k := range ks {
				in[string(key(nil, k.nodes, k.outs))] = true
			}
			for _, k := range ks { // away from the last layers, which differ
				nodes, outs := g.earliest(k.nodes, k.outs)
				l := g.repeats.first(k.nodes)
				if same := g.repeats.first(nodes); l > pattern && l < g.repeats.layers-5 && same < l {
					for by := pattern + 1 - same; by <= l-same; by++ {
						if at, stored := g.moved(nodes, outs, by); !in[string(key(nil, at, stored))] {
							t.Errorf("seed %d: layer %d of %d has a kernel that layer %d does not have", seed, l, layers, same+by)
						}
					}
				}
			}
			if layers > 8 {
				continue
			}
			for _, s := range g.memo {
				if n := g.nodes[s.nodes[0]]; !s.checked || n.unfusible || g.splitsDropout(s) || g.readsOverwritten(s) {
					continue
				}
				outs := make([]*ir.Value, len(s.outs))
				for i, v := range s.outs {
					outs[i] = g.values[v].v
				}
				if _, _, ok := g.rules.Legal(g.members(s), outs, g.over(s), target.Moved{Of: g.readsOf(g.members(s))}); ok != g.legality(s).ok {
					t.Errorf("seed %d: legal is %v of nodes %v that store %v", seed, ok, s.nodes, s.outs)
				}
			}
			g.repeats, g.memo = nil, map[string]*candidate{}
			want, _ := g.localSearch(tries)
			t.Logf("seed %d: %d nodes, %v repeated, %v searched", seed, len(g.nodes), got, want)
			if start := u.Machine.Start() * 1e15; float64(got.fs) > 1.01*float64(want.fs)+start { // a kernel more
				t.Errorf("seed %d: repeated kernels take %v, searched ones %v", seed, got, want)
			}
		}
	}
}

// earliest is the kernel of nodes that stores outs, both ascending, moved as many
// layers back as it can be.
func (g *graph) earliest(nodes, outs []int) (ns, vs []int) {
	r := g.repeats
	if r == nil {
		return nodes, outs
	}
	by := -1
	for _, n := range nodes {
		if !r.fixed[n] && (by < 0 || r.at[n] < by) {
			by = r.at[n]
		}
	}
	if by <= 0 {
		return nodes, outs
	}
	return g.moved(nodes, outs, -by)
}

// moved is the kernel of nodes that stores outs, both ascending, moved by that many
// layers; nodes are nil where there is none such.
func (g *graph) moved(nodes, outs []int, by int) (ns, vs []int) {
	r := g.repeats
	if ns = r.shift(nodes, by); ns == nil {
		return nil, nil
	}
	for _, v := range outs {
		d := g.values[v].def
		to := r.shift([]int{d}, by)[0]
		vs = append(vs, g.nodes[to].results[slices.Index(g.nodes[d].results, v)])
	}
	slices.Sort(vs)
	return ns, vs
}

// A plan that repeats kernels computes the same, to the bit.
func TestRepeatedResults(t *testing.T) {
	u := deepUnit(t, 3, 9)
	run := func() []*tensor.Tensor {
		args, err := interp.Inputs(t.Context(), u.Func, nil, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Outputs
	}
	want := run()
	if _, err := Run(u, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := pass.Check(u); err != nil {
		t.Fatal(err)
	}
	for i, got := range run() {
		if d := tensor.MaxDiff(got, want[i]); d != 0 {
			t.Errorf("result %d differs by %g", i, d)
		}
	}
}

// Nodes of another kind in one layer are not mapped, so that no kernel of them is
// taken to be equal to others.
func TestUnequalLayer(t *testing.T) {
	u := deepUnit(t, 3, 9)
	var gelus []*ir.Op
	for _, o := range u.Body().Ops {
		if o.Name == "dm.gelu" {
			gelus = append(gelus, o)
		}
	}
	if len(gelus) < 9 {
		t.Fatalf("%d gelus", len(gelus))
	}
	odd := gelus[4]
	odd.Name = "dm.silu"
	odd.Attrs = nil
	g, err := build(u, Kernels(target.Times{}), newLegalities())
	if err != nil {
		t.Fatal(err)
	}
	if r := g.repeats; r != nil {
		n := g.nodeOf[odd]
		if len(r.chains[r.chain[n]]) != 1 {
			t.Errorf("silu is mapped: %v", r.chains[r.chain[n]])
		}
		if ns, _ := g.earliest([]int{n}, g.nodes[n].results); !slices.Equal(ns, []int{n}) {
			t.Errorf("silu is taken for %v", ns)
		}
	}
}

// Planning ends soon after its context has, wherever it is, also between the parts
// of a plan of equal layers.
func TestCancelRepeated(t *testing.T) {
	for steps := 1; steps < 1<<20; steps = steps*7 + 1 {
		u := deepUnit(t, 1, 24)
		ctx := &canceltest.Context{Context: t.Context(), Left: steps}
		u.Ctx = ctx
		if _, err := Run(u, Options{}); err == nil {
			return
		}
		if ctx.After > 4 {
			t.Errorf("ended at step %d, it asks %d times more", steps, ctx.After)
		}
	}
	t.Error("planning asks without end")
}
