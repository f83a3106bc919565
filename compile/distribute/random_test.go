package distribute_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/compile/pass/passtest"
	"dmir/dialect/mesh"
	"dmir/dialect/types"
	"dmir/testkit/randprog"
)

// sharding is a random one of a tensor: each axis divides a dimension, or none, and two axes
// sometimes the same one.
func sharding(r *rand.Rand, m *mesh.Mesh, rank int) *types.Sharding {
	if rank == 0 || r.IntN(3) == 0 {
		return nil
	}
	s := &types.Sharding{Mesh: "m", Dims: make([]types.Split, rank)}
	for i := range s.Dims {
		s.Dims[i].Open = r.IntN(3) > 0
	}
	for _, n := range r.Perm(len(m.Axes)) {
		parts := []types.Axis{{Name: m.Axes[n].Name}}
		if m.Axes[n].Size == 4 && r.IntN(2) == 0 {
			parts = []types.Axis{{Name: m.Axes[n].Name, Pre: 1, Size: 2}, {Name: m.Axes[n].Name, Pre: 2, Size: 2}}
		}
		for _, a := range parts {
			if r.IntN(4) > 0 {
				d := &s.Dims[r.IntN(rank)]
				d.Axes = append(d.Axes, a)
			}
		}
	}
	return s
}

// divideAtRandom runs a function of a text with random shardings on random meshes.
func divideAtRandom(t *testing.T, text, name string, r *rand.Rand, times int) {
	t.Helper()
	d := whole(t, text, name)
	switch {
	case strings.Contains(text, "f16"): // the parts of a sum are rounded
		d.coarse = 1
	case strings.Contains(text, "f32"):
		d.coarse = 2e-3 // sums of thousands that cancel
	}
	for range times {
		on := grid([]string{"x2", "x3", "x4", "x2 y2", "x5", "x2 y3", "x4 y2"}[r.IntN(7)])
		pick := func(list []types.Type) []*types.Sharding {
			out := make([]*types.Sharding, len(list))
			for i, ty := range list {
				if x, ok := ty.(*types.Tensor); ok {
					out[i] = sharding(r, on, x.Rank())
				}
			}
			return out
		}
		args := make([]types.Type, len(d.u.Func.Args))
		for i, a := range d.u.Func.Args {
			args[i] = a.Type
		}
		d.run(t, on, pick(args), pick(d.u.Func.Results))
		if t.Failed() {
			t.Fatalf("of\n%s", text)
		}
	}
}

// gradientOf is a text with @grad, the gradients of its function @f.
func gradientOf(t *testing.T, text string) string {
	f := passtest.Unit(t, text, "f", nil).Func
	var args, names, in, wrt, out, grads []string
	for i, a := range f.Args {
		arg := fmt.Sprintf("%%x%d", i)
		args, names, in = append(args, arg+": "+a.Type.String()), append(names, arg), append(in, a.Type.String())
		if x := a.Tensor(); x != nil && x.Elem.IsFloat() && x.Elem.Bytes() > 1 {
			wrt, grads, out = append(wrt, fmt.Sprint(i)), append(grads, fmt.Sprintf("%%g%d", i)), append(out, a.Type.String())
		}
	}
	var ys, results []string
	for i, y := range f.Results {
		arg := fmt.Sprintf("%%dy%d", i)
		args, names, in = append(args, arg+": "+y.String()), append(names, arg), append(in, y.String())
		ys, results = append(ys, fmt.Sprintf("%%y%d", i)), append(results, y.String())
	}
	list := func(s []string) string { return strings.Join(s, ", ") }
	return fmt.Sprintf("%s\nfunc.func @grad(%s) -> (%s) {\n  %s, %s = dm.grad @f %s, wrt = [%s], cotangents = %d : (%s) -> (%s, %[3]s)\n  return %[5]s : %[3]s\n}\n",
		text, list(args), list(out), list(ys), list(grads), list(names), list(wrt), len(ys), list(in), list(results))
}

// TestRandomGradients: gradients of random programs.
func TestRandomGradients(t *testing.T) {
	programs := 120
	if testing.Short() {
		programs = 60
	}
	for seed := range uint64(programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			text := randprog.Program(seed, randprog.Options{Gradient: true})
			divideAtRandom(t, gradientOf(t, text), "grad", rand.New(rand.NewPCG(seed, 15)), 3)
		})
	}
}

// TestRandom: random programs of all ops with random shardings.
func TestRandom(t *testing.T) {
	programs := 300
	if testing.Short() {
		programs = 100
	}
	for seed := range uint64(programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			divideAtRandom(t, randprog.Program(seed, randprog.Options{}), "f", rand.New(rand.NewPCG(seed, 14)), 4)
		})
	}
}
