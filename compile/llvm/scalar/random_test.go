package scalar_test

import (
	"fmt"
	"math"
	"testing"

	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/random"
	"dmir/dialect/types"
)

// TestSources compares random numbers and counts, bit for bit, with the reference's.
func TestSources(t *testing.T) {
	var all []single
	add := func(x kernel.Expr, text string, args ...any) {
		s := operation(x.Op, x.Kind, x.Elem)
		s.x, s.at, s.text = &x, true, fmt.Sprintf(text, args...)
		s.name += s.text
		all = append(all, s)
	}
	for _, e := range op.Lookup("dm.rng").Results[0].Elems {
		ranges := [][2]float64{{0, 10}, {-3, 3}, {0, 1}, {1, 100}}
		if e.IsFloat() {
			ranges = [][2]float64{{0, 1}, {-0.1, 0.3}, {1e-3, 2e-3}, {-1e4, 6e4}}
			add(kernel.Expr{Op: kernel.Random, Elem: e, Kind: "normal", Seed: 9, Par: [2]float64{0.1, 1.7}}, " normal, mean = 0.1, stddev = 1.7, seed = 9")
		}
		for i, r := range ranges {
			add(kernel.Expr{Op: kernel.Random, Elem: e, Kind: "uniform", Seed: uint64(i), Par: r}, " uniform, low = %.5f, high = %.5f, seed = %d", r[0], r[1], i)
		}
	}
	for _, e := range op.Lookup("dm.iota").Results[0].Elems {
		add(kernel.Expr{Op: kernel.Count, Elem: e}, " dim = 0")
		for _, p := range [][2]float64{{3, -2}, {-5, 1 << 40}} {
			add(kernel.Expr{Op: kernel.Count, Kind: kernel.Spaced, Elem: e, Par: p}, " dim = 0, start = %.1f, step = %.1f", p[0], p[1])
		}
		if e.IsFloat() {
			add(kernel.Expr{Op: kernel.Count, Kind: kernel.Spaced, Elem: e, Par: [2]float64{0.1, 1.0 / 3}}, " dim = 0, start = 0.1, step = %.20f", 1.0/3)
		}
	}
	fs := compiled(t, all)
	const n = 70001
	for k, s := range all {
		want, got := reference(t, s, n), run(t, fs[k], s, n)
		for i := range n {
			if distance(got, want, i) != 0 {
				t.Errorf("%s: element %d is %s, want %s", s.name, i, show(got, i), show(want, i))
				break
			}
		}
	}
}

// TestKeep compares the mask of dropout, and the seeds of steps, with those of package
// tensor.
func TestKeep(t *testing.T) {
	const seed, n = 77, 10001
	var all []single
	for _, rate := range []float64{0, 0.1, 0.5, 1} {
		for _, step := range []types.Elem{types.InvalidElem, types.I64, types.I32, types.UI32, types.UI64} {
			s := operation(kernel.Keep, "", types.I1)
			s.x.Seed, s.x.Int, s.at = seed, int64(tensor.Threshold(rate)), true
			if step != types.InvalidElem {
				s.x.Args = []*kernel.Expr{{Elem: step}}
			}
			all = append(all, s)
		}
	}
	fs := compiled(t, all)
	for k, s := range all {
		at := uint64(seed)
		var args []*tensor.Tensor
		if len(s.x.Args) > 0 {
			step := tensor.New(s.x.Args[0].Elem, n)
			step.SetInt(0, math.MinInt32+5)
			at = tensor.SeedOf(seed, uint64(step.Integer(0)))
			for i := range n {
				copyElement(step, i, step, 0)
			}
			args = append(args, step)
		}
		want := make([]uint8, n)
		tensor.NewStream(at, random.Dropout).Keep(want, 0, uint64(s.x.Int))
		got := run(t, fs[k], s, n, args...)
		for i, w := range want {
			if got.Bool[i] != w {
				t.Errorf("threshold %d, %d steps: element %d is %d, want %d", s.x.Int, len(args), i, got.Bool[i], w)
				break
			}
		}
	}
}
