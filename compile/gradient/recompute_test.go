package gradient_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/simplify"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// TestRecomputedPrograms: the gradient of a random program in which random ops are computed again, one by one
// or as calls, is bit for bit the gradient without.
func TestRecomputedPrograms(t *testing.T) {
	copies := 0
	for seed := range uint64(120) {
		text := smooth(seed, 14)
		if seed%2 == 1 {
			text = randprog.Messy(seed, 25)
		}
		m := read(t, text)
		opts := gradient.Options{Seeded: true, Joint: true}
		plain, err := gradient.Function(m, m.Func("f"), opts)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		marked := read(t, text)
		markSome(marked.Func("f"), seed)
		again, err := gradient.Function(marked, marked.Func("f"), opts)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, o := range again.Body.Ops {
			if o.Attr(op.RecomputedAttr) != nil {
				copies++
			}
			if o.Attr(op.RecomputeAttr) != nil {
				t.Fatalf("seed %d: %s is still to be computed again", seed, o.Name)
			}
		}
		back, _ := printed(t, m, plain)
		back2, shown := printed(t, marked, again)
		args := inputs(t, back.Funcs[0], seed, nil)
		want, got := compute(t, back, back.Funcs[0], args), compute(t, back2, back2.Funcs[0], args)
		for i := range want {
			if d := tensor.MaxDiff(want[i], got[i]); d != 0 {
				t.Fatalf("seed %d: result %d differs by %g\n%s", seed, i, d, shown)
			}
		}
	}
	if copies < 100 {
		t.Errorf("only %d ops are computed again", copies)
	}
}

// markSome marks ops of f: runs of single ones, and runs as inlined calls.
func markSome(f *ir.Func, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	var mark types.Attr
	for i, o := range f.Body.Ops[:len(f.Body.Ops)-1] {
		switch r.IntN(6) {
		case 0:
			mark = types.Unit{}
		case 1:
			mark = types.Int{V: int64(i + 1), Elem: types.I64}
		case 2:
			mark = nil
		}
		if mark != nil {
			o.SetAttr(op.RecomputeAttr, mark)
		}
	}
}

// layers is a training step of a deep network, whose layers have large intermediate values; in place of MARK
// the calls have an attribute or none.
const layers = `func.func @step(%x: tensor<64x32xf32>, %a: tensor<32x512xf32>, %b: tensor<512x32xf32>, %c: tensor<32x512xf32>, %d: tensor<512x32xf32>) -> (tensor<f32>, tensor<32x512xf32>, tensor<512x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) {
  %l, %da, %db, %dc, %dd = dm.grad @loss %x, %a, %b, %c, %d, wrt = [1, 2, 3, 4] : (tensor<64x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) -> (tensor<f32>, tensor<32x512xf32>, tensor<512x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>)
  return %l, %da, %db, %dc, %dd : tensor<f32>, tensor<32x512xf32>, tensor<512x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>
}
func.func private @loss(%x: tensor<64x32xf32>, %a: tensor<32x512xf32>, %b: tensor<512x32xf32>, %c: tensor<32x512xf32>, %d: tensor<512x32xf32>) -> tensor<f32> {
  %0 = func.call @layer(%x, %a, %b)MARK : (tensor<64x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %1 = func.call @layer(%0, %c, %d)MARK : (tensor<64x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %2 = func.call @layer(%1, %a, %d)MARK : (tensor<64x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %3 = func.call @layer(%2, %c, %b)MARK : (tensor<64x32xf32>, tensor<32x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %4 = dm.mul %3, %3 : tensor<64x32xf32>
  %5 = dm.reduce add %4 : (tensor<64x32xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}
func.func private @layer(%x: tensor<64x32xf32>, %w: tensor<32x512xf32>, %v: tensor<512x32xf32>) -> tensor<64x32xf32> {
  %0 = dm.matmul %x, %w : (tensor<64x32xf32>, tensor<32x512xf32>) -> tensor<64x512xf32>
  %1 = dm.gelu %0 : tensor<64x512xf32>
  %2 = dm.dropout %1, rate = 0.25, seed = 7 : tensor<64x512xf32>
  %3 = dm.matmul %2, %v : (tensor<64x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %4 = dm.add %x, %3 : tensor<64x32xf32>
  return %4 : tensor<64x32xf32>
}
`

// TestRecomputedLayers: with calls marked, cost holds less at once, and less so after the compiler's rewrites; what is
// dropped is dropped again in the same places.
func TestRecomputedLayers(t *testing.T) {
	type outcome struct {
		cost, rewritten int64
		results         []*tensor.Tensor
	}
	run := func(mark string) (out outcome) {
		text := strings.ReplaceAll(layers, "MARK", mark)
		p := program.Load(source.New("x.dmir", text), program.Options{})
		if p.HasErrors() {
			t.Fatal(p.Diags)
		}
		out.cost, _ = p.Func("step").Peak().Int()
		u := passtest.Unit(t, text, "step", nil)
		if err := pass.Run(u, []pass.Pass{inline.Pass(), gradient.Pass(), simplify.Pass()}, nil); err != nil {
			t.Fatal(err)
		}
		q := program.Load(source.New("x.dmir", passtest.Text(t, u)), program.Options{})
		if q.HasErrors() {
			t.Fatal(q.Diags)
		}
		out.rewritten, _ = q.Func("step").Peak().Int()
		m := q.Modules[0]
		out.results = compute(t, m, m.Func("step"), inputs(t, m.Func("step"), 3, nil))
		return out
	}
	kept, again := run(""), run(" {dm.recompute}")
	if a, b := recomputed(t, "step", false), recomputed(t, "loss", true); a == 0 || a != b {
		t.Errorf("%d ops are computed again in a dm.grad, %d where the function itself is differentiated", a, b)
	}
	if again.cost*10 > kept.cost*8 || again.rewritten*10 > kept.rewritten*8 {
		t.Errorf("%d bytes at once, %d after rewrites; without recomputation %d, %d", again.cost, again.rewritten, kept.cost, kept.rewritten)
	}
	t.Logf("peak of %d bytes falls to %d; after rewrites, of %d to %d", kept.cost, again.cost, kept.rewritten, again.rewritten)
	for i := range kept.results {
		if d := tensor.MaxDiff(kept.results[i], again.results[i]); d != 0 {
			t.Errorf("result %d differs by %g", i, d)
		}
	}
}

// recomputed is how many ops of the function called name are computed again; grad: it is differentiated itself.
func recomputed(t *testing.T, name string, grad bool) (n int) {
	u := passtest.Unit(t, strings.ReplaceAll(layers, "MARK", " {dm.recompute}"), name, nil)
	u.Options.Grad = grad
	if err := pass.Run(u, []pass.Pass{inline.Pass(), gradient.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	for _, o := range u.Func.Body.Ops {
		if o.Attr(op.RecomputedAttr) != nil {
			n++
		}
	}
	return n
}
