package distribute_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
	"dmir/internal/randprog"
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
		if r.IntN(4) > 0 {
			d := &s.Dims[r.IntN(rank)]
			d.Axes = append(d.Axes, types.Axis{Name: m.Axes[n].Name})
		}
	}
	return s
}

// divideAtRandom runs @f of a text with random shardings on random meshes.
func divideAtRandom(t *testing.T, text string, r *rand.Rand, times int) {
	t.Helper()
	d := whole(t, text, "f")
	if strings.Contains(text, "f16") { // the parts of a sum are rounded
		d.coarse = 0.15
	}
	for range times {
		on := meshes[r.IntN(len(meshes))]
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

// TestRandom: random programs of all ops with random shardings.
func TestRandom(t *testing.T) {
	programs := 4000
	if testing.Short() {
		programs = 100
	}
	for seed := range uint64(programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			divideAtRandom(t, randprog.Program(seed, randprog.Options{}), rand.New(rand.NewPCG(seed, 14)), 4)
		})
	}
}
